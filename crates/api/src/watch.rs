//! Clients that wait for changes of tasks instead of polling, by a long poll or an event stream.
//! One follower per process reads each changed task once and puts it into the mailboxes of all
//! clients that wait for it. A change that it misses is found by its next check.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::TaskId;
use kinora_contract::limits::{
    EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX, EVENTS_RESUMED_MAX,
    PROJECT_EVENT_STREAMS_PER_KEY_MAX, WAITS_MAX, WAITS_PER_KEY_MAX,
};
use kinora_store::{
    ChangeReceiver, EndedRequest, EndedTasks, StoreError, TaskChange, TaskGlance, TaskStore,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub(crate) use hub::WatchSubject;
use hub::{SharedHub, WatchedProject};
pub(crate) use limits::{KeyHold, WaitPermit, WaitPermits, WatchedKeys};
use mailbox::Mailbox;
pub(crate) use mailbox::TaskUpdate;
pub(crate) use renderings::RenderedTask;

mod hub;
mod limits;
mod mailbox;
mod renderings;

/// The waiting clients of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct TaskWatch {
    hub: Arc<SharedHub>,
    /// Permits for long polls.
    pub(crate) waits: WaitPermits,
    /// Permits for event streams.
    pub(crate) streams: WaitPermits,
    /// Additional permits for event streams of a whole project.
    pub(crate) project_streams: WaitPermits,
    /// The API keys of all waiting clients.
    pub(crate) keys: WatchedKeys,
}

/// A client's place among the waiting; dropping it leaves.
#[derive(Debug)]
pub(crate) struct TaskWaiter {
    hub: Arc<SharedHub>,
    project: Arc<WatchedProject>,
    subject: WatchSubject,
    mailbox: Arc<Mailbox>,
}

impl Default for TaskWatch {
    fn default() -> Self {
        Self {
            hub: Arc::default(),
            waits: WaitPermits::new(WAITS_MAX, WAITS_PER_KEY_MAX),
            streams: WaitPermits::new(EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX),
            project_streams: WaitPermits::new(EVENT_STREAMS_MAX, PROJECT_EVENT_STREAMS_PER_KEY_MAX),
            keys: WatchedKeys::default(),
        }
    }
}

impl TaskWatch {
    /// Starts waiting for changes of `subject`. Delivers every change that is not yet readable when
    /// this returns, until `stopping`.
    pub(crate) fn join(
        &self,
        subject: WatchSubject,
        tasks: &Arc<dyn TaskStore>,
        stopping: &CancellationToken,
    ) -> TaskWaiter {
        let (project, mailbox) = self.hub.join(&subject, || {
            let shared = Arc::downgrade(&self.hub);
            let (tasks, changes) = (tasks.clone(), tasks.changes());
            tokio::spawn(follow(shared, tasks, changes, stopping.clone()));
        });
        // The follower closes what has joined before the stop.
        if stopping.is_cancelled() {
            mailbox.close();
        }
        TaskWaiter {
            hub: self.hub.clone(),
            project,
            subject,
            mailbox,
        }
    }
}

impl TaskWaiter {
    /// The changes received so far.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Records the tasks that a follower of a project has read itself, so that they are not
    /// delivered again.
    pub(crate) fn record_read(&self, unfinished: &[TaskGlance], ended: &EndedTasks) {
        if let WatchSubject::Project(name) = &self.subject {
            self.project.hub().record_read(name, unfinished, ended);
        }
    }

    /// The rendering of the task of this update, after its change. The clients of a project take
    /// turns here: the first one calls `render`, and the others get the result.
    pub(crate) async fn rendering<E>(
        &self,
        update: TaskUpdate,
        render: impl AsyncFnOnce(TaskUpdate) -> Result<Option<RenderedTask>, E>,
    ) -> Result<Option<RenderedTask>, E> {
        let mut renderings = self.project.renderings.lock().await;
        let (id, change) = (update.id, update.change);
        if let Some(rendering) = renderings.after(id, change) {
            return Ok(rendering);
        }
        // A rendering may be reused for every change that it shows. A task that came with the
        // update shows that change. One that `render` reads shows at least all changes up to now,
        // so the number is taken before the read; a later change may be in it too, and then is
        // rendered once more for nothing.
        let covers = match &update.task {
            // As it was read when the change was delivered.
            Some(_) => change,
            None => self.project.hub().changes(),
        };
        let rendering = render(update).await?;
        renderings.put(id, covers, rendering.clone());
        Ok(rendering)
    }
}

