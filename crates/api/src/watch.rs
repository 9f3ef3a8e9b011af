//! Clients that wait for changes of tasks instead of polling, by a long poll or an event stream.
//! Each one joins here, and the one watcher of the process (`follower`) puts changed tasks into its
//! mailbox.

mod follower;
mod hub;
mod keys;
mod mailbox;
mod permits;
mod renderings;
mod shared_hub;

use std::sync::Arc;

use kinora_contract::limits::{
    EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX, PROJECT_EVENT_STREAMS_PER_KEY_MAX, WAITS_MAX,
    WAITS_PER_KEY_MAX,
};
use kinora_store::{Ended, Glance, Tasks};
use tokio_util::sync::CancellationToken;

use mailbox::Mailbox;
use shared_hub::{SharedHub, WatchedProject};

pub(crate) use hub::Subject;
pub(crate) use keys::{KeyHold, WatchedKeys};
pub(crate) use mailbox::Letter;
pub(crate) use permits::{WaitPermit, WaitPermits};
pub(crate) use renderings::Rendering;

/// The waiting clients of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Watch {
    hub: Arc<SharedHub>,
    /// Of long polls.
    pub(crate) waits: WaitPermits,
    /// Of event streams.
    pub(crate) streams: WaitPermits,
    /// Of these, the ones that follow a whole project.
    pub(crate) project_streams: WaitPermits,
    /// Of all of them.
    pub(crate) keys: WatchedKeys,
}

/// A client's place among the waiting; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Waiter {
    hub: Arc<SharedHub>,
    project: Arc<WatchedProject>,
    subject: Subject,
    mailbox: Arc<Mailbox>,
}

impl Default for Watch {
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

impl Watch {
    /// Starts waiting for changes of `subject`. Delivers every change that is not yet readable when
    /// this returns, until `stopping`.
    pub(crate) fn join(
        &self,
        subject: Subject,
        tasks: &Arc<dyn Tasks>,
        stopping: &CancellationToken,
    ) -> Waiter {
        let (project, mailbox) = self.hub.join(&subject, || {
            let shared = Arc::downgrade(&self.hub);
            let (tasks, changes) = (tasks.clone(), tasks.changes());
            tokio::spawn(follower::follow(shared, tasks, changes, stopping.clone()));
        });
        // The follower closes what has joined before the stop.
        if stopping.is_cancelled() {
            mailbox.close();
        }
        Waiter {
            hub: self.hub.clone(),
            project,
            subject,
            mailbox,
        }
    }
}

impl Waiter {
    /// The changes received so far.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Records the tasks that a follower of a project has read itself, so that they are not
    /// delivered again.
    pub(crate) fn note(&self, unfinished: &[Glance], ended: &Ended) {
        if let Subject::Project(name) = &self.subject {
            self.project.hub().note(name, unfinished, ended);
        }
    }

    /// The rendering of the task of this letter, after its change. The clients of a project take
    /// turns here: the first one calls `render`, and the others get the result.
    pub(crate) async fn rendering<E>(
        &self,
        letter: Letter,
        render: impl AsyncFnOnce(Letter) -> Result<Option<Rendering>, E>,
    ) -> Result<Option<Rendering>, E> {
        let mut renderings = self.project.renderings.lock().await;
        let (id, change) = (letter.id, letter.change);
        if let Some(rendering) = renderings.after(id, change) {
            return Ok(rendering);
        }
        let covers = match &letter.task {
            // As it was read when the change was delivered.
            Some(_) => change,
            None => self.project.hub().changes(),
        };
        let rendering = render(letter).await?;
        renderings.put(id, covers, rendering.clone());
        Ok(rendering)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.hub.leave(&self.subject, &self.project, &self.mailbox);
    }
}

#[cfg(test)]
mod tests;
