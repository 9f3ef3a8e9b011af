-- Whether all references of a waiting task are in the result store. Tasks from before this column count as
-- not ready: the fetch stage finds their files at once where they are there.

ALTER TABLE tasks ADD COLUMN references_ready INTEGER NOT NULL DEFAULT 0;
