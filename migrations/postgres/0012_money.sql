-- What tasks cost, by the prices of their models: the cost of a task (JSON), the sums of ended ones in millionths of the
-- service's currency, and the budgets of keys.
ALTER TABLE tasks ADD COLUMN price text;
ALTER TABLE tallies ADD COLUMN cost_micros bigint NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN budget_per_day bigint;
ALTER TABLE api_keys ADD COLUMN budget_per_month bigint;
-- The first of the keys that replaced each other, whose sums count for all of them. NULL: the key itself.
ALTER TABLE api_keys ADD COLUMN budget_id text;

-- What the tasks of a project or of a key cost on the last day and in the last month in which there were any. Unfinished
-- ones count with their estimates. All changes are made under the lock of the project's row.
CREATE TABLE spending (
    scope        text   PRIMARY KEY COLLATE "C", -- 'project:' or 'key:', and its name or id (of the first of rotated keys)
    day          bigint NOT NULL, -- days since 1970 (UTC)
    day_micros   bigint NOT NULL,
    month        bigint NOT NULL, -- 12 times the year, and the months of the year before it
    month_micros bigint NOT NULL
);

-- The day of all budgets, one row. Only a sweep that trusts the clock moves it.
CREATE TABLE budget_day (day bigint NOT NULL); -- 0: not known yet
INSERT INTO budget_day (day) VALUES (0);
