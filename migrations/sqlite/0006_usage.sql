-- What tasks take on disk, and its sum by project: the bounds on stored bytes and kept tasks go by it.
-- `charged_bytes` is the row, the references and the result of a task together; `reference_bytes` the part of its
-- references, an allowance until they are fetched.

ALTER TABLE tasks ADD COLUMN reference_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN charged_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE tasks SET charged_bytes = 1024 + length(spec) + length(metadata) + CASE WHEN json_valid(artifact) THEN
    coalesce(json_extract(artifact, '$.video.bytes'), 0) + coalesce(json_extract(artifact, '$.thumbnail.bytes'), 0)
    + coalesce(json_extract(artifact, '$.spritesheet.bytes'), 0) ELSE 0 END;

CREATE TABLE usage (
    project TEXT    PRIMARY KEY NOT NULL,
    bytes   INTEGER NOT NULL,  -- of all its tasks
    tasks   INTEGER NOT NULL   -- those that are not expired
) STRICT, WITHOUT ROWID;

INSERT INTO usage (project, bytes, tasks)
    SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired') FROM tasks GROUP BY project;
