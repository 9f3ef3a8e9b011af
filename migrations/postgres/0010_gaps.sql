-- The search for orphaned files removes files of known tasks alone: it needs no record of the times in which a copy of
-- the store may have accepted tasks. Earlier programs read and write this table with each task.
DROP TABLE gaps;
