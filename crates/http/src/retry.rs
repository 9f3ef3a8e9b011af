//! How long to wait before the next attempt: doubling times, bounded and spread, so that many clients of a
//! server that comes back do not return at once.

use std::time::Duration;

/// Doubling waits.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait, before it is spread.
    pub max: Duration,
}

impl Backoff {
    /// The wait before retry number `retry`, counted from 0: at least the time that the server `asked`
    /// for, otherwise 75 to 125 % of the doubled time, at random.
    pub fn wait(&self, retry: u32, asked: Option<Duration>) -> Duration {
        // Without randomness all clients wait equally long, which is harmless.
        let mut byte = [128];
        let _ = getrandom::fill(&mut byte);
        let spread = self.spread(retry, f64::from(byte[0]) / 256.0);
        asked.map_or(spread, |asked| asked.max(spread))
    }

    /// The wait before retry number `retry`, at the place `share` from 0 to 1 between 75 and 125 %. With
    /// first = 1 s and max = 30 s, retry 3 waits 6 s at 0, 8 s at 0.5, and 10 s at 1.
    pub fn spread(&self, retry: u32, share: f64) -> Duration {
        let doubled = self.first.saturating_mul(1 << retry.min(20)).min(self.max);
        doubled.mul_f64(0.75 + share / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_obey_the_server() {
        let (first, max) = (Duration::from_secs(1), Duration::from_secs(60));
        let backoff = Backoff { first, max };
        for retry in 0..40 {
            let middle = first.saturating_mul(1 << retry.min(20)).min(max);
            let wait = backoff.wait(retry, None);
            let (least, most) = (middle.mul_f64(0.75), middle.mul_f64(1.25));
            assert!(least <= wait && wait <= most, "{retry}: {wait:?}");
        }
        let asked = Duration::from_secs(100);
        assert_eq!(backoff.wait(0, Some(asked)), asked);
    }
}
