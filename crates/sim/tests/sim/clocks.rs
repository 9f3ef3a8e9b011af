//! The workers' own clocks: as wrong as the machines of a real deployment may be. Only the store's clock counts, so
//! that lives with wrong and with right clocks are the same.

use std::sync::Arc;

use kinora_contract::{Clock, ManualClock, SteadyMs, UnixMs};

use crate::rng::Rng;

/// A clock that runs with the store's, and shows another time.
#[derive(Debug)]
pub(crate) struct WrongClock {
    store: Arc<ManualClock>,
    /// Ahead of the store's wall clock by so much; behind it where negative.
    wall_error_ms: i64,
    /// The steady clock of another machine began at another moment.
    steady_error_ms: u64,
}

impl WrongClock {
    /// One for each worker: the first is right, the others are wrong by up to `wrong_ms_max` in either direction.
    /// The errors come from a source of their own, so that they move nothing else in a life.
    pub(crate) fn of_each(store: &Arc<ManualClock>, seed: u64, wrong_ms_max: u64) -> [Self; 3] {
        let mut rng = Rng::seeded(!seed);
        let mut error_ms = |k: usize| {
            if k == 0 {
                0
            } else {
                rng.below(wrong_ms_max + 1)
            }
        };
        [0, 1, 2].map(|k| {
            let wall_error_ms = i64::try_from(error_ms(k)).unwrap();
            Self {
                store: store.clone(),
                // One ahead, the other behind.
                wall_error_ms: if k == 1 {
                    wall_error_ms
                } else {
                    -wall_error_ms
                },
                steady_error_ms: error_ms(k),
            }
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
