//! Limits concurrent connections per host, so nobody can attack a third party through the service.
//! Projects take turns: a free connection goes to the project with the fewest to that host, and
//! among equals to the fetch that has waited longest. A project that already has one never takes
//! the last free one, so no project can lock the others out.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// A host for counting: by name, and by each of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HostKey {
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// All connections and the fetches waiting for one; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct HostTurns {
    connections_max: usize,
    hosts: Arc<Mutex<HashMap<HostKey, BusyHost>>>,
}

/// A host with connections. Hosts without any have no entry.
#[derive(Debug, Default)]
struct BusyHost {
    /// By project; projects without any have no entry.
    connections: HashMap<Arc<str>, usize>,
    /// In order of arrival.
    waiting: Vec<WaitingFetch>,
}

#[derive(Debug)]
struct WaitingFetch {
    project: Arc<str>,
    turn: oneshot::Sender<HostTurn>,
}

/// The right to one connection to a host. Dropping it passes the connection to the next fetch.
#[derive(Debug)]
pub(crate) struct HostTurn {
    turns: HostTurns,
    key: HostKey,
    project: Arc<str>,
    /// Cleared if the receiving fetch is gone.
    counted: bool,
}

impl HostTurns {
    pub(crate) fn new(connections_max: usize) -> Self {
        Self {
            connections_max,
            hosts: Arc::default(),
        }
    }

    /// Waits for a turn, at most for `limit`.
    pub(crate) async fn take(
        &self,
        key: HostKey,
        project: &str,
        limit: Duration,
    ) -> Option<HostTurn> {
        let waiting = {
            let mut hosts = self.hosts();
            let host = hosts.entry(key.clone()).or_default();
            let (turn, waiting) = oneshot::channel();
            let project = project.into();
            host.waiting.push(WaitingFetch { project, turn });
            self.give(&key, &mut hosts);
            waiting
        };
        timeout(limit, waiting).await.ok()?.ok()
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<HostKey, BusyHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free connections of a host to waiting fetches.
    fn give(&self, key: &HostKey, hosts: &mut HashMap<HostKey, BusyHost>) {
        let Some(host) = hosts.get_mut(key) else {
            return;
        };
        while let Some(next) = host.next(self.connections_max) {
            *host.connections.entry(next.project.clone()).or_default() += 1;
            let turn = HostTurn {
                turns: self.clone(),
                key: key.clone(),
                project: next.project,
                counted: true,
            };
            if let Err(mut unwanted) = next.turn.send(turn) {
                // Its `drop` must not run under this lock.
                unwanted.counted = false;
                host.leave(&unwanted.project);
            }
        }
        if host.connections.is_empty() {
            hosts.remove(key);
        }
    }
}

impl BusyHost {
    /// Takes the next fetch that may have one of `connections_max`, and removes abandoned ones.
    fn next(&mut self, connections_max: usize) -> Option<WaitingFetch> {
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
        let taken: usize = self.connections.values().sum();
        let free = connections_max.saturating_sub(taken);
        let held = |place: usize| {
            let project = &self.waiting[place].project;
            self.connections.get(project).copied().unwrap_or(0)
        };
        // The last free one is reserved for a project without any.
        let places = (0..self.waiting.len()).filter(|&place| match free {
            0 => false,
            1 => held(place) == 0,
            _ => true,
        });
        let next = places.min_by_key(|&place| held(place))?;
        Some(self.waiting.remove(next))
    }

    fn leave(&mut self, project: &Arc<str>) {
        if let Some(connections) = self.connections.get_mut(project) {
            *connections -= 1;
            if *connections == 0 {
                self.connections.remove(project);
            }
        }
    }
}

impl Drop for HostTurn {
    fn drop(&mut self) {
        if !self.counted {
            return;
        }
        let mut hosts = self.turns.hosts();
        if let Some(host) = hosts.get_mut(&self.key) {
            host.leave(&self.project);
        }
        self.turns.give(&self.key, &mut hosts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn key() -> HostKey {
        HostKey::Name("host.test".to_owned())
    }

    #[tokio::test]
    async fn a_free_connection_goes_to_the_project_with_the_fewest() {
        let turns = HostTurns::new(3);
        let first = turns.take(key(), "busy", LONG).await.unwrap();
        let second = turns.take(key(), "busy", LONG).await.unwrap();
        let other = turns.take(key(), "other", LONG).await.unwrap();
        let (told, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = tokio::task::JoinSet::new();
        for project in ["busy", "busy", "polite", "busy"] {
            let (own, told) = (turns.clone(), told.clone());
            waiting.spawn(async move {
                let turn = own.take(key(), project, LONG).await.unwrap();
                told.send((project, turn)).unwrap();
            });
            // In this order.
            tokio::task::yield_now().await;
        }
        drop(first);
        let (project, turn) = order.recv().await.unwrap();
        assert_eq!(project, "polite", "two of a busy project came before");
        drop((turn, second, other));
        for _ in 0..3 {
            assert_eq!(order.recv().await.unwrap().0, "busy");
        }
    }

    #[tokio::test]
    async fn p15_the_last_free_connection_is_left_to_projects_that_have_none() {
        let short = Duration::from_millis(1);
        for connections_max in 2..=4 {
            let turns = HostTurns::new(connections_max);
            let mut held = Vec::new();
            for _ in 1..connections_max {
                held.push(turns.take(key(), "busy", LONG).await.unwrap());
            }
            let last = turns.take(key(), "busy", short).await;
            assert!(last.is_none(), "all {connections_max} of one project");
            // Others get it in turn, although the busy project waits as well.
            let still = tokio::spawn({
                let turns = turns.clone();
                async move { turns.take(key(), "busy", LONG).await }
            });
            tokio::task::yield_now().await;
            for project in ["a", "b", "c"] {
                assert!(turns.take(key(), project, LONG).await.is_some());
            }
            assert!(!still.is_finished());
            // A connection that it returns may be its own again.
            held.pop();
            assert!(still.await.unwrap().is_some());
        }
        // With only one connection, any project may have it.
        let turns = HostTurns::new(1);
        assert!(turns.take(key(), "busy", LONG).await.is_some());
    }

    #[tokio::test]
    async fn fetches_that_gave_up_are_forgotten() {
        let turns = HostTurns::new(1);
        let held = turns.take(key(), "a", LONG).await.unwrap();
        let short = Duration::from_millis(1);
        for _ in 0..10 {
            assert!(turns.take(key(), "b", short).await.is_none());
        }
        let waiting = turns.hosts()[&key()].waiting.len();
        assert_eq!(waiting, 1, "the last one, at most");
        drop(held);
        assert!(turns.hosts().is_empty(), "{turns:?}");
    }

    #[tokio::test]
    async fn never_more_than_so_many_and_nothing_is_left_behind() {
        let turns = HostTurns::new(2);
        let held = (
            turns.take(key(), "a", LONG).await.unwrap(),
            turns.take(key(), "b", LONG).await.unwrap(),
        );
        let short = Duration::from_millis(1);
        assert!(turns.take(key(), "c", short).await.is_none());
        // Another host has its own limit.
        let other = HostKey::Address([192, 0, 2, 1].into());
        assert!(turns.take(other, "c", short).await.is_some());
        drop(held.0);
        let third = turns.take(key(), "c", LONG).await.unwrap();
        assert!(turns.take(key(), "c", short).await.is_none());
        drop((held.1, third));
        assert!(turns.hosts().is_empty(), "{turns:?}");
    }
}
