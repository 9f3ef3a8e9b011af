-- Which of a project's waiting tasks go first: -1 high, 0 normal, 1 low. Earlier programs add normal tasks, and take all in
-- order of acceptance; without the old indexes they sort a project's line for each claim.
ALTER TABLE tasks ADD COLUMN priority smallint NOT NULL DEFAULT 0;

CREATE INDEX CONCURRENTLY tasks_claimable_in_turn ON tasks (project, model, priority, seq) WHERE place = 1;
CREATE INDEX CONCURRENTLY tasks_wanted_in_turn ON tasks (project, model, priority, seq) WHERE place = 2;
DROP INDEX CONCURRENTLY tasks_claimable;
DROP INDEX CONCURRENTLY tasks_wanted;
