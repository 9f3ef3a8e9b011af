//! Waiting as a value: back-off and polling are told the time and wait through a [`Timer`], so that a
//! test moves it. Deadlines of sockets are not waited for here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::Clock;

/// Tells how much time has passed, and waits.
#[async_trait]
pub trait Timer: Send + Sync + fmt::Debug {
    /// Time since some fixed moment; it never falls.
    fn now(&self) -> Duration;

    /// Returns once `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The timer of the machine: tells the time by a clock, and waits in real time.
#[derive(Debug)]
pub struct SystemTimer(Arc<dyn Clock>);

impl SystemTimer {
    /// The timer that tells the steady time of `clock`.
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
