//! Whether accepted tasks can run at the moment: a worker sets this, and `/readyz` reports it. They
//! share nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether tasks can run; initially they can. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct WorkerReadiness(Arc<ReadinessFlags>);

#[derive(Debug, Default)]
struct ReadinessFlags {
    results_away: AtomicBool,
    engines_away: AtomicBool,
    worker_dead: AtomicBool,
    warming_up: AtomicBool,
}

/// Why accepted tasks do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandstillReason {
    /// Results cannot be stored. The worker recovers by itself.
    Results,
    /// Every place of every engine is in quarantine. It recovers when one of them works again.
    Engines,
    /// The worker of this process has died. Only a restart helps.
    Worker,
    /// Engines load what their first tasks need.
    WarmUp,
}

/// An essential part of the worker. The worker counts as dead once one of them is dropped.
#[derive(Debug)]
#[must_use]
pub struct AliveGuard(WorkerReadiness);

impl WorkerReadiness {
    /// Sets whether results can be stored.
    pub fn set_storable(&self, storable: bool) {
        self.0.results_away.store(!storable, Ordering::Release);
    }

    /// Sets whether at least one engine can work.
    pub fn set_engines_usable(&self, usable: bool) {
        self.0.engines_away.store(!usable, Ordering::Release);
    }

    /// Sets whether engines warm up and tasks should wait for them.
    pub fn set_warming_up(&self, warming_up: bool) {
        self.0.warming_up.store(warming_up, Ordering::Release);
    }

    /// Registers the caller as a part of the worker, until the returned value is dropped. A process
    /// without a worker registers none.
    pub fn register_part(&self) -> AliveGuard {
        AliveGuard(self.clone())
    }

    /// The reason why no task runs, if there is one.
    pub fn standstill(&self) -> Option<StandstillReason> {
        // The gravest reason first: only a restart helps against it, and the others may pass.
        if self.0.worker_dead.load(Ordering::Acquire) {
            return Some(StandstillReason::Worker);
        }
        if self.0.results_away.load(Ordering::Acquire) {
            return Some(StandstillReason::Results);
        }
        if self.0.engines_away.load(Ordering::Acquire) {
            return Some(StandstillReason::Engines);
        }
        let warming_up = self.0.warming_up.load(Ordering::Acquire);
        warming_up.then_some(StandstillReason::WarmUp)
    }
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.0.worker_dead.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_state() {
        let (worker, api) = {
            let readiness = WorkerReadiness::default();
            (readiness.clone(), readiness)
        };
        assert_eq!(api.standstill(), None);
        worker.set_storable(false);
        assert_eq!(api.standstill(), Some(StandstillReason::Results));
        worker.set_storable(true);
        assert_eq!(api.standstill(), None);
        worker.set_warming_up(true);
        assert_eq!(api.standstill(), Some(StandstillReason::WarmUp));
        worker.set_storable(false);
        assert_eq!(api.standstill(), Some(StandstillReason::Results));
        worker.set_storable(true);
        worker.set_warming_up(false);
        assert_eq!(api.standstill(), None);
    }

    #[test]
    fn a_worker_is_dead_when_one_of_its_parts_is() {
        let readiness = WorkerReadiness::default();
        let (_loop_of_claims, keeper) = (readiness.register_part(), readiness.register_part());
        assert_eq!(readiness.standstill(), None);
        drop(keeper);
        assert_eq!(readiness.standstill(), Some(StandstillReason::Worker));
    }
}
