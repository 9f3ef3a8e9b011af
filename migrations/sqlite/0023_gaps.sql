-- The search for orphaned files removes files of known tasks alone: it needs no record of the times in which a copy of
-- the store may have accepted tasks, nor of the newest task ever accepted.
DROP TABLE gaps;
DELETE FROM counters WHERE name = 'newest_ms';
