//! Limits the bytes that a project fetches per hour. A declared size is reserved before the bytes
//! arrive, so concurrent fetches cannot exceed the limit together. The count starts at zero with
//! the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};

const HOUR: Duration = Duration::from_secs(3_600);
/// Bytes received within the same minute are counted together.
const GRAIN: Duration = Duration::from_secs(60);

/// The byte counts of all projects; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    /// `None`: no limit.
    bytes_max: Option<u64>,
    projects: Arc<Mutex<HashMap<Arc<str>, SpentBytes>>>,
    clock: Arc<dyn Clock>,
}

/// A project's last hour. Projects without bytes or reservations have no entry.
#[derive(Debug, Default)]
struct SpentBytes {
    /// When and how many bytes, oldest first.
    grains: VecDeque<(Stopwatch, u64)>,
    reserved: u64,
}

/// Reserved bytes. Dropping it counts the bytes received and releases the rest.
#[derive(Debug)]
pub(crate) struct ByteReservation {
    budget: ByteBudget,
    project: Arc<str>,
    bytes: u64,
    came: u64,
}

impl ByteBudget {
    pub(crate) fn new(bytes_max: Option<u64>, clock: Arc<dyn Clock>) -> Self {
        Self {
            bytes_max,
            projects: Arc::default(),
            clock,
        }
    }

    /// Reserves `bytes` for `project`, or returns how long to wait before asking again. A file
    /// larger than the whole limit may be fetched on its own.
    pub(crate) fn reserve(&self, project: &str, bytes: u64) -> Result<ByteReservation, Duration> {
        let project: Arc<str> = project.into();
        let mut projects = self.projects();
        let spent = projects.entry(project.clone()).or_default();
        spent.forget();
        if let Some(bytes_max) = self.bytes_max {
            let used = spent.used();
            if used > 0 && used.saturating_add(bytes) > bytes_max {
                return Err(spent.frees_after());
            }
        }
        spent.reserved = spent.reserved.saturating_add(bytes);
        Ok(ByteReservation {
            budget: self.clone(),
            project,
            bytes,
            came: 0,
        })
    }

    fn projects(&self) -> MutexGuard<'_, HashMap<Arc<str>, SpentBytes>> {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpentBytes {
    fn forget(&mut self) {
        while self
            .grains
            .front()
            .is_some_and(|(at, _)| at.elapsed() >= HOUR)
        {
            self.grains.pop_front();
        }
    }

    fn used(&self) -> u64 {
        let came = self.grains.iter().map(|(_, bytes)| bytes);
        came.sum::<u64>().saturating_add(self.reserved)
    }

    /// When the oldest bytes are an hour old; soon if only reservations are in the way.
    fn frees_after(&self) -> Duration {
        let oldest = self.grains.front();
        oldest.map_or(GRAIN, |(at, _)| {
            HOUR.saturating_sub(at.elapsed()).max(GRAIN)
        })
    }
}

impl ByteReservation {
    /// Counts received bytes.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.came = self.came.saturating_add(bytes);
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        let mut projects = self.budget.projects();
        let Some(spent) = projects.get_mut(&self.project) else {
            return;
        };
        spent.reserved = spent.reserved.saturating_sub(self.bytes);
        spent.forget();
        if self.came > 0 {
            match spent.grains.back_mut() {
                Some((at, bytes)) if at.elapsed() < GRAIN => {
                    *bytes = bytes.saturating_add(self.came);
                }
                _ => {
                    let now = Stopwatch::start(&self.budget.clock);
                    spent.grains.push_back((now, self.came));
                }
            }
        }
        // Only projects active in the last hour keep an entry.
        projects.retain(|_, spent| {
            spent.forget();
            spent.reserved > 0 || !spent.grains.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;

    use super::*;

    fn bounded(bytes_max: Option<u64>) -> ByteBudget {
        ByteBudget::new(bytes_max, Arc::new(ManualClock::default()))
    }

    fn spend(budget: &ByteBudget, project: &str, bytes: u64) {
        let mut reservation = budget.reserve(project, bytes).unwrap();
        reservation.count(bytes);
    }

    #[test]
    fn a_project_stops_at_its_bound_and_others_do_not() {
        let budget = bounded(Some(100));
        spend(&budget, "a", 60);
        let held = budget.reserve("a", 40).unwrap();
        // Reserved bytes count as if they had arrived.
        let wait = budget.reserve("a", 1).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= HOUR, "{wait:?}");
        spend(&budget, "b", 100);
        // Bytes that did not arrive are released.
        drop(held);
        spend(&budget, "a", 40);
        assert!(budget.reserve("a", 1).is_err());
        assert!(budget.reserve("b", 1).is_err());
    }

    #[test]
    fn a_file_larger_than_the_bound_comes_alone_and_no_bound_is_none() {
        let budget = bounded(Some(100));
        spend(&budget, "a", 1_000);
        assert!(budget.reserve("a", 1).is_err());
        let free = bounded(None);
        spend(&free, "a", u64::MAX / 2);
        spend(&free, "a", u64::MAX / 2);
    }

    #[test]
    fn nothing_is_remembered_of_who_took_nothing() {
        let budget = bounded(Some(100));
        drop(budget.reserve("a", 100));
        assert!(budget.projects().is_empty());
    }

    #[test]
    fn bytes_are_forgotten_after_an_hour_of_steady_time() {
        let clock = Arc::new(ManualClock::default());
        let budget = ByteBudget::new(Some(100), clock.clone());
        spend(&budget, "a", 100);
        clock.set(u64::MAX);
        assert_eq!(budget.reserve("a", 1).unwrap_err(), HOUR);
        clock.set(0);
        clock.advance(HOUR.as_millis() as u64 - 1);
        assert!(budget.reserve("a", 1).is_err());
        clock.advance(1);
        spend(&budget, "a", 100);
    }
}
