-- Deaths of its worker that a task has met: the last attempt after one is made alone.
ALTER TABLE tasks ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;

-- `in_use`: 1 from the start of a serving process to its clean end. `unclean_starts`: starts in a row that found
-- it 1.
INSERT INTO counters (name, value) VALUES ('in_use', 0), ('unclean_starts', 0);

-- What the store writes to find out whether it can: one row, about as large as a task.
CREATE TABLE write_try (
    number INTEGER PRIMARY KEY,
    filler BLOB NOT NULL
) STRICT;
