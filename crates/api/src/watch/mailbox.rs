//! A mailbox: the changed tasks that one waiting request or stream has not handled yet. It holds
//! each task only once, however often the task changes. So a slow reader misses intermediate states
//! but never the last one, and uses little memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::limits::EVENTS_UNREAD_MAX;
use kinora_contract::{Task, TaskId};
use tokio::sync::Notify;

/// Capacity that an empty mailbox keeps, in letters.
const KEPT_CAPACITY: usize = 8;

/// A changed task.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    /// The task's id.
    pub(crate) id: TaskId,
    /// The task after the change; `None` if the reader must read it.
    pub(crate) task: Option<Arc<Task>>,
}

/// The letters for one reader.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct Letters {
    waiting: VecDeque<Letter>,
    is_over: bool,
}

impl Mailbox {
    /// Adds a changed task. Only the first letter carries the task itself: the others would hold
    /// memory for a reader that does not read.
    pub(super) fn put(&self, id: TaskId, task: Option<&Arc<Task>>) {
        let mut letters = self.lock();
        if letters.is_over {
            return;
        }
        let is_first = letters.waiting.front().is_none_or(|first| first.id == id);
        let task = task.filter(|_| is_first).cloned();
        let has_room = letters.waiting.len() < EVENTS_UNREAD_MAX;
        match letters.waiting.iter_mut().find(|letter| letter.id == id) {
            Some(letter) => letter.task = task,
            None if has_room => letters.waiting.push_back(Letter { id, task }),
            None => letters.end(),
        }
        drop(letters);
        self.moved.notify_one();
    }

    /// Closes the mailbox to new letters; the remaining ones can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_over = true;
        self.moved.notify_one();
    }

    /// The next letter.
    pub(crate) fn take(&self) -> Option<Letter> {
        let mut letters = self.lock();
        let next = letters.waiting.pop_front();
        if letters.waiting.is_empty() && letters.waiting.capacity() > KEPT_CAPACITY {
            letters.waiting.shrink_to(KEPT_CAPACITY);
        }
        next
    }

    /// Removes the letter about this task, which its reader is about to read anyway.
    pub(crate) fn remove(&self, id: TaskId) {
        self.lock().waiting.retain(|letter| letter.id != id);
    }

    /// Whether there is no letter.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Whether no more letters will come: the service stops, or the reader fell too far behind.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Waits until there is a letter, or no more will come.
    pub(crate) async fn moved(&self) {
        loop {
            let moved = self.moved.notified();
            if !self.is_empty() || self.is_over() {
                return;
            }
            moved.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letters {
    /// Closes the mailbox and drops its letters; a client that reconnects receives their tasks
    /// then.
    fn end(&mut self) {
        self.waiting = VecDeque::new();
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
            mailbox.put(id(number), None);
        }
        mailbox.remove(id(3));
        mailbox.moved().await;
        let taken: Vec<_> = std::iter::from_fn(|| mailbox.take()).collect();
        let ids: Vec<_> = taken.into_iter().map(|letter| letter.id).collect();
        assert_eq!(ids, [1, 2].map(id));
        assert!(mailbox.is_empty() && !mailbox.is_over());
    }

    #[tokio::test]
    async fn p15_a_reader_that_does_not_read_is_ended_at_the_bound() {
        let mailbox = Mailbox::default();
        for _ in 0..3 {
            for number in 0..EVENTS_UNREAD_MAX {
                mailbox.put(id(number), None);
            }
        }
        assert!(!mailbox.is_over());
        mailbox.put(id(EVENTS_UNREAD_MAX), None);
        mailbox.moved().await;
        assert!(mailbox.is_over() && mailbox.is_empty());
        mailbox.put(id(1), None);
        assert!(mailbox.is_empty(), "nothing more is kept for it");
    }
}
