//! The data that the handles of a [`super::ReferenceStore`] share, and how one event changes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kinora_contract::lifecycle::{Effects, Event, Record, References, Refused};
use kinora_contract::{Clock, SteadyMs, Task, TaskId, UnixMs};
use tokio::sync::watch;

use super::chore_row::ChoreRow;
use super::delivery_row::DeliveryRow;
use crate::changes::Followers;
use crate::gap::Gaps;
use crate::present::Present;
use crate::queue::{Change, QueueEstimates, Turns, alone};
use crate::tallies::Tallies;
use crate::{
    Announcement, ApiKey, ChoreWork, KeyAction, SecretKey, StoreError, TaskChange, Usage, Webhook,
};

/// All stored data.
#[derive(Debug)]
pub(super) struct State {
    pub(super) identity: u64,
    pub(super) clock: Arc<dyn Clock>,
    /// Every existing task.
    pub(super) records: BTreeMap<TaskId, Arc<Record>>,
    /// Idempotency keys, by project and key. Each is removed with its task.
    pub(super) bindings: BTreeMap<(String, String), Binding>,
    /// By number.
    pub(super) chores: BTreeMap<u64, ChoreRow>,
    /// In order of creation.
    pub(super) keys: Vec<ApiKey>,
    /// Oldest first.
    pub(super) key_log: VecDeque<KeyAction>,
    /// Over ended tasks.
    pub(super) tallies: Tallies,
    /// By id, including expired ones.
    pub(super) workers: BTreeMap<String, Announced>,
    pub(super) webhooks: Vec<Webhook>,
    /// By number.
    pub(super) deliveries: BTreeMap<u64, DeliveryRow>,
    pub(super) signing_key: Option<SecretKey>,
    /// Of running tasks.
    pub(super) previews: BTreeMap<TaskId, Arc<[u8]>>,
    pub(super) gaps: Gaps,
    /// Ids of the last accepted tasks of projects.
    pub(super) newest: BTreeMap<String, TaskId>,
    pub(super) turns: Turns,
    /// The token of the last fetch of each project with unfinished tasks.
    pub(super) last_fetches: BTreeMap<String, u64>,
    /// A task that waits for its worker to be empty.
    pub(super) alone: Option<alone::Next>,
    pub(super) estimates: QueueEstimates,
    pub(super) work: watch::Sender<u64>,
    pub(super) withdrawn: watch::Sender<u64>,
    pub(super) ended: watch::Sender<u64>,
    pub(super) followers: Followers,
    /// The last issued place, token or number.
    last_number: u64,
}

/// The binding of an idempotency key.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) fingerprint: [u8; 32],
    pub(super) expires_at_ms: UnixMs,
    pub(super) task: TaskId,
}

/// A worker's announcement.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) worker: Announcement,
    pub(super) seen_steady_ms: SteadyMs,
    pub(super) until_steady_ms: SteadyMs,
}

impl State {
    pub(super) fn new(identity: u64, clock: Arc<dyn Clock>) -> Self {
        let mut state = Self {
            identity,
            estimates: QueueEstimates::new(clock.clone()),
            clock,
            records: BTreeMap::new(),
            bindings: BTreeMap::new(),
            chores: BTreeMap::new(),
            keys: Vec::new(),
            key_log: VecDeque::new(),
            tallies: Tallies::default(),
            workers: BTreeMap::new(),
            webhooks: Vec::new(),
            deliveries: BTreeMap::new(),
            signing_key: None,
            previews: BTreeMap::new(),
            gaps: Gaps::opened(0, Vec::new()),
            newest: BTreeMap::new(),
            turns: Turns::default(),
            last_fetches: BTreeMap::new(),
            alone: None,
            work: watch::Sender::new(0),
            withdrawn: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            followers: Followers::default(),
            last_number: 0,
        };
        state.note(ChoreWork::LookForOrphans);
        state
    }

