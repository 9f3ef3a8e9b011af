-- Tasks, their idempotency keys, files to be removed, API keys. Times are milliseconds since 1970.

CREATE TABLE tasks (
    seq            INTEGER PRIMARY KEY,     -- order of acceptance: the place in the queue
    id             TEXT    NOT NULL UNIQUE, -- sorts by creation
    project        TEXT    NOT NULL,
    phase          TEXT    NOT NULL
                   CHECK (phase IN ('waiting', 'running', 'completed', 'failed', 'expired')),
    progress       INTEGER NOT NULL CHECK (progress BETWEEN 0 AND 100),
    attempt        INTEGER NOT NULL CHECK (attempt >= 0),
    engine         TEXT,
    created_at_ms  INTEGER NOT NULL,
    started_at_ms  INTEGER,
    finished_at_ms INTEGER,
    expires_at_ms  INTEGER,
    -- Of the running lease; kept by a cancel so that its worker can be told why.
    lease_token    INTEGER,
    lease_until_ms INTEGER,
    worker         TEXT,
    artifact       TEXT CHECK ((artifact IS NOT NULL) = (phase = 'completed')), -- JSON
    failure        TEXT CHECK ((failure IS NOT NULL) = (phase = 'failed')),     -- JSON
    spec_version   INTEGER NOT NULL,
    spec           TEXT    NOT NULL,        -- JSON
    metadata       TEXT    NOT NULL         -- JSON
) STRICT;

CREATE INDEX tasks_of_project ON tasks (project, id) WHERE phase <> 'expired';
CREATE INDEX tasks_unfinished ON tasks (seq) WHERE phase IN ('waiting', 'running');
CREATE INDEX tasks_by_expiry ON tasks (phase, expires_at_ms) WHERE expires_at_ms IS NOT NULL;

CREATE TABLE idempotency (
    project       TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    fingerprint   BLOB    NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    task_seq      INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
    PRIMARY KEY (project, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_of_task ON idempotency (task_seq);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at_ms);

-- Blob keys whose task is gone, until the blob store has confirmed their removal.
CREATE TABLE garbage (
    number INTEGER PRIMARY KEY,
    key    TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE api_keys (
    id                  TEXT PRIMARY KEY NOT NULL,
    sha256              BLOB    NOT NULL UNIQUE CHECK (length(sha256) = 32),
    name                TEXT    NOT NULL,
    project             TEXT    NOT NULL,
    scopes              TEXT    NOT NULL,   -- names, separated by spaces
    models              TEXT,               -- JSON array; null for all
    requests_per_minute INTEGER,
    unfinished_max      INTEGER,
    created_at_ms       INTEGER NOT NULL,
    expires_at_ms       INTEGER,
    revoked_at_ms       INTEGER
) STRICT;

-- `token`: the largest fencing token given out. `api_keys`: moves with every change of a key,
-- whoever makes it, so that a serving process sees it by reading one row.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('token', 0), ('api_keys', 0);

CREATE TRIGGER api_keys_added AFTER INSERT ON api_keys BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'api_keys';
END;
CREATE TRIGGER api_keys_changed AFTER UPDATE ON api_keys BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'api_keys';
END;
CREATE TRIGGER api_keys_removed AFTER DELETE ON api_keys BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'api_keys';
END;
