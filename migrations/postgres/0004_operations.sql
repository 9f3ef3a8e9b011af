-- What ended tasks add up to, by day, project and model. Written in the transaction that ends a task, after its
-- project's row is locked, and kept when the task is gone.
CREATE TABLE tallies (
    day       bigint NOT NULL, -- whole days since 1970, UTC
    project   text   NOT NULL COLLATE "C",
    model     text   NOT NULL COLLATE "C",
    completed bigint NOT NULL,
    failed    bigint NOT NULL,
    cancelled bigint NOT NULL,
    video_ms  bigint NOT NULL,
    engine_ms bigint NOT NULL,
    PRIMARY KEY (day, project, model)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Changes of API keys, the newest of them. Written in the transaction that changes a key.
CREATE TABLE key_log (
    number    bigserial PRIMARY KEY,
    at_ms     bigint NOT NULL,
    kind      text   NOT NULL CHECK (kind IN ('created', 'rotated', 'revoked')),
    key       text   NOT NULL, -- its id
    name      text   NOT NULL,
    project   text   NOT NULL,
    successor text,            -- id of the key that takes its place
    "user"    text   NOT NULL, -- who did it, and where
    host      text   NOT NULL
);
