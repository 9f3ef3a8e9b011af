-- What a project's event stream asks for when it goes on after a break: which tasks have ended since.
CREATE INDEX CONCURRENTLY tasks_of_project_by_end ON tasks (project, finished_at_ms, id) WHERE finished_at_ms IS NOT NULL;
