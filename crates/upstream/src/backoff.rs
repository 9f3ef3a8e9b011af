//! The wait before a failed call is retried: doubling, bounded, spread. The spread derives from the
//! request's key, so many tasks do not retry at once, and a run is reproducible.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Waits of one series of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    waits: kinora_http::Backoff,
    salt: u64,
}

impl Backoff {
    /// Waits from `first` to `max`, spread by `salt`.
    pub fn new(first: Duration, max: Duration, salt: &str) -> Self {
        Self {
            waits: kinora_http::Backoff { first, max },
            salt: hash(salt),
        }
    }

    /// The wait after failure number `attempt`, counted from 0: 75 to 125 % of `first * 2^attempt`,
    /// limited to `max` before spreading.
    pub fn wait(&self, attempt: u32) -> Duration {
        let share = hash((self.salt, attempt)) % 1000;
        self.waits.spread(attempt, share as f64 / 1000.0)
    }
}

/// The standard hasher with fixed keys: the same in every process.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_differ_between_tasks() {
        let of = |salt| Backoff::new(Duration::from_secs(1), Duration::from_secs(30), salt);
        for attempt in 0..40 {
            let wait = of("a").wait(attempt).as_secs_f64();
            let middle = f64::from(1 << attempt.min(20)).min(30.0);
            assert!(
                (0.75 * middle..1.25 * middle).contains(&wait),
                "{attempt}: {wait}"
            );
        }
        assert_eq!(of("a").wait(3), of("a").wait(3));
        assert_ne!(of("a").wait(3), of("b").wait(3));
    }
}
