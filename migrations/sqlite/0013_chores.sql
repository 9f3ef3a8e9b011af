-- What is to be done outside of the store: files to be removed, upstream jobs to be called off, the look for files
-- that no task names. A chore is leased by whoever does it, and is gone when it is settled.

CREATE TABLE chores (
    number   INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL CHECK (kind IN ('remove_file', 'call_off', 'look_for_orphans')),
    subject  TEXT    NOT NULL,            -- blob key, task id, or empty
    model    TEXT,                        -- of an upstream job
    ticket   TEXT,                        -- its name at the upstream
    due_ms   INTEGER NOT NULL DEFAULT 0,  -- not before then; the end of the lease while there is one
    attempts INTEGER NOT NULL DEFAULT 0,
    token    INTEGER,                     -- of the lease
    UNIQUE (kind, subject)
) STRICT;

CREATE INDEX chores_by_due ON chores (kind, due_ms);

INSERT INTO chores (kind, subject) SELECT 'remove_file', key FROM garbage ORDER BY number;
INSERT INTO chores (kind, subject, model, ticket) SELECT 'call_off', task, model, kept FROM abandoned ORDER BY task;
INSERT INTO chores (kind, subject) VALUES ('look_for_orphans', '');

DROP TABLE garbage;
DROP TABLE abandoned;
