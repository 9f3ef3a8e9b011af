//! The present time of a store. It stamps changes and decides when leases end, and holds them
//! against steps of a server's clock: a step must neither end a lease nor extend it.

use kinora_contract::{ClockReading, LeaseMs, SteadyMs, UnixMs};

/// The time of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct PresentTime {
    /// Wall time.
    pub(crate) wall_ms: UnixMs,
    /// Steady time of this process.
    pub(crate) steady_ms: SteadyMs,
    /// Time of the clock of leases.
    pub(crate) lease_ms: LeaseMs,
    /// The clock of leases as it ran before its recent steps.
    earlier: Vec<EarlierClock>,
}

/// A clock as it ran before it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlierClock {
    /// The time that it would show now.
    pub(crate) shows_ms: LeaseMs,
    /// Time since it was set.
    pub(crate) set_ms_ago: u64,
}

impl PresentTime {
    /// The time of a store whose leases run by the steady clock of its process, which is never set.
    pub(crate) const fn steady(now: ClockReading) -> Self {
        Self {
            wall_ms: now.wall_ms,
            steady_ms: now.steady_ms,
            lease_ms: now.steady_ms,
            earlier: Vec::new(),
        }
    }

    /// The time of a server, with the clocks as they ran before recent steps.
    pub(crate) const fn from_server(now: ClockReading, earlier: Vec<EarlierClock>) -> Self {
        Self {
            wall_ms: now.wall_ms,
            steady_ms: now.steady_ms,
            lease_ms: now.wall_ms,
            earlier,
        }
    }

    /// Both clocks.
    pub(crate) const fn reading(&self) -> ClockReading {
        ClockReading {
            wall_ms: self.wall_ms,
            steady_ms: self.steady_ms,
        }
    }

    /// Whether a lease of this length that ends at `ends_ms` has ended.
    ///
    /// It may have been granted by a clock that was set since, at most its length ago. It lasts while
    /// one of the clocks of that time says so. An end further ahead of a clock than twice the length
    /// was not set by that clock.
    pub(crate) fn is_over(&self, ends_ms: LeaseMs, length_ms: u64) -> bool {
        // Example: at 12:00:00 a lease of 30 s is granted, so it ends at 12:00:30. At 12:00:10 the
        // server's clock is set back by an hour. 10 s later it shows 11:00:20, and the earlier
        // clock would show 12:00:20. By the present clock the end is more than an hour ahead: not
        // its lease. By the earlier one it is 10 s ahead: the lease lasts, and ends when that clock
        // shows 12:00:30. A renewal after the step is by the present clock, and lasts by it. 30 s
        // after the step no lease of the earlier clock can be left, and `clocks` leaves it out.
        let ahead_max = length_ms.saturating_mul(2);
        !self.clocks(length_ms).any(|now_ms| {
            let ahead_ms = ends_ms.saturating_sub(now_ms);
            (1..=ahead_max).contains(&ahead_ms)
        })
    }

    /// The earliest time that any clock of leases of this length shows.
    pub(crate) fn earliest_ms(&self, length_ms: u64) -> LeaseMs {
        self.clocks(length_ms).min().unwrap_or(self.lease_ms)
    }

    /// The present times of all clocks by which leases of this length may have been granted.
    fn clocks(&self, length_ms: u64) -> impl Iterator<Item = LeaseMs> {
        let recent = self
            .earlier
            .iter()
            .filter(move |earlier| earlier.set_ms_ago <= length_ms);
        std::iter::once(self.lease_ms).chain(recent.map(|earlier| earlier.shows_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 30_000;
    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 100 * HOUR;

    fn after_steps(earlier: &[(u64, u64)]) -> PresentTime {
        let earlier = earlier.iter().map(|&(shows_ms, set_ms_ago)| EarlierClock {
            shows_ms,
            set_ms_ago,
        });
        let now = ClockReading {
            wall_ms: NOW,
            steady_ms: HOUR,
        };
        PresentTime::from_server(now, earlier.collect())
    }

    #[test]
    fn a_lease_of_a_clock_that_was_not_set_ends_on_time() {
        let now = after_steps(&[]);
        for (ends_ms, over) in [
            (0, true),
            (NOW - 1, true),
            (NOW, true),
            (NOW + 1, false),
            (NOW + 2 * LENGTH, false),
            (NOW + 2 * LENGTH + 1, true),
            (u64::MAX, true),
        ] {
            assert_eq!(now.is_over(ends_ms, LENGTH), over, "{ends_ms}");
        }
        assert!(!now.is_over(u64::MAX, u64::MAX));
    }

    /// Leases from before the step end by the earlier clock, later ones by the present one.
    #[test]
    fn a_step_neither_ends_nor_extends_a_lease() {
        for before_ms in [NOW - HOUR, NOW + 2 * HOUR, NOW + 1_000 * HOUR] {
            let now = after_steps(&[(before_ms, LENGTH)]);
            for clock_ms in [before_ms, NOW] {
                assert!(!now.is_over(clock_ms + 1, LENGTH));
                assert!(!now.is_over(clock_ms + LENGTH, LENGTH));
                assert!(now.is_over(clock_ms, LENGTH));
            }
            // No lease of that clock is left.
            let later = after_steps(&[(before_ms, LENGTH + 1)]);
            assert!(later.is_over(before_ms + 1, LENGTH));
            assert!(!later.is_over(NOW + 1, LENGTH));
        }
    }

    #[test]
    fn a_clock_that_jitters_neither_ends_nor_extends_a_lease() {
        let now = after_steps(&[(NOW - HOUR, 20_000), (NOW + HOUR, 10_000)]);
        for clock_ms in [NOW - HOUR, NOW, NOW + HOUR] {
            assert!(!now.is_over(clock_ms + 1, LENGTH), "{clock_ms}");
            assert!(now.is_over(clock_ms, LENGTH), "{clock_ms}");
        }
        assert_eq!(now.earliest_ms(LENGTH), NOW - HOUR);
        assert_eq!(now.earliest_ms(15_000), NOW);
    }
}
