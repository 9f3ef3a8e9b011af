-- Deliveries under way, so that their webhook's share of places is counted without a look at its backlog.
CREATE INDEX deliveries_leased ON deliveries (webhook, due_ms) WHERE token IS NOT NULL;

-- How many pending deliveries were dropped because too many others were pending.
ALTER TABLE webhooks ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
