//! The return times given to refused clients. Each gets the time of the next place that is not
//! promised yet, so that waiting clients do not compete; in the shared queue, other projects do not
//! get promised places. There a project has only a few promises at a time, so that one that does
//! not return delays nobody for long.

use std::collections::HashMap;
use std::sync::Arc;

use kinora_contract::UnixMs;
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;

use crate::RetryAfter;

/// Maximum number of concurrent promises to one project in the shared queue.
const PER_PROJECT_MAX: usize = 4;
/// The same for its own places: a project that does not return delays only itself.
const OWN_MAX: usize = 256;
/// How long a promised place is kept for a late client, in milliseconds.
const GRACE_MS: u64 = 5_000;
/// Assumed time of an answer on its way, in milliseconds.
const LATENCY_MS: u64 = 500;
const AFTER_MAX_MS: u64 = RETRY_AFTER_SECONDS_MAX * 1000;

/// Promised places.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Places in the shared queue, by due time.
    queue: Vec<Promise>,
    /// Due times of each project's own places.
    own: HashMap<Arc<str>, Vec<UnixMs>>,
}

#[derive(Debug)]
struct Promise {
    project: Arc<str>,
    due_ms: UnixMs,
}

impl Promises {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.own.is_empty()
    }

    /// Places of the queue that were promised to other projects before those of this one.
    pub(super) fn reserved(&mut self, project: &str, now_ms: UnixMs) -> u64 {
        self.forget_past(now_ms);
        let before = |one: &&Promise| &*one.project != project;
        self.queue.iter().take_while(before).count() as u64
    }

    /// Records that the project returned and was admitted.
    pub(super) fn keep(&mut self, project: &str, now_ms: UnixMs) {
        self.forget_past(now_ms);
        if let Some(at) = self.queue.iter().position(|one| &*one.project == project) {
            self.queue.remove(at);
        }
        if let Some(own) = self.own.get_mut(project) {
            own.remove(0);
            if own.is_empty() {
                self.own.remove(project);
            }
        }
    }

    /// Promises the project a place in the queue.
    pub(super) fn of_queue(
        &mut self,
        project: &str,
        now_ms: UnixMs,
        vacancies: Vacancies,
    ) -> RetryAfter {
        self.forget_past(now_ms);
        // A client that returned in time and is refused keeps its place before later promises.
        let own = |one: &&Promise| &*one.project == project;
        if let Some(at) = self
            .queue
            .iter()
            .position(|one| own(&one) && one.due_ms <= now_ms)
        {
            self.queue.remove(at);
            let due_ms = now_ms + vacancies.after_ms(at);
            return self.insert(project, due_ms, now_ms);
        }
        let owned = self.queue.iter().filter(own);
        if owned.clone().count() >= PER_PROJECT_MAX {
            let last = owned.map(|one| one.due_ms).max().unwrap_or(now_ms);
            return retry(last, now_ms);
        }
        let last_ms = self.queue.last().map(|one| one.due_ms);
        let due_ms = vacancies.due_ms(self.queue.len(), last_ms, now_ms);
        self.insert(project, due_ms, now_ms)
    }

    /// Promises one of the project's own places.
    pub(super) fn of_project(
        &mut self,
        project: &str,
        now_ms: UnixMs,
        vacancies: Vacancies,
    ) -> RetryAfter {
        self.forget_past(now_ms);
        let own = self.own.entry(project.into()).or_default();
        let late = own.iter().position(|due_ms| *due_ms <= now_ms);
        let ahead = match late {
            Some(at) => {
                own.remove(at);
                at
            }
            None => own.len(),
        };
        let last_ms = own.last().copied();
        if let Some(last_ms) = last_ms.filter(|_| own.len() >= OWN_MAX) {
            return retry(last_ms, now_ms);
        }
        let due_ms = match late {
            Some(_) => now_ms + vacancies.after_ms(ahead),
            None => vacancies.due_ms(ahead, last_ms, now_ms),
        };
        own.push(due_ms);
        own.sort_unstable();
        retry(due_ms, now_ms)
    }

    fn insert(&mut self, project: &str, due_ms: UnixMs, now_ms: UnixMs) -> RetryAfter {
        let project = project.into();
        self.queue.push(Promise { project, due_ms });
        self.queue.sort_by_key(|one| one.due_ms);
        retry(due_ms, now_ms)
    }

    /// Drops promises that nobody used, and those by a clock that was set back since.
    fn forget_past(&mut self, now_ms: UnixMs) {
        let holds = |due_ms: UnixMs| {
            due_ms.saturating_add(GRACE_MS) > now_ms && due_ms <= now_ms + AFTER_MAX_MS
        };
        self.queue.retain(|one| holds(one.due_ms));
        self.own.retain(|_, own| {
            own.retain(|due_ms| holds(*due_ms));
            !own.is_empty()
        });
    }
}

/// When there is room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacancies {
    /// Places that are free by now: the refusal was decided a moment ago.
    pub(super) free: u64,
    /// Milliseconds from one further place to the next.
    pub(super) interval_ms: u64,
}

impl Vacancies {
    /// Milliseconds until there is room for one more than `ahead`, with a margin: who comes late gets
    /// in, who comes early is refused again.
    fn after_ms(self, ahead: usize) -> u64 {
        let places = (ahead as u64 + 1).saturating_sub(self.free);
        let expected = places.saturating_mul(self.interval_ms);
        let with_margin = expected.saturating_add(expected / 5) + LATENCY_MS;
        with_margin.min(AFTER_MAX_MS)
    }

    /// When there is room after `ahead` promised places, the last of them due at `last_ms`: that
    /// time is from an older estimate, and the next place follows at the usual interval.
    fn due_ms(self, ahead: usize, last_ms: Option<UnixMs>, now_ms: UnixMs) -> UnixMs {
        let not_before_ms = last_ms.map_or(0, |last_ms| last_ms + self.interval_ms);
        let latest_ms = now_ms + AFTER_MAX_MS;
        let due_ms = now_ms + self.after_ms(ahead);
        due_ms.max(not_before_ms).min(latest_ms)
    }
}

fn retry(due_ms: UnixMs, now_ms: UnixMs) -> RetryAfter {
    let millis = due_ms.saturating_sub(now_ms).max(1);
    RetryAfter { millis }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_when_a_place_is_free_comes_late_enough() {
        let after = |free, ahead| {
            let interval_ms = 2_000;
            Vacancies { free, interval_ms }.after_ms(ahead)
        };
        assert_eq!(
            [0, 1, 2].map(|ahead| after(0, ahead)),
            [2_900, 5_300, 7_700]
        );
        // Places that came free since the refusal are there at once.
        assert_eq!([0, 1].map(|ahead| after(1, ahead)), [LATENCY_MS, 2_900]);
        assert_eq!(after(u64::MAX, 5), LATENCY_MS);
        assert_eq!(after(0, 1_000_000), AFTER_MAX_MS);
    }

    #[test]
    fn nobody_is_told_the_same_time_as_one_that_an_older_estimate_told() {
        let vacancies = Vacancies {
            free: 0,
            interval_ms: 2_000,
        };
        let due = |ahead, last_ms| vacancies.due_ms(ahead, last_ms, 100_000);
        assert_eq!(due(0, None), 102_900);
        assert_eq!(due(1, Some(102_900)), 105_300);
        assert_eq!(due(1, Some(150_000)), 152_000);
        assert_eq!(due(1, Some(219_999)), 100_000 + AFTER_MAX_MS);
    }
}