    /// Ends all leases and replaces the steady clock: their holders are dead.
    pub(super) fn reopen(&mut self, clock: Arc<dyn Clock>) {
        self.estimates = QueueEstimates::new(clock.clone());
        self.clock = clock;
        self.gaps = self.gaps.reopened();
        self.workers.clear();
        self.alone = None;
        for row in self.chores.values_mut() {
            row.free(0);
        }
        self.free_deliveries();
        for record in self.records.values_mut() {
            let mut over = Record::clone(record);
            if let Some(held) = &mut over.lease {
                held.ends_ms = 0;
            }
            over.references = References::stored(over.references == References::AtHand, &over.task);
            *record = Arc::new(over);
            self.estimates.apply(&Change {
                id: record.task.id,
                before: None,
                after: Some(record.clone()),
            });
        }
    }

    /// A place, token or number larger than all others.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The present time.
    pub(super) fn now(&self) -> Present {
        Present::steady(self.clock.read())
    }

    pub(super) fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        self.records.get(&id).map(|record| record.task.clone())
    }

    /// The record of a task of this project.
    pub(super) fn own(&self, project: &str, id: TaskId) -> Option<Arc<Record>> {
        let record = self.records.get(&id);
        record
            .filter(|record| record.task.project == project)
            .cloned()
    }

    /// Waiting and running tasks.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &Arc<Record>> {
        let records = self.records.values();
        records.filter(|record| !record.is_terminal())
    }

    /// Running tasks.
    pub(super) fn running(&self) -> impl Iterator<Item = &Record> {
        let records = self.records.values().map(|record| &**record);
        records.filter(|record| record.is_running())
    }

    /// The total usage of the selected tasks.
    pub(super) fn usage(&self, is_meant: impl Fn(&Task) -> bool) -> Usage {
        let records = self.records.values();
        let meant = records.filter(|record| is_meant(&record.task));
        let added = meant.map(|record| Effects::of(None, Some(record)));
        added.fold(Usage::default(), |sum, added| Usage {
            bytes: sum.bytes.saturating_add_signed(added.bytes),
            tasks: sum.tasks.saturating_add_signed(added.tasks),
        })
    }

    /// Applies `event` to a task, and stores the task and the effects. A refused event changes
    /// nothing.
    pub(super) fn apply(
        &mut self,
        before: &Arc<Record>,
        event: Event,
    ) -> Result<Option<Arc<Record>>, Refused> {
        let transition = before.apply(event)?;
        let after = transition.after.map(Arc::new);
        for key in transition.effects.garbage {
            self.note(ChoreWork::RemoveFile(key));
        }
        if let Some(call_off) = transition.effects.call_off {
            self.note(ChoreWork::CallOff(call_off));
        }
        if let Some(task) = transition.effects.ended {
            self.note_end(&before.task.project, task);
        }
        if let Some(ending) = transition.effects.ending {
            self.tallies.add(&ending);
        }
        self.put(Change {
            id: before.task.id,
            before: Some(before.clone()),
            after: after.clone(),
        });
        Ok(after)
    }

    /// The same for an event that the task's state allows.
    pub(super) fn expect(&mut self, before: &Arc<Record>, event: Event) -> Result<(), StoreError> {
        let done = self.apply(before, event);
        done.map(|_| ())
            .map_err(|refused| StoreError::Corrupt(format!("{}: {refused}", before.task.id)))
    }

    /// Replaces a record, and notifies everybody concerned.
    pub(super) fn put(&mut self, change: Change) {
        let id = change.id;
        match &change.after {
            Some(record) => drop(self.records.insert(id, record.clone())),
            None => {
                self.records.remove(&id);
                self.bindings.retain(|_, binding| binding.task != id);
            }
        }
        let lease = |record: &Option<Arc<Record>>| record.as_ref()?.running_lease();
        if lease(&change.before) != lease(&change.after) {
            self.previews.remove(&id);
        }
        if let Some(record) = change.before.as_ref().or(change.after.as_ref()) {
            let project = record.task.project.as_str();
            self.turns.apply(&project.into(), &change);
            let is_own = |other: &Arc<Record>| other.task.project == project;
            if !self.unfinished().any(is_own) {
                self.last_fetches.remove(project);
            }
        }
        self.estimates.apply(&change);
        let hints = change.hints();
        for (hint, moved) in [
            (hints.work, &self.work),
            (hints.withdrawn, &self.withdrawn),
            (hints.ended, &self.ended),
        ] {
            if hint {
                moved.send_modify(|count| *count += 1);
            }
        }
        if change.is_news() {
            self.followers.tell(TaskChange::Of(id));
        }
    }
}
