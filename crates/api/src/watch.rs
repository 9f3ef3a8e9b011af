//! Clients that wait for changes of tasks instead of polling, by a long poll or an event stream.
//! Each one joins here, and the one watcher of the process (`follower`) puts changed tasks into its
//! mailbox.

mod follower;
mod hub;
mod mailbox;
mod permits;

use std::sync::Arc;

use kinora_contract::limits::{
    EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX, WAITS_MAX, WAITS_PER_KEY_MAX,
};
use kinora_store::{Ended, Glance, Tasks};
use tokio_util::sync::CancellationToken;

use hub::SharedHub;
use mailbox::Mailbox;

pub(crate) use hub::Subject;
pub(crate) use mailbox::Letter;
pub(crate) use permits::{WaitPermit, WaitPermits};

/// The waiting clients of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Watch {
    hub: Arc<SharedHub>,
    /// Of long polls.
    pub(crate) waits: WaitPermits,
    /// Of event streams.
    pub(crate) streams: WaitPermits,
}

/// A client's place among the waiting; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Waiter {
    hub: Arc<SharedHub>,
    subject: Subject,
    mailbox: Arc<Mailbox>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            hub: Arc::default(),
            waits: WaitPermits::new(WAITS_MAX, WAITS_PER_KEY_MAX),
            streams: WaitPermits::new(EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX),
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
        let mut hub = self.hub.lock();
        let mailbox = hub.join(&subject);
        if stopping.is_cancelled() {
            mailbox.close();
        } else if !std::mem::replace(&mut hub.is_followed, true) {
            let shared = Arc::downgrade(&self.hub);
            let (tasks, changes) = (tasks.clone(), tasks.changes());
            tokio::spawn(follower::follow(shared, tasks, changes, stopping.clone()));
        }
        drop(hub);
        Waiter {
            hub: self.hub.clone(),
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
            self.hub.lock().note(name, unfinished, ended);
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.hub.lock().leave(&self.subject, &self.mailbox);
    }
}

#[cfg(test)]
mod tests;
