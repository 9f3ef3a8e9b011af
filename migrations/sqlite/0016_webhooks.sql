-- Receivers of events, by project. One without an address signs what goes to the `callback_url` of requests.
CREATE TABLE webhooks (
    id             TEXT    PRIMARY KEY NOT NULL,
    project        TEXT    NOT NULL,
    url            TEXT,
    secret         BLOB    NOT NULL CHECK (length(secret) = 32),
    old_secret     BLOB    CHECK (length(old_secret) = 32), -- signs beside the other
    old_until_ms   INTEGER,                                 -- until then
    created_at_ms  INTEGER NOT NULL,
    disabled_at_ms INTEGER                                  -- the receiver said that it is gone
) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_of_project ON webhooks (project);
CREATE UNIQUE INDEX webhooks_of_callbacks ON webhooks (project) WHERE url IS NULL;

-- Events on their way to webhooks, and the log of those that have arrived or were given up. A delivery is leased by
-- whoever makes it.
CREATE TABLE deliveries (
    number      INTEGER PRIMARY KEY,
    event       TEXT    NOT NULL,
    task        TEXT,                        -- null: a test
    webhook     TEXT    NOT NULL,
    url         TEXT,                        -- of a callback; null: the webhook's
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'pending', 'delivered', 'failed')),
    due_ms      INTEGER NOT NULL DEFAULT 0,  -- not before then; the end of the lease while there is one
    attempts    INTEGER NOT NULL DEFAULT 0,
    token       INTEGER,                     -- of the lease
    tried_at_ms INTEGER,
    status      INTEGER,                     -- of the last answer
    error       TEXT,                        -- why there was none
    UNIQUE (event, webhook)
) STRICT;

CREATE INDEX deliveries_pending ON deliveries (webhook, due_ms) WHERE state = 'pending';
CREATE INDEX deliveries_of_webhook ON deliveries (webhook, number);
