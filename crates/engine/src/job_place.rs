//! The place of one job, between the engine that chooses it and the caller that judges the result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::places::{FailedJob, Places};

/// The place of a job; clones share it.
#[derive(Clone, Debug, Default)]
pub struct JobPlace(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    avoid: Vec<String>,
    chosen: Option<(Arc<Places>, usize)>,
}

impl JobPlace {
    /// Asks the engine for a place other than these.
    pub fn avoid(&self, names: Vec<String>) {
        self.lock().avoid = names;
    }

    /// Names of places that the engine must avoid while it has others.
    pub fn avoided(&self) -> Vec<String> {
        self.lock().avoid.clone()
    }

    /// Records the engine's choice.
    pub fn choose(&self, places: &Arc<Places>, index: usize) {
        self.lock().chosen = Some((Arc::clone(places), index));
    }

    /// The places of the engine, and the name of the chosen one. `None` for an engine without
    /// places, and before the choice.
    pub fn chosen(&self) -> Option<(Arc<Places>, String)> {
        let state = self.lock();
        let (places, index) = state.chosen.as_ref()?;
        Some((Arc::clone(places), places.name(*index).to_owned()))
    }

    /// Records that the job succeeded there.
    pub fn succeeded(&self) {
        if let Some((places, index)) = self.lock().chosen.clone() {
            places.succeeded(index);
        }
    }

    /// Records that the job failed there.
    pub fn job_failed(&self, job: FailedJob<'_>) {
        if let Some((places, index)) = self.lock().chosen.clone() {
            places.job_failed(index, job);
        }
    }

    /// Nothing panics while holding the lock, so a poisoned lock is still valid.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
