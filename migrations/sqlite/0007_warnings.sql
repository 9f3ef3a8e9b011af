-- What the engine at work did not or could not do of the request: a JSON array; null when nothing was said.

ALTER TABLE tasks ADD COLUMN warnings TEXT;
