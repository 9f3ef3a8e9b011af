//! The clock of a life, and the workers' own clocks: as wrong as the machines of a real deployment may be. Only the
//! store's clock counts, so that lives with wrong and with right clocks are the same.

use std::sync::Arc;

use kinora_contract::{Clock, ManualClock, SteadyMs, UnixMs};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::rng::Rng;

/// Passes with the virtual time of the runtime; beside that it is set, and time passes in which the machine sleeps.
#[derive(Debug)]
pub(crate) struct SimClock {
    manual: ManualClock,
    /// Whose time it is, whichever thread asks.
    life: Handle,
    begun: Instant,
}

impl SimClock {
    /// A clock that stands at `now_ms`, of the runtime in which this is called.
    pub(crate) fn at(now_ms: UnixMs) -> Self {
        Self {
            manual: ManualClock::at(now_ms),
            life: Handle::current(),
            begun: Instant::now(),
        }
    }

    fn passed_ms(&self) -> u64 {
        let _life = self.life.enter();
        u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }

    /// Sets the wall clock, forward or back, while no time passes.
    pub(crate) fn set(&self, now_ms: UnixMs) {
        self.manual.set(now_ms - self.passed_ms());
    }

    /// Lets the machine sleep: time passes, and no timer notices.
    pub(crate) fn advance(&self, by_ms: u64) {
        self.manual.advance(by_ms);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> UnixMs {
        self.manual.now_ms() + self.passed_ms()
    }

    fn steady_ms(&self) -> SteadyMs {
        self.manual.steady_ms() + self.passed_ms()
    }
}

/// A clock that runs with the store's, and shows another time.
#[derive(Debug)]
pub(crate) struct WrongClock {
    store: Arc<SimClock>,
    /// Ahead of the store's wall clock by so much; behind it where negative.
    wall_error_ms: i64,
    /// The steady clock of another machine began at another moment.
    steady_error_ms: u64,
}

impl WrongClock {
    /// One for each worker: the first is right, the others are wrong by up to `wrong_ms_max` in either direction.
    /// The errors come from a source of their own, so that they move nothing else in a life.
    pub(crate) fn of_each<const N: usize>(
        store: &Arc<SimClock>,
        seed: u64,
        wrong_ms_max: u64,
    ) -> [Arc<Self>; N] {
        let mut rng = Rng::seeded(!seed);
        let mut error_ms = |k: usize| {
            if k == 0 {
                0
            } else {
                rng.below(wrong_ms_max + 1)
            }
        };
        std::array::from_fn(|k| {
            let wall_error_ms = i64::try_from(error_ms(k)).unwrap();
            Arc::new(Self {
                store: store.clone(),
                // One ahead, the next behind.
                wall_error_ms: if k % 2 == 1 {
                    wall_error_ms
                } else {
                    -wall_error_ms
                },
                steady_error_ms: error_ms(k),
            })
        })
    }
}

impl Clock for WrongClock {
    fn now_ms(&self) -> UnixMs {
        self.store
            .now_ms()
            .saturating_add_signed(self.wall_error_ms)
    }

    fn steady_ms(&self) -> SteadyMs {
        self.store.steady_ms().saturating_add(self.steady_error_ms)
    }
}
