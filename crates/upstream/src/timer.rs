//! Time as a value: back-off and polling use a [`Timer`] for the time and for waiting, so tests can
//! control it. Socket deadlines do not use it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::Clock;

/// Tells the time and waits.
#[async_trait]
pub trait Timer: Send + Sync + fmt::Debug {
    /// Time since some fixed moment; it never decreases.
    fn now(&self) -> Duration;

    /// Returns once `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The real timer: reads a clock and waits in real time.
#[derive(Debug)]
pub struct SystemTimer(Arc<dyn Clock>);

impl SystemTimer {
    /// A timer based on the steady time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }
}

#[async_trait]
impl Timer for SystemTimer {
    fn now(&self) -> Duration {
        self.0.steady()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
