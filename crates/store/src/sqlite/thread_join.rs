//! Waits for the store's threads when it closes, but not for ever: a disk whose syncs take minutes must
//! not delay the end of the process. Giving up is as safe as a crash.

use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a closing store waits for each of its threads.
const JOIN_MAX: Duration = Duration::from_secs(10);
/// Interval of checks whether a thread has ended: the standard library has no join with a limit.
const CHECK_EVERY: Duration = Duration::from_millis(1);

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinOutcome {
    Done,
    Panicked,
    /// The thread has not ended in time; the caller stops waiting.
    Late,
}

/// Waits up to [`JOIN_MAX`] for the end of a thread, and logs anything but an orderly end.
pub(super) fn join(thread: Option<JoinHandle<()>>, name: &str) {
    match thread.map(|thread| join_within(thread, JOIN_MAX)) {
        None | Some(JoinOutcome::Done) => {}
        Some(JoinOutcome::Panicked) => tracing::error!("{name} panicked"),
        Some(JoinOutcome::Late) => {
            tracing::error!("{name} not finished in time: disk too slow; no longer waiting");
        }
    }
}

/// Waits by counting its pauses, in real time: a test's clock may stand still, while a disk does not.
fn join_within(thread: JoinHandle<()>, limit: Duration) -> JoinOutcome {
    let mut paused = Duration::ZERO;
    while !thread.is_finished() {
        if paused >= limit {
            return JoinOutcome::Late;
        }
        thread::sleep(CHECK_EVERY);
        paused += CHECK_EVERY;
    }
    match thread.join() {
        Ok(()) => JoinOutcome::Done,
        Err(_) => JoinOutcome::Panicked,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_hangs_is_waited_for_up_to_the_limit_only() {
        let limit = Duration::from_secs(60);
        assert_eq!(join_within(thread::spawn(|| {}), limit), JoinOutcome::Done);
        let panics = thread::spawn(|| panic!("on purpose"));
        assert_eq!(join_within(panics, limit), JoinOutcome::Panicked);
        let (release, held) = mpsc::channel::<()>();
        let hangs = thread::spawn(move || {
            held.recv().unwrap_err();
        });
        assert_eq!(join_within(hangs, Duration::ZERO), JoinOutcome::Late);
        drop(release);
    }
}
