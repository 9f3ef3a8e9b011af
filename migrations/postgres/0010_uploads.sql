-- Files that callers upload, to name them as references. The bytes are in the result store. Rows with the same
-- `blob_key` share their bytes, which count once in the project's usage. All changes are made under the lock of the
-- project's row.
CREATE TABLE uploads (
    id              text   PRIMARY KEY COLLATE "C", -- sorts by creation
    project         text   NOT NULL COLLATE "C",
    filename        text   NOT NULL,
    purpose         text   NOT NULL,
    kind            text   NOT NULL CHECK (kind IN ('image', 'audio')),
    media_type      text   NOT NULL,
    bytes           bigint NOT NULL,
    sha256          text   NOT NULL COLLATE "C",
    blob_key        text   NOT NULL COLLATE "C",
    is_stored       bigint NOT NULL, -- 1 once the bytes are stored; until then the file exists for nobody
    created_at_ms   bigint NOT NULL,
    expires_at_ms   bigint NOT NULL,
    deleted_at_ms   bigint,          -- by its owner, while a task needed the bytes
    due_ms          bigint NOT NULL, -- when the sweep looks at it next
    idempotency_key text   COLLATE "C",
    fingerprint     bytea
);

CREATE INDEX uploads_of_project ON uploads (project, id);
CREATE INDEX uploads_of_bytes ON uploads (project, sha256);
CREATE INDEX uploads_of_blob ON uploads (blob_key);
CREATE INDEX uploads_due ON uploads (due_ms, id);
CREATE UNIQUE INDEX uploads_of_key ON uploads (project, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Unfinished tasks that name an uploaded file.
CREATE TABLE upload_uses (
    upload text NOT NULL COLLATE "C",
    task   text NOT NULL COLLATE "C",
    PRIMARY KEY (upload, task)
);

CREATE INDEX upload_uses_of_task ON upload_uses (task);
