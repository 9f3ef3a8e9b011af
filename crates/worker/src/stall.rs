//! Notices that the process stood still: stopped, starved, or waiting for a store that answers late. Leases may
//! have run out then although their runs are well, so that for one lease the heartbeats come first.

use std::time::Duration;

/// State of stalls.
#[derive(Debug)]
pub(crate) struct Stall {
    lease: Duration,
    /// As all moments here: by a steady clock, since a moment of its own.
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

    /// How long to sleep between two looks.
    pub(crate) fn slice(&self) -> Duration {
        (self.lease / 6).max(Duration::from_millis(1))
    }

    /// Looks at the clock, at least once a slice. A renewal is never older than a third of the lease: a stall that
    /// ends the lease lasts for the rest of it, and makes the time between two looks longer than half of the lease.
    pub(crate) fn look(&mut self, now: Duration) {
        let stood = now.saturating_sub(self.looked);
        if stood > self.lease / 2 {
            tracing::warn!(?stood, "process stood still; leases are spared for a while");
            self.spares_until = now.checked_add(self.lease);
        }
        self.looked = now;
    }

    /// Passes over work for which no renewal waits, such as the removal of files. A pause follows it, in which
    /// renewals come even if the process stood still meanwhile.
    pub(crate) const fn pass_over(&mut self, now: Duration) {
        self.looked = now;
    }

    /// Whether leases that have run out by `now` may be those of runs that are well.
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
    fn work_for_which_no_renewal_waits_is_no_stall() {
        let mut stall = Stall::new(LEASE, BEGUN);
        let done = BEGUN + 2 * LEASE;
        stall.pass_over(done);
        stall.look(done);
        assert!(!stall.spares_leases(done));
    }

    #[test]
    fn a_stall_that_ends_a_lease_is_told_from_a_pause_between_looks() {
        let stall = Stall::new(LEASE, BEGUN);
        assert!(LEASE - LEASE / 3 > LEASE / 2);
        assert!(2 * stall.slice() < LEASE / 2);
    }
}
