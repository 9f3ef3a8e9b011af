//! Metrics of committed changes and of reads. The process that commits a change counts it, so sums over
//! all processes of a service are correct. Without a recorder this costs almost nothing.

use std::time::Duration;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{Task, TaskState};
use metrics::{counter, histogram};

use crate::queue::RecordChange;

/// Counts the changes of a commit.
pub(crate) fn committed<'a>(changes: impl IntoIterator<Item = &'a RecordChange>) {
    // A commit of many submits has few models, and looking up a counter by its labels costs more than
    // the rest: sum first. A list, since a map of two or three models would be slower.
    let mut accepted: Vec<(&str, u64)> = Vec::new();
    for change in changes {
        match (change.before.as_deref(), change.after.as_deref()) {
            (None, Some(after)) => add(&mut accepted, &after.task.spec.model),
            (Some(before), Some(after)) => changed(before, after),
            (_, None) => {}
        }
    }
    for (model, count) in accepted {
        counter!("kinora_tasks_accepted_total", "model" => model.to_owned()).increment(count);
    }
}

fn add<'a>(counts: &mut Vec<(&'a str, u64)>, model: &'a str) {
    match counts.iter_mut().find(|(other, _)| *other == model) {
        Some((_, count)) => *count += 1,
        None => counts.push((model, 1)),
    }
}

/// Records the duration of a commit.
pub(crate) fn commit_took(took: Duration) {
    histogram!("kinora_store_commit_seconds").record(took);
}

/// Records the duration of a read that memory could not answer.
pub(crate) fn read_took(took: Duration) {
    histogram!("kinora_store_read_seconds").record(took);
}

fn changed(before: &TaskRecord, after: &TaskRecord) {
    let task = &after.task;
    if before.is_waiting() && after.is_running() {
        counter!("kinora_attempts_total", "model" => model(task)).increment(1);
        // `started_at_ms` is the time of the first claim: a later claim, after a failed attempt,
        // would count the same wait again.
        if let Some(started_ms) = task.started_at_ms.filter(|_| task.attempt <= 1) {
            let waited_ms = started_ms.saturating_sub(task.created_at_ms);
            histogram!("kinora_task_waiting_seconds", "model" => model(task))
                .record(seconds(waited_ms));
        }
    }
    if !before.is_terminal() && after.is_terminal() {
        ended(task);
    }
}

fn ended(task: &Task) {
    match &task.state {
        TaskState::Completed(_) => {
            counter!("kinora_tasks_completed_total", "model" => model(task)).increment(1);
            if let (Some(started_ms), Some(finished_ms)) = (task.started_at_ms, task.finished_at_ms)
            {
                histogram!("kinora_task_running_seconds", "model" => model(task))
                    .record(seconds(finished_ms.saturating_sub(started_ms)));
            }
        }
        TaskState::Failed(failure) => {
            let code = failure.code.as_str().to_owned();
            counter!("kinora_tasks_failed_total", "model" => model(task), "code" => code)
                .increment(1);
        }
        TaskState::Waiting | TaskState::Running | TaskState::Expired => {}
    }
}

fn model(task: &Task) -> String {
    task.spec.model.clone()
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_is_counted_by_itself() {
        let mut counts = Vec::new();
        for model in ["a", "b", "a", "c", "a", "b"] {
            add(&mut counts, model);
        }
        assert_eq!(counts, [("a", 3), ("b", 2), ("c", 1)]);
    }
}
