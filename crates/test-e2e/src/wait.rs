//! Waiting for a condition, with a deadline. Nothing here sleeps in order to be right.

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: far longer than it should ever need.
pub const PATIENCE: Duration = Duration::from_secs(240);

const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` gives something; panics, naming `what`, when [`PATIENCE`] is at its end.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}
