//! The one watcher of a process. It follows the store's changes, reads each changed task once for
//! all waiting clients, and periodically checks every awaited task in case a change was missed.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::TaskId;
use kinora_contract::limits::EVENTS_RESUMED_MAX;
use kinora_store::{Changes, EndedRequest, StoreError, TaskChange, Tasks};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::shared_hub::SharedHub;

/// Maximum number of changes that are read together.
const HEARD_AT_ONCE: usize = 256;
/// Maximum number of tasks in one query of a check.
const LOOKED_AT_ONCE: usize = 1_000;
/// Minimum pause between two checks.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Added to that pause for each awaited task and each project, so that checks cost the store
/// little.
const LOOK_PAUSE_PER_TASK: Duration = Duration::from_millis(1);
const LOOK_PAUSE_PER_PROJECT: Duration = Duration::from_millis(20);
/// Pause before a check when a change was missed.
const MISSED_PAUSE: Duration = Duration::from_millis(100);

/// Follows `changes` until no client waits or the service stops.
pub(super) async fn follow(
    hub: Weak<SharedHub>,
    tasks: Arc<dyn Tasks>,
    mut changes: Changes,
    stopping: CancellationToken,
) {
    let mut look = pin!(sleep(LOOK_PAUSE));
    // Whether the next check was brought forward.
    let mut is_early = false;
    loop {
        let heard = tokio::select! {
            biased;
            () = stopping.cancelled() => {
                if let Some(hub) = hub.upgrade() {
                    hub.close();
                }
                return;
            }
            change = changes.next() => Some(change),
            () = look.as_mut() => None,
        };
        let Some(hub) = hub.upgrade() else {
            return;
        };
        if hub.is_abandoned() {
            return;
        }
        let has_missed = match heard {
            Some(first) => !hear(&hub, &*tasks, &mut changes, first).await,
            None => {
                if let Err(error) = look_at_all(&hub, &*tasks).await {
                    tracing::debug!(%error, "tasks with waiting clients not read");
                }
                is_early = false;
                look.set(sleep(look_pause(&hub)));
                false
            }
        };
        if has_missed && !is_early {
            is_early = true;
            look.set(sleep(MISSED_PAUSE));
        }
    }
}

/// Delivers `first` and all other changes received by now; returns whether none was missed.
async fn hear(
    shared: &SharedHub,
    tasks: &dyn Tasks,
    changes: &mut Changes,
    first: TaskChange,
) -> bool {
    let mut ids = BTreeSet::new();
    let mut next = Some(first);
    let mut is_complete = true;
    while let Some(change) = next {
        match change {
            TaskChange::Of(id) => drop(ids.insert(id)),
            TaskChange::Unknown => is_complete = false,
        }
        next = if ids.len() < HEARD_AT_ONCE {
            changes.try_next()
        } else {
            None
        };
    }
    let ids = shared.concerning(ids);
    let read = join_all(ids.iter().map(|id| tasks.task(*id))).await;
    let mut read: Vec<_> = ids.into_iter().zip(read).collect();
    // In the order of their ends: the id of an event says that its client has all earlier ones.
    read.sort_by_key(|(_, read)| read.as_ref().ok()?.as_ref()?.finished_at_ms);
    for (id, read) in read {
        match read {
            Ok(task) => shared.tell(id, task.as_ref()),
            Err(_) => is_complete = false,
        }
    }
    is_complete
}

/// Delivers all changes that were missed.
async fn look_at_all(shared: &SharedHub, tasks: &dyn Tasks) -> Result<(), StoreError> {
    for some in shared.begin_look().chunks(LOOKED_AT_ONCE) {
        let ids: Vec<TaskId> = some.iter().map(|(id, _)| *id).collect();
        let glances = tasks.glance(&ids).await?;
        for ((id, project), glance) in some.iter().zip(glances) {
            project.hub().tell_glance(*id, glance, None);
        }
    }
    for (name, since_ms, project) in shared.followed() {
        let request = EndedRequest {
            project: name.to_string(),
            since_ms,
            limit: EVENTS_RESUMED_MAX,
        };
        // Read before the ended tasks, so that a task which ends in between is reported as ended.
        let unfinished = tasks.unfinished(&name).await?;
        let ended = tasks.ended(request).await?;
        project.hub().tell_project(&name, &unfinished, &ended);
    }
    Ok(())
}

/// The pause before the next check.
fn look_pause(hub: &SharedHub) -> Duration {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (tasks, followers) = hub.counts();
    let tasks = LOOK_PAUSE_PER_TASK.saturating_mul(count(tasks));
    let projects = LOOK_PAUSE_PER_PROJECT.saturating_mul(count(followers));
    LOOK_PAUSE.max(tasks.saturating_add(projects))
}
