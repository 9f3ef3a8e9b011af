-- How many pending deliveries were dropped because too many others were pending.
ALTER TABLE webhooks ADD COLUMN dropped bigint NOT NULL DEFAULT 0;

-- The next deliveries of a webhook in their order, and those under way, without a look at its backlog.
CREATE INDEX CONCURRENTLY deliveries_due ON deliveries (webhook, due_ms, number) WHERE state = 'pending';
CREATE INDEX CONCURRENTLY deliveries_leased ON deliveries (webhook, due_ms) WHERE token IS NOT NULL;
DROP INDEX CONCURRENTLY deliveries_pending;
