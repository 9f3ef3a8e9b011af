-- Each key is inserted once and deleted a day later. By the server's default a fifth of the table may be dead, and the
-- sweep, which looks for the oldest keys, passes over all of them.
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
