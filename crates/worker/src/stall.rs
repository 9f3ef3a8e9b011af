//! Notices that the process stood still: stopped, starved, or waiting for a store that answers late. Leases may
//! have run out then although their runs are well, so that for one lease the heartbeats come first.

use std::time::{Duration, Instant};

/// What is known of stalls.
#[derive(Debug)]
pub(crate) struct Stall {
    lease: Duration,
    spares_until: Option<Instant>,
}

impl Stall {
    pub(crate) const fn new(lease: Duration) -> Self {
        Self {
            lease,
            spares_until: None,
        }
    }

    /// How long to sleep at a time: a stall that outlasts what a renewal leaves of a lease is noticed, at
    /// whatever moment it begins.
    pub(crate) fn slice(&self) -> Duration {
        (self.lease / 6).max(Duration::from_millis(1))
    }

    /// Notes that something that should have taken `meant` has taken `took`, until `now`.
    pub(crate) fn note(&mut self, took: Duration, meant: Duration, now: Instant) {
        if took.saturating_sub(meant) > self.lease / 3 {
            tracing::warn!(?took, "process stood still; leases are spared for a while");
            self.spares_until = now.checked_add(self.lease);
        }
    }

    /// Whether leases that have run out by `now` may be those of runs that are well.
    pub(crate) fn spares_leases(&self, now: Instant) -> bool {
        self.spares_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    #[test]
    fn leases_are_spared_for_one_lease_after_a_stall() {
        let begun = Instant::now();
        for (took_s, spares) in [
            (0, false),
            (5, false),
            (15, false),
            (16, true),
            (3_600, true),
        ] {
            let mut stall = Stall::new(LEASE);
            let now = begun + Duration::from_secs(took_s);
            stall.note(now - begun, Duration::from_secs(5), now);
            assert_eq!(stall.spares_leases(now), spares, "{took_s}");
            let last = now + LEASE - Duration::from_millis(1);
            assert_eq!(stall.spares_leases(last), spares, "{took_s}");
            assert!(!stall.spares_leases(now + LEASE), "{took_s}");
        }
    }

    #[test]
    fn a_slice_is_short_enough_to_tell_any_stall_that_ends_a_lease() {
        // A renewal is never older than a third of the lease: the stall that ends the lease lasts for the rest.
        let stall = Stall::new(LEASE);
        let shortest = LEASE * 2 / 3;
        assert!(shortest.checked_sub(stall.slice()).unwrap() > LEASE / 3);
    }
}
