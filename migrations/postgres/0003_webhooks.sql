-- Receivers of events, by project. One without an address signs what goes to the `callback_url` of requests.
CREATE TABLE webhooks (
    id             text   PRIMARY KEY COLLATE "C",
    project        text   NOT NULL COLLATE "C",
    url            text,
    secret         bytea  NOT NULL CHECK (length(secret) = 32),
    old_secret     bytea  CHECK (length(old_secret) = 32), -- signs beside the other
    old_until_ms   bigint,                                 -- until then
    created_at_ms  bigint NOT NULL,
    disabled_at_ms bigint                                  -- the receiver said that it is gone
);

CREATE INDEX webhooks_of_project ON webhooks (project);
CREATE UNIQUE INDEX webhooks_of_callbacks ON webhooks (project) WHERE url IS NULL;

-- Events on their way to webhooks, and the log of those that have arrived or were given up. A delivery is leased by
-- whoever makes it.
CREATE TABLE deliveries (
    number      bigserial PRIMARY KEY,
    event       text   NOT NULL COLLATE "C",
    task        text,                       -- null: a test
    webhook     text   NOT NULL COLLATE "C",
    url         text,                       -- of a callback; null: the webhook's
    state       text   NOT NULL CHECK (state IN ('waiting', 'pending', 'delivered', 'failed')),
    due_ms      bigint NOT NULL DEFAULT 0,  -- not before then; the end of the lease while there is one
    attempts    bigint NOT NULL DEFAULT 0,
    token       bigint,                     -- of the lease
    tried_at_ms bigint,
    status      bigint,                     -- of the last answer
    error       text,                       -- why there was none
    UNIQUE (event, webhook)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX deliveries_pending ON deliveries (webhook, due_ms) WHERE state = 'pending';
CREATE INDEX deliveries_of_webhook ON deliveries (webhook, number);
