//! How the store waits for its threads when it closes: for a while. A disk on which a sync takes
//! minutes must not hold up the end of the process, which is as safe as a crash.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a closing store waits for each of its threads.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// How often it looks: the standard library joins without a bound only.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Panicked,
    /// It goes on by itself.
    Late,
}

/// Waits for the end of a thread.
pub(super) fn join(thread: JoinHandle<()>) -> Ending {
    join_within(thread, LIMIT)
}

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
    fn a_thread_that_hangs_is_waited_for_up_to_the_limit_alone() {
        assert_eq!(join(thread::spawn(|| {})), Ending::Done);
        let panics = thread::spawn(|| panic!("on purpose"));
        assert_eq!(join(panics), Ending::Panicked);
        let (release, held) = mpsc::channel::<()>();
        let hangs = thread::spawn(move || {
            held.recv().unwrap_err();
        });
        assert_eq!(join_within(hangs, Duration::ZERO), Ending::Late);
        drop(release);
    }
}
