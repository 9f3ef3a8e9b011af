//! Waits for the store's threads when it closes, but not for ever: a disk with syncs that take
//! minutes must not delay the end of the process, which is as safe as a crash.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a closing store waits for each of its threads.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Interval of checks: the standard library has no join with a timeout.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Done,
    Panicked,
    /// It has not ended, and the caller stops waiting.
    Late,
}

/// Waits up to [`LIMIT`] for the end of a thread, and logs anything but an orderly end.
pub(super) fn join(thread: Option<JoinHandle<()>>, name: &str) {
    match thread.map(|thread| join_within(thread, LIMIT)) {
        None | Some(Ending::Done) => {}
        Some(Ending::Panicked) => tracing::error!("{name} panicked"),
        Some(Ending::Late) => {
            tracing::error!("{name} not finished in time: disk too slow; no longer waiting");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the disk that a thread waits for takes real time, and a store's clock may stand still"
)]
fn join_within(thread: JoinHandle<()>, limit: Duration) -> Ending {
    let begun = Instant::now();
    while !thread.is_finished() {
        if begun.elapsed() > limit {
            return Ending::Late;
        }
        thread::sleep(LOOK_EVERY);
    }
    match thread.join() {
        Ok(()) => Ending::Done,
        Err(_) => Ending::Panicked,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_hangs_is_waited_for_up_to_the_limit_only() {
        let limit = Duration::from_secs(60);
        assert_eq!(join_within(thread::spawn(|| {}), limit), Ending::Done);
        let panics = thread::spawn(|| panic!("on purpose"));
        assert_eq!(join_within(panics, limit), Ending::Panicked);
        let (release, held) = mpsc::channel::<()>();
        let hangs = thread::spawn(move || {
            held.recv().unwrap_err();
        });
        assert_eq!(join_within(hangs, Duration::ZERO), Ending::Late);
        drop(release);
    }
}
