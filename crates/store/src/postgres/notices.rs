//! What this process is to say to the others: the hints of its commits, and the ended tasks that they changed, put
//! together.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Hints;
use tokio::sync::Notify;

/// Tasks that a notice names; of more it says only that they are many. A notice has room for 8,000 bytes.
const NAMED_MAX: usize = 150;

/// What is to be said.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pending: Mutex<Pending>,
    pub(super) moved: Notify,
}

/// Commits that the other processes do not know of yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    hints: Hints,
    /// `None`: too many.
    ids: Option<BTreeSet<TaskId>>,
    any: bool,
}

impl Notices {
    /// Adds a commit: its hints, and tasks that others may remember as they were before.
    pub(super) fn add(&self, hints: Hints, ids: impl Iterator<Item = TaskId>) {
        let mut ids = ids.peekable();
        if hints == Hints::default() && ids.peek().is_none() {
            return;
        }
        let mut pending = self.pending();
        if !pending.any {
            *pending = Pending {
                ids: Some(BTreeSet::new()),
                any: true,
                ..Pending::default()
            };
        }
        pending.hints = pending.hints.or(hints);
        if let Some(named) = &mut pending.ids {
            named.extend(ids);
            if named.len() > NAMED_MAX {
                pending.ids = None;
            }
        }
        drop(pending);
        self.moved.notify_one();
    }

    /// What has come together since the last time.
    pub(super) fn take(&self) -> Option<Pending> {
        let pending = std::mem::take(&mut *self.pending());
        pending.any.then_some(pending)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A notice as it is sent: who sends it, the hints, the tasks.
pub(super) fn written(origin: u64, pending: &Pending) -> String {
    let mut hints = String::new();
    hints.extend(pending.hints.work.then_some('w'));
    hints.extend(pending.hints.withdrawn.then_some('x'));
    let ids = match &pending.ids {
        None => "*".to_owned(),
        Some(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            ids.join(",")
        }
    };
    format!("{origin}:{hints}:{ids}")
}
