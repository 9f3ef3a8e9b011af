-- Which of a project's waiting tasks go first: -1 high, 0 normal, 1 low.
ALTER TABLE tasks ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
