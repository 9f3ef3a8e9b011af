-- When a key was last used, kept to about a minute for `kinora keys list`. Nothing else depends on
-- it, so that it does not move the counter by which a serving process sees that keys have changed.
ALTER TABLE api_keys ADD COLUMN last_used_at_ms INTEGER;

DROP TRIGGER api_keys_changed;
CREATE TRIGGER api_keys_changed AFTER UPDATE OF
    id, sha256, name, project, scopes, models, requests_per_minute, unfinished_max, created_at_ms,
    expires_at_ms, revoked_at_ms
ON api_keys BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'api_keys';
END;
