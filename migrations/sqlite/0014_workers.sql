-- Processes that run tasks, as they announce themselves, for `kinora workers`. The serving process has them in memory.
CREATE TABLE workers (
    id        TEXT    PRIMARY KEY NOT NULL,
    announced TEXT    NOT NULL, -- JSON
    seen_ms   INTEGER NOT NULL, -- its last announcement that was written
    until_ms  INTEGER NOT NULL  -- it counts as dead from then on
) STRICT, WITHOUT ROWID;

-- Drawn once, shared by all processes of the service.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
