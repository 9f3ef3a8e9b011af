//! Limits concurrent work of one kind. Each owner, a project or an API key, gets a share. For lists: a page may cost a
//! thousand times as much as a poll, so only a few are read at a time, and a turn lasts until the work is done even if the
//! client hangs up, so hanging up gains nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::memory::LimitReached;

/// Maximum number of pages read and written at a time.
const PAGES: usize = 4;
/// Maximum per project.
const PAGES_OF_PROJECT: usize = 2;
/// Number of owners from which idle ones are removed.
const FORGET_FROM: usize = 256;
/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// Hands out turns. Clones share them.
#[derive(Clone, Debug)]
pub struct RequestTurns(Arc<TurnLimits>);

#[derive(Debug)]
struct TurnLimits {
    all: Arc<Semaphore>,
    own_max: usize,
    owners: Mutex<OwnerTable>,
}

#[derive(Debug, Default)]
struct OwnerTable {
    named: HashMap<Arc<str>, Arc<Semaphore>>,
    /// The size at which idle owners are removed.
    forget_at: usize,
}

/// An owner's turn; dropping it ends it.
#[derive(Debug)]
pub(crate) struct ActiveTurn {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

/// An owner's own permit, before it competes with other owners.
#[derive(Debug)]
pub(crate) struct OwnPermit(OwnedSemaphorePermit);

/// The turns for lists.
impl Default for RequestTurns {
    fn default() -> Self {
        Self::new(PAGES, PAGES_OF_PROJECT)
    }
}

impl RequestTurns {
    /// Allows `all_max` turns at a time, and at most `own_max` of one owner.
    pub(crate) fn new(all_max: usize, own_max: usize) -> Self {
        Self(Arc::new(TurnLimits {
            all: Arc::new(Semaphore::new(all_max)),
            own_max,
            owners: Mutex::default(),
        }))
    }

    /// Waits for a turn of `owner`: first for one of its own permits, so that an owner with many requests
    /// holds no turns that others need.
    pub(crate) async fn acquire(&self, owner: &str) -> Result<ActiveTurn, LimitReached> {
        self.acquire_turn(self.acquire_own(owner).await?).await
    }

    /// Takes a turn of `owner` without a wait.
    pub(crate) fn try_acquire(&self, owner: &str) -> Result<ActiveTurn, LimitReached> {
        let own = self.own_semaphore(owner).try_acquire_owned();
        let own = own.map_err(|_| LimitReached::Owner)?;
        let all = self.0.all.clone().try_acquire_owned();
        let all = all.map_err(|_| LimitReached::All)?;
        Ok(ActiveTurn {
            _all: all,
            _own: own,
        })
    }

    /// Waits for one of the permits of `owner`.
    pub(crate) async fn acquire_own(&self, owner: &str) -> Result<OwnPermit, LimitReached> {
        // Example: a project sends a hundred lists at once. Two of them compete for the four turns
        // of all projects, and the others wait here, where only their own project does. Another
        // project finds two turns that this one cannot take.
        let turn = self.own_semaphore(owner).acquire_owned();
        match timeout(PATIENCE, turn).await {
            Ok(Ok(permit)) => Ok(OwnPermit(permit)),
            _ => Err(LimitReached::Owner),
        }
    }

    /// Waits for one of all turns, for an owner that holds its own permit. They are granted in
    /// order, so each owner waits for few others.
    pub(crate) async fn acquire_turn(&self, own: OwnPermit) -> Result<ActiveTurn, LimitReached> {
        let turn = self.0.all.clone().acquire_owned();
        match timeout(PATIENCE, turn).await {
            Ok(Ok(permit)) => Ok(ActiveTurn {
                _all: permit,
                _own: own.0,
            }),
            _ => Err(LimitReached::All),
        }
    }

    fn own_semaphore(&self, owner: &str) -> Arc<Semaphore> {
        let mut owners = self.0.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = owners.named.get(owner) {
            return turns.clone();
        }
        // Each time the number of owners doubles: one look at all of them for each new one would be too
        // slow where many have a turn.
        if owners.named.len() >= owners.forget_at.max(FORGET_FROM) {
            // A semaphore that only the map refers to has no permit out and nobody waiting.
            owners.named.retain(|_, turns| Arc::strong_count(turns) > 1);
            owners.forget_at = owners.named.len() * 2;
        }
        let turns = Arc::new(Semaphore::new(self.0.own_max));
        owners.named.insert(owner.into(), turns.clone());
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::disallowed_methods, reason = "by the runtime's paused timers")]
    #[tokio::test(start_paused = true)]
    async fn p15_a_project_with_many_lists_leaves_turns_to_others() {
        let turns = RequestTurns::default();
        let mut greedy = Vec::new();
        for _ in 0..PAGES_OF_PROJECT {
            greedy.push(turns.acquire("greedy").await.unwrap());
        }
        let waiting = turns.clone();
        let waiting = tokio::spawn(async move { waiting.acquire("greedy").await.map(|_| ()) });
        // Immediately, although another asked first.
        let begun = tokio::time::Instant::now();
        let polite = turns.acquire("polite").await.unwrap();
        assert!(begun.elapsed().is_zero());
        drop(greedy.pop());
        assert_eq!(waiting.await.unwrap(), Ok(()));
        drop(polite);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_turn_for_ever() {
        let turns = RequestTurns::default();
        let mut held = Vec::new();
        for number in 0..PAGES {
            held.push(turns.acquire(&format!("project {number}")).await.unwrap());
        }
        assert_eq!(turns.acquire("late").await.unwrap_err(), LimitReached::All);
        let _own = turns.acquire_own("project 0").await.unwrap();
        assert_eq!(
            turns.acquire_own("project 0").await.unwrap_err(),
            LimitReached::Owner
        );
    }

    #[tokio::test]
    async fn p08_projects_that_read_nothing_are_forgotten() {
        let turns = RequestTurns::default();
        let mut most = 0;
        for number in 0..10 * FORGET_FROM {
            drop(turns.acquire(&format!("project {number}")).await.unwrap());
            most = most.max(turns.0.owners.lock().unwrap().named.len());
        }
        assert!(most <= FORGET_FROM);
    }

    #[test]
    fn p08_owners_are_forgotten_also_after_many_had_a_turn_at_once() {
        let turns = RequestTurns::new(2 * FORGET_FROM, 1);
        let take = |number: usize| turns.try_acquire(&number.to_string()).unwrap();
        let live = FORGET_FROM + 44;
        drop((0..live).map(take).collect::<Vec<_>>());
        for number in live..10 * FORGET_FROM {
            drop(take(number));
            assert!(turns.0.owners.lock().unwrap().named.len() <= 2 * live);
        }
    }

    #[test]
    fn p08_turns_without_a_wait_are_bounded_for_all_and_for_each_owner_and_come_back() {
        let turns = RequestTurns::new(3, 2);
        let held = ["one", "one"].map(|owner| turns.try_acquire(owner).unwrap());
        assert_eq!(turns.try_acquire("one").unwrap_err(), LimitReached::Owner);
        let other = turns.try_acquire("two").unwrap();
        assert_eq!(turns.try_acquire("two").unwrap_err(), LimitReached::All);
        drop(other);
        let _other = turns.try_acquire("two").unwrap();
        drop(held);
        drop(turns.try_acquire("one").unwrap());
    }
}
