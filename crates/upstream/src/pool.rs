//! Chooses the next upstream: the least busy one that is neither excluded nor asked us to wait. One
//! with too many failures is excluded until a probe succeeds. The caller passes the time; this
//! module does no I/O.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backoff::Backoff;

/// The state of all upstreams of one engine.
#[derive(Debug)]
pub struct Pool {
    standings: Mutex<Vec<Standing>>,
    failures_max: u32,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Number of this process's tasks at the upstream.
    running: usize,
    /// Number of consecutive failures.
    failures: u32,
    /// No new task before this time.
    held_until: Duration,
}

/// The decision for a submit.
#[derive(Debug)]
pub enum Choice {
    /// Ask this one.
    Take(Slot),
    /// See first whether this one is back; nobody else will for a while.
    Probe(usize),
    /// No upstream is available before this time.
    Wait(Duration),
}

/// A task's slot at an upstream; counts there until it is dropped.
#[derive(Debug)]
pub struct Slot {
    pool: Arc<Pool>,
    /// The upstream, by its place in the list.
    pub index: usize,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.lock()[self.index].running -= 1;
    }
}

impl Pool {
    /// A pool of `count` upstreams, all available. After `failures_max` consecutive failures one is excluded.
    pub fn new(count: usize, failures_max: u32, backoff: Backoff) -> Arc<Self> {
        Arc::new(Self {
            standings: Mutex::new(vec![Standing::default(); count]),
            failures_max,
            backoff,
        })
    }

    /// Nothing panics while holding the lock, so a poisoned lock is still valid.
    fn lock(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses an upstream for a submit at `now`.
    pub fn choose(self: &Arc<Self>, now: Duration) -> Choice {
        self.choose_among(now, |_| true)
    }

    /// As [`Self::choose`], of those that `may` serve.
    pub fn choose_among(self: &Arc<Self>, now: Duration, may: impl Fn(usize) -> bool) -> Choice {
        let mut standings = self.lock();
        let free = |one: &Standing| one.held_until <= now;
        let is_out = |one: &Standing| one.failures >= self.failures_max;
        // Probes happen even while other upstreams are available; otherwise this one would stay
        // excluded.
        let due = (0..standings.len())
            .find(|index| may(*index) && free(&standings[*index]) && is_out(&standings[*index]));
        if let Some(index) = due {
            standings[index].held_until = now + self.backoff.wait(standings[index].failures);
            return Choice::Probe(index);
        }
        let usable = (0..standings.len()).filter(|index| may(*index) && free(&standings[*index]));
        match usable.min_by_key(|index| standings[*index].running) {
            Some(index) => {
                standings[index].running += 1;
                drop(standings);
                Choice::Take(self.slot(index))
            }
            None => Choice::Wait(
                (0..standings.len())
                    .filter(|index| may(*index))
                    .map(|index| standings[index].held_until)
                    .min()
                    .unwrap_or(now),
            ),
        }
    }

    /// Chooses this upstream, once it is available.
    pub fn choose_only(self: &Arc<Self>, index: usize, now: Duration) -> Choice {
        let held_until = self.lock()[index].held_until;
        if held_until > now {
            return Choice::Wait(held_until);
        }
        Choice::Take(self.take(index))
    }

    /// A slot for a task that is there already.
    pub fn take(self: &Arc<Self>, index: usize) -> Slot {
        self.lock()[index].running += 1;
        self.slot(index)
    }

    fn slot(self: &Arc<Self>, index: usize) -> Slot {
        Slot {
            pool: Arc::clone(self),
            index,
        }
    }

    /// Records a good answer: an excluded upstream is available again.
    pub fn succeeded(&self, index: usize) {
        self.lock()[index].failures = 0;
    }

    /// Like [`Self::succeeded`], and available immediately.
    pub fn is_back(&self, index: usize) {
        let mut standings = self.lock();
        let running = standings[index].running;
        standings[index] = Standing {
            running,
            ..Standing::default()
        };
    }

    /// Records a missing answer or a server error.
    pub fn failed(&self, index: usize, now: Duration) {
        let mut standings = self.lock();
        let one = &mut standings[index];
        let until = now + self.backoff.wait(one.failures);
        one.held_until = one.held_until.max(until);
        one.failures = one.failures.saturating_add(1);
    }

    /// Excludes an upstream at once: it will fail until an operator fixes it.
    pub fn broke(&self, index: usize, now: Duration) {
        let mut standings = self.lock();
        let one = &mut standings[index];
        one.failures = one.failures.saturating_add(1).max(self.failures_max);
        let until = now + self.backoff.wait(one.failures);
        one.held_until = one.held_until.max(until);
    }

    /// Records a working upstream that asked us to wait: for that time, at least the first wait.
    pub fn hold(&self, index: usize, now: Duration, wish: Option<Duration>) {
        let wait = wish.unwrap_or_default().max(self.backoff.wait(0));
        let mut standings = self.lock();
        let one = &mut standings[index];
        one.failures = 0;
        one.held_until = one.held_until.max(now + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn pool(count: usize) -> Arc<Pool> {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1), "pool");
        Pool::new(count, 3, backoff)
    }

    fn taken(choice: Choice) -> Slot {
        match choice {
            Choice::Take(slot) => slot,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_least_busy_is_taken_and_a_slot_is_given_back() {
        let pool = pool(3);
        let mut slots: Vec<Slot> = (0..6).map(|_| taken(pool.choose(START))).collect();
        let seats: Vec<usize> = slots.iter().map(|slot| slot.index).collect();
        assert_eq!(seats, [0, 1, 2, 0, 1, 2]);
        drop(slots.remove(4));
        assert_eq!(taken(pool.choose(START)).index, 1);
        let _resumed = pool.take(1);
        assert_eq!(taken(pool.choose(START)).index, 0);
    }

    #[test]
    fn who_wants_to_be_left_alone_is_left_alone_for_that_time() {
        let pool = pool(2);
        pool.hold(0, START, Some(Duration::from_secs(60)));
        assert_eq!(taken(pool.choose(START)).index, 1);
        pool.hold(1, START, Some(Duration::from_secs(90)));
        let Choice::Wait(until) = pool.choose(START) else {
            panic!("both are held");
        };
        assert_eq!(until, START + Duration::from_mins(1));
        assert_eq!(taken(pool.choose(until)).index, 0);
        assert!(matches!(pool.choose_only(1, until), Choice::Wait(_)));
    }

    #[test]
    fn who_fails_too_often_is_left_out_until_a_probe_succeeds() {
        let pool = pool(2);
        for _ in 0..3 {
            pool.failed(0, START);
        }
        let later = START + Duration::from_mins(10);
        let Choice::Probe(0) = pool.choose(later) else {
            panic!("it is due");
        };
        assert_eq!(taken(pool.choose(later)).index, 1, "one probe at a time");
        pool.failed(0, later);
        assert_eq!(taken(pool.choose(later)).index, 1);
        let again = later + Duration::from_mins(10);
        assert!(matches!(pool.choose(again), Choice::Probe(0)));
        pool.is_back(0);
        assert_eq!(taken(pool.choose(again)).index, 0);
    }

    #[test]
    fn a_wrong_key_leaves_out_at_once_and_a_good_answer_brings_back() {
        let pool = pool(1);
        pool.broke(0, START);
        assert!(matches!(pool.choose(START), Choice::Wait(_)));
        let later = START + Duration::from_mins(10);
        assert!(matches!(pool.choose(later), Choice::Probe(0)));
        pool.succeeded(0);
        assert!(matches!(
            pool.choose(later + Duration::from_mins(10)),
            Choice::Take(_)
        ));
    }
}
