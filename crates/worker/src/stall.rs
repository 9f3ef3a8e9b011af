//! Detects that the process stood still: stopped, starved, or waiting for a slow store. Leases of
//! healthy runs may have expired during that time, so for the length of one lease heartbeats take
//! precedence over expiry.

use std::time::Duration;

/// State of stalls.
#[derive(Debug)]
pub(crate) struct Stall {
    lease: Duration,
    /// Like all times here: steady time, from an arbitrary start.
    looked: Duration,
    spares_until: Option<Duration>,
}

impl Stall {
    pub(crate) const fn new(lease: Duration, now: Duration) -> Self {
        Self {
            lease,
            looked: now,
            spares_until: None,
        }
    }

    /// The sleep between two checks.
    pub(crate) fn slice(&self) -> Duration {
        (self.lease / 6).max(Duration::from_millis(1))
    }

    /// Checks the clock; call it at least once per slice. A renewal is never older than a third of
    /// the lease, so a stall that outlasts the lease makes the time between two checks longer than
    /// half of it.
    pub(crate) fn look(&mut self, now: Duration) {
        let stood = now.saturating_sub(self.looked);
        if stood > self.lease / 2 {
            tracing::warn!(
                ?stood,
                "process was stalled; expired leases spared for a while"
            );
            self.spares_until = now.checked_add(self.lease);
        }
        self.looked = now;
    }

    /// Whether leases that have expired by `now` may belong to healthy runs.
    pub(crate) fn spares_leases(&self, now: Duration) -> bool {
        self.spares_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const BEGUN: Duration = Duration::from_secs(1_000);

    #[test]
    fn leases_are_spared_for_one_lease_after_a_stall() {
        for (stood_s, spares) in [
            (0, false),
            (5, false),
            (15, false),
            (16, true),
            (3_600, true),
        ] {
            let mut stall = Stall::new(LEASE, BEGUN);
            let now = BEGUN + Duration::from_secs(stood_s);
            stall.look(now);
            assert_eq!(stall.spares_leases(now), spares, "{stood_s}");
            let last = now + LEASE - Duration::from_millis(1);
            assert_eq!(stall.spares_leases(last), spares, "{stood_s}");
            assert!(!stall.spares_leases(now + LEASE), "{stood_s}");
        }
    }

    #[test]
    fn looks_that_come_in_time_spare_nothing() {
        let mut now = BEGUN;
        let mut stall = Stall::new(LEASE, now);
        for _ in 0..100 {
            now += stall.slice();
            stall.look(now);
            assert!(!stall.spares_leases(now));
        }
    }

    #[test]
    fn a_stall_that_ends_a_lease_is_told_from_a_pause_between_looks() {
        let stall = Stall::new(LEASE, BEGUN);
        assert!(LEASE - LEASE / 3 > LEASE / 2);
        assert!(2 * stall.slice() < LEASE / 2);
    }
}
