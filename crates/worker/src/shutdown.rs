//! The orderly stop, in two steps: `drain` (claim nothing new, finish running tasks) and `now`
//! (give running tasks back). Both steps are irreversible.

use tokio_util::sync::CancellationToken;

/// The two steps of a stop, shared by all parts of the service.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    now: CancellationToken,
}

impl Shutdown {
    /// Starts the first step: no new work begins.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Starts the second step: running tasks return to the queue. Implies the first.
    pub fn now(&self) {
        self.drain.cancel();
        self.now.cancel();
    }

    /// Waits for the first step.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Waits for the second step.
    pub async fn at_once(&self) {
        self.now.cancelled().await;
    }

    /// Whether the first step has started.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }
}
