//! The ends of tasks, for their callbacks and the webhooks of their projects, in PostgreSQL.

use kinora_contract::TaskId;
use kinora_contract::webhook::event_id;

use super::statement::Statement;

/// Notes the ends of tasks, each with its project, for their callbacks and the webhooks of their
/// projects.
pub(super) fn note_ends(ended: Vec<(TaskId, String)>) -> [Statement; 2] {
    let events: Vec<String> = ended.iter().map(|(task, _)| event_id(*task)).collect();
    let tasks = ended.iter().map(|(task, _)| task.to_string()).collect();
    let projects = ended.into_iter().map(|(_, project)| project).collect();
    let callbacks = Statement::new(
        "UPDATE deliveries SET state = 'pending' WHERE event = ANY($1) AND state = 'waiting'",
    );
    let others = Statement::new(
        "INSERT INTO deliveries (event, task, webhook, state) SELECT e.event, e.task, w.id, 'pending' \
         FROM unnest($1, $2, $3) AS e(event, task, project) JOIN webhooks w ON w.project = e.project \
         WHERE w.url IS NOT NULL AND w.disabled_at_ms IS NULL ON CONFLICT (event, webhook) DO NOTHING",
    );
    [
        callbacks.texts(events.clone()),
        others.texts(events).texts(tasks).texts(projects),
    ]
}
