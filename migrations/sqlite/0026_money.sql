-- What tasks cost, by the prices of their models: the cost of a task (JSON), the sums of ended ones in millionths of the
-- service's currency, and the budgets of keys.
ALTER TABLE tasks ADD COLUMN price TEXT;
ALTER TABLE tallies ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN budget_per_day INTEGER;
ALTER TABLE api_keys ADD COLUMN budget_per_month INTEGER;
-- The first of the keys that replaced each other, whose sums count for all of them. NULL: the key itself.
ALTER TABLE api_keys ADD COLUMN budget_id TEXT;

-- What the tasks of a project or of a key cost on the last day and in the last month in which there were any. Unfinished
-- ones count with their estimates.
CREATE TABLE spending (
    scope        TEXT    PRIMARY KEY NOT NULL, -- 'project:' or 'key:', and its name or id (of the first of rotated keys)
    day          INTEGER NOT NULL, -- days since 1970 (UTC)
    day_micros   INTEGER NOT NULL,
    month        INTEGER NOT NULL, -- 12 times the year, and the months of the year before it
    month_micros INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The day of all budgets, one row. Only a sweep that trusts the clock moves it.
CREATE TABLE budget_day (day INTEGER NOT NULL) STRICT; -- 0: not known yet
INSERT INTO budget_day (day) VALUES (0);
