-- What shows that the store has lost something. `changes` grows with every transaction; the high-water mark beside
-- the database says how far it had come. `newest_ms` is the creation time of the newest task ever accepted.

INSERT INTO counters (name, value) VALUES
    ('changes', 0),
    ('newest_ms', (SELECT coalesce(max(created_at_ms), 0) FROM tasks));

-- Creation times between which this store accepted no task, although it may have stood still at an older state
-- meanwhile: files of such tasks may be of another history. A look at all files that finds none closes them.
CREATE TABLE gaps (
    after_ms  INTEGER PRIMARY KEY,
    before_ms INTEGER NOT NULL
) STRICT;

-- Checksums: of what a task is (id, project, creation, spec, metadata) and of how it stands (phase, times, token,
-- progress, artifact, failure, warnings). Null: not known, as of rows from before.
ALTER TABLE tasks ADD COLUMN texts_sum INTEGER;
ALTER TABLE tasks ADD COLUMN state_sum INTEGER;
