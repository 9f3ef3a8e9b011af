-- What an attempt at a task wants a later one to know, such as the name of the work at somebody else's
-- server; null once the task has ended.

ALTER TABLE tasks ADD COLUMN kept TEXT;
