-- The span of a task's submit as a W3C `traceparent`; null when its trace is not recorded.
ALTER TABLE tasks ADD COLUMN trace text;
