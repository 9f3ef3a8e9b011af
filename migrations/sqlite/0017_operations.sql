-- What ended tasks add up to, by day, project and model. Written in the transaction that ends a task, and kept when the
-- task is gone.
CREATE TABLE tallies (
    day       INTEGER NOT NULL, -- whole days since 1970, UTC
    project   TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    completed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    video_ms  INTEGER NOT NULL,
    engine_ms INTEGER NOT NULL,
    PRIMARY KEY (day, project, model)
) STRICT, WITHOUT ROWID;

-- Changes of API keys, the newest of them. Written in the transaction that changes a key.
CREATE TABLE key_log (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms     INTEGER NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('created', 'rotated', 'revoked')),
    key       TEXT    NOT NULL, -- its id
    name      TEXT    NOT NULL,
    project   TEXT    NOT NULL,
    successor TEXT,             -- id of the key that takes its place
    user      TEXT    NOT NULL, -- who did it, and where
    host      TEXT    NOT NULL
) STRICT;
