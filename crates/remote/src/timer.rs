//! Waiting as a value: back-off and polling are told the time and wait through a [`Timer`], so that a
//! test moves it. Deadlines of sockets are not waited for here.

use std::fmt;
use std::time::{Duration, Instant};

use async_trait::async_trait;

/// Tells how much time has passed, and waits.
#[async_trait]
pub trait Timer: Send + Sync + fmt::Debug {
    /// Time since some fixed moment; it never falls.
    fn now(&self) -> Duration;

    /// Returns once `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The timer of the machine.
#[derive(Debug)]
pub struct SystemTimer(Instant);

impl Default for SystemTimer {
    fn default() -> Self {
        Self(Instant::now())
    }
}

#[async_trait]
impl Timer for SystemTimer {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
