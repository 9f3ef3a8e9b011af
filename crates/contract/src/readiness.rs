//! Whether accepted tasks can be run at the moment: a worker says so, and `/readyz` tells it. The two know
//! nothing else of each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether tasks can be run; at first they can. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says whether tasks can be run from now on.
    pub fn set(&self, ready: bool) {
        self.0.store(!ready, Ordering::Release);
    }

    /// Whether tasks can be run.
    pub fn is_ready(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_state() {
        let (worker, api) = {
            let readiness = Readiness::default();
            (readiness.clone(), readiness)
        };
        assert!(api.is_ready());
        for ready in [false, true] {
            worker.set(ready);
            assert_eq!(api.is_ready(), ready);
        }
    }
}
