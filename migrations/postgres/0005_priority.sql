-- Which of a project's waiting tasks go first: -1 high, 0 normal, 1 low. Earlier programs add normal tasks, and take all in
-- order of acceptance; without the old indexes they sort a project's line for each claim.
ALTER TABLE tasks ADD COLUMN priority smallint NOT NULL DEFAULT 0;

DROP INDEX tasks_claimable, tasks_wanted;
CREATE INDEX tasks_claimable ON tasks (project, model, priority, seq) WHERE place = 1;
CREATE INDEX tasks_wanted ON tasks (project, model, priority, seq) WHERE place = 2;