impl Drop for TaskWaiter {
    fn drop(&mut self) {
        self.hub.leave(&self.subject, &self.project, &self.mailbox);
    }
}

/// Maximum number of changes that are read together.
const CHANGES_AT_ONCE: usize = 256;
/// Maximum number of tasks in one query of a check.
const CHECKED_AT_ONCE: usize = 1_000;
/// Minimum pause between two checks.
const CHECK_PAUSE: Duration = Duration::from_secs(2);
/// Added to that pause for each awaited task and each project, so that checks cost the store
/// little.
const CHECK_PAUSE_PER_TASK: Duration = Duration::from_millis(1);
const CHECK_PAUSE_PER_PROJECT: Duration = Duration::from_millis(20);
/// Pause before a check when a change was missed.
const MISSED_PAUSE: Duration = Duration::from_millis(100);

/// Follows `changes` until no client waits or the service stops.
async fn follow(
    hub: Weak<SharedHub>,
    tasks: Arc<dyn TaskStore>,
    mut changes: ChangeReceiver,
    stopping: CancellationToken,
) {
    // Two sources of changes. Notifications are fast, but may be lost: another process's may not
    // arrive, or a read of the store may fail. Checks compare the state of everything that clients
    // wait for, and find whatever was lost. The hub delivers a state once, however it was found.
    let mut look = pin!(sleep(CHECK_PAUSE));
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
        // Weak: the follower must not keep a hub alive that nobody uses any more.
        let Some(hub) = hub.upgrade() else {
            return;
        };
        if hub.is_abandoned() {
            return;
        }
        let has_missed = match heard {
            Some(first) => !deliver_changes(&hub, &*tasks, &mut changes, first).await,
            None => {
                if let Err(error) = check_all(&hub, &*tasks).await {
                    tracing::debug!(%error, "tasks with waiting clients not read");
                }
                is_early = false;
                look.set(sleep(check_pause(&hub)));
                false
            }
        };
        // Brought forward once per check: during an outage every change is missed, and a check for
        // each would make it worse.
        if has_missed && !is_early {
            is_early = true;
            look.set(sleep(MISSED_PAUSE));
        }
    }
}

/// Delivers `first` and all other changes received by now; returns whether none was missed.
async fn deliver_changes(
    shared: &SharedHub,
    tasks: &dyn TaskStore,
    changes: &mut ChangeReceiver,
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
        next = if ids.len() < CHANGES_AT_ONCE {
            changes.try_next()
        } else {
            None
        };
    }
    // Most changes concern nobody: reading only the tasks that clients wait for makes the cost
    // depend on the waiting clients, not on the load of the service.
    let ids = shared.concerning(ids);
    let read = join_all(ids.iter().map(|id| tasks.task(*id))).await;
    let mut read: Vec<_> = ids.into_iter().zip(read).collect();
    // In the order of their ends: the id of an event says that its client has all earlier ones.
    read.sort_by_key(|(_, read)| read.as_ref().ok()?.as_ref()?.finished_at_ms);
    for (id, read) in read {
        match read {
            Ok(task) => shared.deliver(id, task.as_ref()),
            Err(_) => is_complete = false,
        }
    }
    is_complete
}

/// Delivers all changes that were missed.
async fn check_all(shared: &SharedHub, tasks: &dyn TaskStore) -> Result<(), StoreError> {
    for some in shared.begin_check().chunks(CHECKED_AT_ONCE) {
        let ids: Vec<TaskId> = some.iter().map(|(id, _)| *id).collect();
        let glances = tasks.glance(&ids).await?;
        for ((id, project), glance) in some.iter().zip(glances) {
            project.hub().deliver_glance(*id, glance, None);
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
        project.hub().deliver_project(&name, &unfinished, &ended);
    }
    Ok(())
}

/// The pause before the next check.
fn check_pause(hub: &SharedHub) -> Duration {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (tasks, followers) = hub.counts();
    let tasks = CHECK_PAUSE_PER_TASK.saturating_mul(count(tasks));
    let projects = CHECK_PAUSE_PER_PROJECT.saturating_mul(count(followers));
    CHECK_PAUSE.max(tasks.saturating_add(projects))
}

#[cfg(test)]
mod tests;
