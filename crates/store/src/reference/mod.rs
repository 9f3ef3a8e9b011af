//! A store that keeps everything in maps behind one lock: the simplest implementation of the
//! interface, for tests and for authors of other stores. It has no rules of its own, answers
//! queries by scanning all tasks, and has no URL. Handles are clones; their shared data outlives
//! them as a disk outlives a process.

mod chore_row;
mod chores;
mod delivery_row;
mod keys;
mod operations;
mod state;
mod sweep;
mod tasks;
#[cfg(test)]
mod tests;
mod webhooks;
mod work;
mod workers;

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, State as Phase, Task, TaskId};

use crate::{HELD_RESULTS_MAX, Holds, Reads, Store, StoreError};
use state::State;

/// A handle on a store in memory. Any number of them serve it together.
#[derive(Clone, Debug)]
pub struct ReferenceStore {
    state: Arc<Mutex<State>>,
}

impl ReferenceStore {
    /// An empty store; `identity` distinguishes it from others.
    pub fn new(identity: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(identity, clock))),
        }
    }

    /// The same store, reopened after all its handles have died. Steady time restarts.
    #[must_use]
    pub fn reopened(&self, clock: Arc<dyn Clock>) -> Self {
        self.state().reopen(clock);
        self.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for ReferenceStore {
    fn holds(&self) -> Holds {
        let state = self.state();
        let result = |record: &Arc<Record>| match &record.task.state {
            Phase::Completed(artifact) => Some((
                Reverse(record.task.expires_at_ms),
                artifact.video.key.clone(),
            )),
            _ => None,
        };
        let mut results: Vec<_> = state.records.values().filter_map(result).collect();
        results.sort_unstable();
        results.truncate(HELD_RESULTS_MAX as usize);
        Holds {
            tasks: !state.records.is_empty(),
            results: results.into_iter().map(|(_, key)| key).collect(),
        }
    }
}

#[async_trait]
impl Reads for ReferenceStore {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        Ok(self.state().task(id))
    }
}
