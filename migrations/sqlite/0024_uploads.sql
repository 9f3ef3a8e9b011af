-- Files that callers upload, to name them as references. The bytes are in the result store. Rows with the same
-- `blob_key` share their bytes, which count once in the project's usage.
CREATE TABLE uploads (
    id              TEXT    PRIMARY KEY NOT NULL, -- sorts by creation
    project         TEXT    NOT NULL,
    filename        TEXT    NOT NULL,
    purpose         TEXT    NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind = 'image' OR kind = 'audio'),
    media_type      TEXT    NOT NULL,
    bytes           INTEGER NOT NULL,
    sha256          TEXT    NOT NULL,
    blob_key        TEXT    NOT NULL,
    is_stored       INTEGER NOT NULL, -- 1 once the bytes are stored; until then the file exists for nobody
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL,
    deleted_at_ms   INTEGER,          -- by its owner, while a task needed the bytes
    due_ms          INTEGER NOT NULL, -- when the sweep looks at it next
    idempotency_key TEXT,
    fingerprint     BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_of_project ON uploads (project, id);
CREATE INDEX uploads_of_bytes ON uploads (project, sha256);
CREATE INDEX uploads_of_blob ON uploads (blob_key);
CREATE INDEX uploads_due ON uploads (due_ms, id);
CREATE UNIQUE INDEX uploads_of_key ON uploads (project, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Unfinished tasks that name an uploaded file.
CREATE TABLE upload_uses (
    upload TEXT NOT NULL,
    task   TEXT NOT NULL,
    PRIMARY KEY (upload, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX upload_uses_of_task ON upload_uses (task);
