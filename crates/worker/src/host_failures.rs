//! Tries at which the host of a reference failed in a way that may pass: how many a task had, and how long
//! the next one must wait.
//!
//! The pause itself is the store's, like that of a fetch which waits for its turn: meanwhile the task keeps
//! its place in the queue, and holds neither a lease, nor a place in the fetch stage, nor a share of its
//! project. Only the count is in memory. So it needs no column in every task's row; the price is that a
//! restart resets it, and that processes which share a PostgreSQL store count separately. Each of them stops
//! at the same bound.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::limits::{REFERENCE_PAUSE_SECONDS_MAX, REFERENCE_TRIES_MAX};
use kinora_contract::{Clock, Stopwatch, TaskId};
use kinora_http_fetch::FetchProgress;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Each pause is this many times as long as the one before it: 1, 4 and 16 s.
const PAUSE_GROWTH: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(REFERENCE_PAUSE_SECONDS_MAX);
/// Tasks that ended during a pause are forgotten after this time.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);
/// They are looked for when there are this many more than after the last search.
const PRUNE_EVERY: usize = 1_024;

/// The tasks whose references could not be fetched because a host failed.
#[derive(Debug)]
pub(crate) struct HostFailures {
    clock: Arc<dyn Clock>,
    /// No further try begins once those of a task have taken this long together.
    time_max: Duration,
    tasks: Mutex<TaskFailures>,
}

#[derive(Debug)]
struct TaskFailures {
    tries: HashMap<TaskId, FailedTries>,
    prune_at: usize,
}

/// The failed tries of one task.
#[derive(Debug)]
struct FailedTries {
    count: u32,
    /// Their time, without the pauses.
    time: Duration,
    last: HostFailure,
    are_alike: bool,
    since: Stopwatch,
}

/// How far the fetch of a reference got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostFailure {
    /// Index of the reference.
    pub(crate) index: usize,
    pub(crate) reached: FetchProgress,
}

/// The next step after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterTry {
    Retry { pause: Duration },
    GiveUp(TryCount),
}

/// All tries of a task, for its failure: the text follows what happened at the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TryCount {
    count: u32,
    are_alike: bool,
}

impl fmt::Display for TryCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = if self.are_alike { "each" } else { "the last" };
        write!(f, "in {which} of {} tries", self.count)
    }
}

impl HostFailures {
    pub(crate) fn new(clock: Arc<dyn Clock>, time_max: Duration) -> Self {
        Self {
            clock,
            time_max,
            tasks: Mutex::new(TaskFailures {
                tries: HashMap::new(),
                prune_at: PRUNE_EVERY,
            }),
        }
    }

    /// Records a try that took `time`, and decides what follows. A host may ask for a longer pause
    /// with `Retry-After`; the next try comes after [`PAUSE_MAX`] even so, since many send hours in
    /// an answer that they give for a moment.
    pub(crate) fn record(
        &self,
        task: TaskId,
        failure: HostFailure,
        asked: Option<Duration>,
        time: Duration,
    ) -> AfterTry {
        let mut tasks = self.tasks();
        tasks.prune();
        let tries = tasks.tries.entry(task).or_insert_with(|| FailedTries {
            count: 0,
            time: Duration::ZERO,
            last: failure,
            are_alike: true,
            since: Stopwatch::start(&self.clock),
        });
        tries.count += 1;
        tries.time += time;
        tries.are_alike &= tries.last == failure;
        tries.last = failure;
        if tries.count >= REFERENCE_TRIES_MAX || tries.time >= self.time_max {
            return AfterTry::GiveUp(TryCount {
                count: tries.count,
                are_alike: tries.are_alike,
            });
        }
        // Cannot overflow: the count is below `REFERENCE_TRIES_MAX` here.
        let own = FIRST_PAUSE * PAUSE_GROWTH.pow(tries.count - 1);
        let pause = own.max(asked.unwrap_or_default()).min(PAUSE_MAX);
        AfterTry::Retry { pause }
    }

    /// Forgets a task that needs no further try.
    pub(crate) fn forget(&self, task: TaskId) {
        self.tasks().tries.remove(&task);
    }

    fn tasks(&self) -> MutexGuard<'_, TaskFailures> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskFailures {
    fn prune(&mut self) {
        if self.tries.len() >= self.prune_at {
            self.tries
                .retain(|_, tries| tries.since.elapsed() < FORGET_AFTER);
            // A search costs a pass over all entries, so it pays off only after as many new ones.
            self.prune_at = self.tries.len() + PRUNE_EVERY;
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;

    use super::*;

    const TIME_MAX: Duration = Duration::from_secs(180);

    fn task(number: u8) -> TaskId {
        TaskId::from_parts(kinora_contract::RELEASED_MS, [number; 10])
    }

    fn answered(status: u16) -> HostFailure {
        HostFailure {
            index: 0,
            reached: FetchProgress::Answered(status),
        }
    }

    fn failures() -> (HostFailures, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        (HostFailures::new(clock.clone(), TIME_MAX), clock)
    }

    fn pauses(failures: &HostFailures, asked: Option<u64>) -> (Vec<u64>, String) {
        let mut pauses = Vec::new();
        let asked = asked.map(Duration::from_secs);
        loop {
            match failures.record(task(1), answered(503), asked, Duration::ZERO) {
                AfterTry::Retry { pause } => pauses.push(pause.as_secs()),
                AfterTry::GiveUp(tries) => return (pauses, tries.to_string()),
            }
        }
    }

    #[test]
    fn pauses_grow_and_a_host_may_ask_for_longer_ones_up_to_the_bound() {
        for (asked, wanted) in [
            (None, [1, 4, 16]),
            (Some(0), [1, 4, 16]),
            (Some(10), [10, 10, 16]),
            (Some(60), [60; 3]),
            (Some(61), [60; 3]),
            (Some(u64::MAX), [60; 3]),
        ] {
            let (pauses, tries) = pauses(&failures().0, asked);
            assert_eq!(pauses, wanted, "{asked:?}");
            assert_eq!(tries, "in each of 4 tries");
        }
    }

    #[test]
    fn a_failure_says_whether_all_tries_were_alike() {
        let (failures, _) = failures();
        for status in [503, 503, 502] {
            failures.record(task(1), answered(status), None, Duration::ZERO);
        }
        let AfterTry::GiveUp(tries) = failures.record(task(1), answered(502), None, Duration::ZERO)
        else {
            panic!("a fifth try");
        };
        assert_eq!(tries.to_string(), "in the last of 4 tries");
    }

    #[test]
    fn no_try_begins_once_those_before_took_too_long_together() {
        let (failures, _) = failures();
        let half = TIME_MAX / 2;
        for end in [false, true] {
            let after = failures.record(task(1), answered(503), None, half);
            assert_eq!(matches!(after, AfterTry::GiveUp(_)), end);
        }
    }

    #[test]
    fn tasks_are_counted_apart_and_forgotten() {
        let (failures, clock) = failures();
        let record = |number| failures.record(task(number), answered(503), None, Duration::ZERO);
        let first = record(1);
        assert_ne!(record(1), first);
        assert_eq!(record(2), first);
        failures.forget(task(1));
        assert_eq!(record(1), first);
        // Those that nobody forgot, because they ended during a pause.
        failures.tasks().prune_at = 2;
        clock.advance(FORGET_AFTER.as_millis() as u64);
        record(3);
        assert_eq!(failures.tasks().tries.len(), 1);
    }
}
