//! A mailbox: the changed tasks that one waiting request or stream has not handled yet. It holds
//! each task only once, however often the task changes. So a slow reader misses intermediate states
//! but never the last one, and uses little memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::limits::EVENTS_UNREAD_MAX;
use kinora_contract::{Task, TaskId};
use tokio::sync::Notify;

/// Capacity that an empty mailbox keeps, in updates.
const EMPTY_CAPACITY: usize = 8;

/// A changed task.
#[derive(Clone, Debug)]
pub(crate) struct TaskUpdate {
    /// The task's id.
    pub(crate) id: TaskId,
    /// The task after the change; `None` if the reader must read it.
    pub(crate) task: Option<Arc<Task>>,
    /// Number of the change in its project; `u64::MAX` if the reader must read it anyway.
    pub(crate) change: u64,
}

/// The updates for one reader.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    updates: Mutex<UnreadUpdates>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct UnreadUpdates {
    /// Unread updates, ordered by the first change of their tasks.
    waiting: BTreeMap<u64, TaskUpdate>,
    /// The places of the tasks in it.
    places: HashMap<TaskId, u64>,
    next: u64,
    is_over: bool,
}

impl Mailbox {
    /// Adds a changed task. Only the first update carries the task itself: the others would hold
    /// memory for a reader that does not read.
    pub(super) fn put(&self, id: TaskId, task: Option<&Arc<Task>>, change: u64) {
        let mut updates = self.lock();
        if updates.is_over {
            return;
        }
        let first = updates.waiting.first_key_value();
        let is_first = first.is_none_or(|(_, first)| first.id == id);
        let task = task.filter(|_| is_first).cloned();
        let update = TaskUpdate { id, task, change };
        let place = updates.places.get(&id).copied();
        if place.is_none() && updates.waiting.len() >= EVENTS_UNREAD_MAX {
            updates.end();
        } else {
            // A task that changes again keeps the place of its first change: otherwise one that
            // reports progress every second would never get to the front of a slow reader's
            // mailbox.
            let place = place.unwrap_or(updates.next);
            updates.next = updates.next.max(place + 1);
            updates.places.insert(id, place);
            updates.waiting.insert(place, update);
        }
        drop(updates);
        self.moved.notify_one();
    }

    /// Closes the mailbox to new updates; the remaining ones can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_over = true;
        self.moved.notify_one();
    }

    /// The next update.
    pub(crate) fn pop(&self) -> Option<TaskUpdate> {
        let mut updates = self.lock();
        let (_, next) = updates.waiting.pop_first()?;
        updates.places.remove(&next.id);
        if updates.places.is_empty() {
            updates.places.shrink_to(EMPTY_CAPACITY);
        }
        Some(next)
    }

    /// Removes the update about this task, which its reader is about to read anyway.
    pub(crate) fn remove(&self, id: TaskId) {
        let mut updates = self.lock();
        if let Some(place) = updates.places.remove(&id) {
            updates.waiting.remove(&place);
        }
    }

    /// Whether there is no update.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Whether no more updates will come: the service stops, or the reader fell too far behind.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Waits until there is an update, or no more will come.
    pub(crate) async fn moved(&self) {
        loop {
            // Before the check: an update that is put between the check and the wait then ends the
            // wait.
            let moved = self.moved.notified();
            if !self.is_empty() || self.is_over() {
                return;
            }
            moved.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnreadUpdates> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnreadUpdates {
    /// Closes the mailbox and drops its updates; a client that reconnects receives their tasks
    /// then.
    fn end(&mut self) {
        self.waiting = BTreeMap::new();
        self.places = HashMap::new();
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> TaskId {
        TaskId::from_parts(number as u64, [0; 10])
    }

    #[tokio::test]
    async fn a_task_waits_once_in_the_place_of_its_first_change() {
        let mailbox = Mailbox::default();
        for number in [1, 2, 1, 3, 2] {
            mailbox.put(id(number), None, 1);
        }
        mailbox.remove(id(3));
        mailbox.moved().await;
        let taken: Vec<_> = std::iter::from_fn(|| mailbox.pop()).collect();
        let ids: Vec<_> = taken.into_iter().map(|update| update.id).collect();
        assert_eq!(ids, [1, 2].map(id));
        assert!(mailbox.is_empty() && !mailbox.is_over());
    }

    #[tokio::test]
    async fn p15_a_reader_that_does_not_read_is_ended_at_the_bound() {
        let mailbox = Mailbox::default();
        for _ in 0..3 {
            for number in 0..EVENTS_UNREAD_MAX {
                mailbox.put(id(number), None, 1);
            }
        }
        assert!(!mailbox.is_over());
        mailbox.put(id(EVENTS_UNREAD_MAX), None, 1);
        mailbox.moved().await;
        assert!(mailbox.is_over() && mailbox.is_empty());
        mailbox.put(id(1), None, 1);
        assert!(mailbox.is_empty(), "nothing more is kept for it");
    }
}
