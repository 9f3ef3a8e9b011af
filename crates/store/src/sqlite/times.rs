//! The times that a transition writes into its task. They never run backwards within a task, whatever the
//! clock did meanwhile.

use kinora_contract::{Task, UnixMs};

/// Notes that a worker has the task; the first one counts.
pub(super) fn start(task: &mut Task, now_ms: UnixMs) {
    let at_ms = now_ms.max(task.created_at_ms);
    task.started_at_ms.get_or_insert(at_ms);
}

/// Notes that the task has ended, after a step back of the clock when it began. From then on it is kept for as long
/// as any other: should the step back be the mistake, its result does not go the sooner.
pub(super) fn end(task: &mut Task, now_ms: UnixMs, expires_at_ms: UnixMs) {
    let begun_ms = task.started_at_ms.unwrap_or(0).max(task.created_at_ms);
    let ended_ms = now_ms.max(begun_ms);
    task.finished_at_ms = Some(ended_ms);
    task.expires_at_ms = Some(expires_at_ms.saturating_add(ended_ms - now_ms));
}
