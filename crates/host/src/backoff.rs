//! When to restart a process that died: immediately after the first crash, then after growing
//! pauses, so a broken engine does not spend the machine on restarts.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Counts consecutive crashes.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    deaths: u32,
    /// A steady time of the clock.
    not_before: Option<Duration>,
}

impl Backoff {
    /// Records a crash at `now`.
    pub(crate) fn died(&mut self, now: Duration) {
        self.deaths = self.deaths.saturating_add(1);
        self.not_before = now.checked_add(self.pause());
    }

    /// Clears the count after a completed job.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether it is too early to start a process.
    pub(crate) fn holds(&self, now: Duration) -> bool {
        self.not_before.is_some_and(|then| now < then)
    }

    fn pause(&self) -> Duration {
        match self.deaths {
            0 | 1 => Duration::ZERO,
            deaths => FIRST.saturating_mul(1 << (deaths - 2).min(16)).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_costs_no_wait_and_the_others_ever_more_up_to_a_minute() {
        let (mut backoff, now) = (Backoff::default(), Duration::ZERO);
        assert!(!backoff.holds(now));
        for seconds in [0, 1, 2, 4, 8, 16, 32, 60, 60] {
            backoff.died(now);
            let until = now + Duration::from_secs(seconds);
            assert!(!backoff.holds(until), "{seconds}");
            assert!(seconds == 0 || backoff.holds(until - Duration::from_millis(1)));
        }
        backoff.reset();
        assert!(!backoff.holds(now));
    }
}
