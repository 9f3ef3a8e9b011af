//! One transaction of a lane, as operations see it. At the start it locks and reads the rows that
//! they need; they change records in memory by the rules of the contract, and at the end it writes
//! all changes at once.
//!
//! All processes take locks in one order, which rules out deadlocks: the queue, tasks by id (claims
//! and sweeps skip locked ones instead of waiting), projects by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{Effects, Event, Record, Refused};
use kinora_contract::{ID_AHEAD_MS_MAX, TaskId, UnixMs};

use super::fault::{Done, Fault, corrupt};
use super::rows::Version;
use super::runs::Runs;
use super::session::Session;
use super::statement::Statement;
use super::totals::Totals;
use crate::StoreError;
use crate::backend::KeyBinding;
use crate::effects::PendingEffects;
use crate::operators::Tallies;
use crate::present::Present;
use crate::queue::{Change, Index, alone};

/// An open transaction.
pub(super) struct Batch<'a> {
    pub(super) session: &'a Session,
    pub(super) runs: &'a Runs,
    /// When it began.
    pub(super) now: Present,
    /// Of the rows that it writes.
    pub(super) version: Option<Version>,
    pub(super) tasks: HashMap<TaskId, Slot>,
    pub(super) projects: BTreeMap<String, Project>,
    /// Bound idempotency keys, by project and key.
    pub(super) bindings: HashMap<(String, String), KeyBinding>,
    pub(super) places: std::vec::IntoIter<u64>,
    pub(super) totals: Totals,
    pub(super) queue: Option<Queue>,
    pub(super) new: New,
    /// Changes in the order of their events.
    pub(super) changes: Vec<Change>,
    /// Number of tasks that its jobs want to claim.
    pub(super) claims: usize,
    /// Whether there was anything to claim at the start.
    pub(super) is_claimable: bool,
    /// The part of the queue read for a claim, with the changes so far.
    pub(super) part: Option<Part>,
    /// The part of the queue read for fetches, with the changes so far.
    pub(super) fetchable: Option<Index>,
    /// Whether statements of operations have already changed anything.
    pub(super) wrote: bool,
}

/// An idempotency key to bind.
#[derive(Clone, Debug)]
pub(super) struct NewBinding {
    pub(super) project: String,
    pub(super) key: String,
    pub(super) fingerprint: Vec<u8>,
    pub(super) expires_at_ms: u64,
    pub(super) task: TaskId,
}

/// The tasks that claims of these models by this worker can reach, and the worker's running tasks.
pub(super) struct Part {
    pub(super) models: Vec<String>,
    pub(super) worker: String,
    pub(super) index: Index,
    /// Projects were passed over whose next task costs more.
    pub(super) cost_max: Option<u64>,
    /// Number of further claims before the queue must be read again.
    pub(super) left: usize,
    /// By project and model, the number of tasks read, if more may wait.
    pub(super) truncated: HashMap<(String, String), usize>,
    /// Multiple of a project's even share of a claim that was read.
    pub(super) breadth: u64,
}

/// A task as stored, and with its changes.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stored: Option<Arc<Record>>,
    pub(super) now: Option<Arc<Record>>,
    /// Why the row cannot be read; nothing else about it is known.
    pub(super) unreadable: Option<String>,
}

/// A project's stored sums, if its row is locked, and the additions to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Project {
    /// The stored sums; zeros if not read.
    pub(super) stored: Sums,
    pub(super) added: Sums,
    /// Its clock, if a claim moved it.
    pub(super) turn: u64,
    /// Token of its last fetch, if it had one.
    pub(super) last_fetch: u64,
    /// Whether any of its tasks have ended.
    pub(super) has_endings: bool,
    /// Creation time and place of the newest task ever accepted, if the project is locked.
    pub(super) newest_ms: UnixMs,
    pub(super) newest_seq: u64,
    /// Id of the last accepted task, if the project is locked for new ones.
    pub(super) newest_id: TaskId,
    pub(super) is_locked: bool,
}

/// Sums of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) bytes: i64,
    pub(super) tasks: i64,
    pub(super) waiting: i64,
    pub(super) unfinished: i64,
}

impl Sums {
    const fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.tasks += other.tasks;
        self.waiting += other.waiting;
        self.unfinished += other.unfinished;
    }
}

/// The row that serialises claims.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) token: u64,
    pub(super) turn_now: u64,
    pub(super) alone: Option<alone::Next>,
    pub(super) is_changed: bool,
}

/// Rows to add beside the tasks.
#[derive(Debug, Default)]
pub(super) struct New {
    pub(super) effects: PendingEffects,
    pub(super) previews: BTreeMap<TaskId, Arc<[u8]>>,
    pub(super) bindings: Vec<NewBinding>,
    pub(super) tallies: Tallies,
}

impl Batch<'_> {
    /// Runs a query in this transaction, or changes rows that nothing else in it sees.
    pub(super) async fn query(&self, statement: Statement) -> Done<Vec<tokio_postgres::Row>> {
        Ok(self.session.run(&statement).await?)
    }

    /// The same for a statement that changes something.
    pub(super) async fn change(&mut self, statement: Statement) -> Done<Vec<tokio_postgres::Row>> {
        self.wrote = true;
        Ok(self.session.run(&statement).await?)
    }

    /// The record with the changes of this transaction. Its row is locked.
    pub(super) fn find(&self, id: TaskId) -> Done<Option<Arc<Record>>> {
        match self.tasks.get(&id) {
            None => Ok(None),
            Some(Slot {
                unreadable: Some(text),
                ..
            }) => Err(corrupt(text.clone())),
            Some(slot) => Ok(slot.now.clone()),
        }
    }

    /// Stores a row that was read and locked.
    pub(super) fn keep(&mut self, id: TaskId, read: Done<Arc<Record>>) -> Done<()> {
        let slot = match read {
            Ok(record) => Slot {
                stored: Some(record.clone()),
                now: Some(record),
                unreadable: None,
            },
            Err(Fault::Job(StoreError::Corrupt(text))) => Slot {
                stored: None,
                now: None,
                unreadable: Some(text),
            },
            Err(fault) => return Err(fault),
        };
        // A record that this transaction changed differs from its row.
        self.tasks.entry(id).or_insert(slot);
        Ok(())
    }

    /// The id under which a task is accepted, after those of all others of its project.
    pub(super) fn next_id(&mut self, project: &str, drawn: TaskId) -> TaskId {
        let project = self.project(project);
        project.newest_id = drawn.following(project.newest_id);
        project.newest_id
    }

    /// Adds a record.
    pub(super) fn insert(&mut self, record: &Arc<Record>) {
        let created_ms = record.task.id.created_at_ms();
        let project = self.project(&record.task.project);
        // A clock that was far ahead for a moment is forgotten: later ids need not follow it.
        let is_absurd = project.newest_ms > created_ms.saturating_add(ID_AHEAD_MS_MAX);
        project.newest_ms = if is_absurd {
            created_ms
        } else {
            project.newest_ms.max(created_ms)
        };
        project.newest_seq = record.seq;
        self.charge(None, Some(record));
        self.put(Change {
            id: record.task.id,
            before: None,
            after: Some(record.clone()),
        });
    }

    /// Applies `event` to a task, and keeps the task and the effects. A refused event changes
    /// nothing.
    pub(super) fn apply(
        &mut self,
        before: &Arc<Record>,
        event: Event,
    ) -> Result<Option<Arc<Record>>, Refused> {
        let transition = before.apply(event)?;
        let after = transition.after.map(Arc::new);
        self.follow(&before.task.project, transition.effects);
        self.charge(Some(before), after.as_deref());
        self.put(Change {
            id: before.task.id,
            before: Some(before.clone()),
            after: after.clone(),
        });
        Ok(after)
    }

    /// The same for an event that the task's present state allows.
    pub(super) fn expect(
        &mut self,
        before: &Arc<Record>,
        event: Event,
    ) -> Done<Option<Arc<Record>>> {
        self.apply(before, event)
            .map_err(|refused| corrupt(format!("{}: {refused}", before.task.id)))
    }

    fn follow(&mut self, project: &str, effects: Effects) {
        self.new.effects.add(project, &effects);
        if let Some(ending) = effects.ending {
            self.new.tallies.add(&ending);
            self.project(&ending.project).has_endings = true;
        }
    }

    fn put(&mut self, change: Change) {
        let lease = |record: &Option<Arc<Record>>| record.as_ref()?.running_lease();
        if lease(&change.before) != lease(&change.after) {
            self.new.previews.remove(&change.id);
        }
        (self.part, self.fetchable) = (None, None);
        let slot = self.tasks.entry(change.id).or_insert(Slot {
            stored: None,
            now: None,
            unreadable: None,
        });
        slot.now.clone_from(&change.after);
        self.changes.push(change);
    }

    /// Adds the effect of a change to its project's sums.
    fn charge(&mut self, before: Option<&Record>, after: Option<&Record>) {
        let effects = Effects::of(before, after);
        let counts = |count: fn(&Record) -> bool| {
            let one = |record: Option<&Record>| i64::from(record.is_some_and(count));
            one(after) - one(before)
        };
        let added = Sums {
            bytes: effects.bytes,
            tasks: effects.tasks,
            waiting: counts(Record::is_waiting),
            unfinished: counts(|record| !record.is_terminal()),
        };
        if let Some(record) = before.or(after) {
            self.add_sums(&record.task.project, added);
        }
    }

    pub(super) fn add_sums(&mut self, project: &str, added: Sums) {
        self.totals.add(added.waiting, added.bytes);
        self.project(project).added.add(added);
    }

    pub(super) fn project(&mut self, project: &str) -> &mut Project {
        self.projects.entry(project.to_owned()).or_default()
    }

    /// Locks the queue: no other transaction claims or takes fetches before this one ends.
    pub(super) async fn lock_queue(&mut self) -> Done<()> {
        match self.queue_lock() {
            Some(lock) => {
                let rows = self.query(lock).await?;
                self.keep_queue(&rows)
            }
            None => Ok(()),
        }
    }

    /// The statement that locks the queue, unless it is locked; for [`Batch::keep_queue`].
    pub(super) fn queue_lock(&self) -> Option<Statement> {
        let lock = "SELECT token, turn_now, alone_worker, alone_task FROM queue FOR UPDATE";
        self.queue.is_none().then(|| Statement::new(lock))
    }

    pub(super) fn keep_queue(&mut self, rows: &[tokio_postgres::Row]) -> Done<()> {
        let row = rows
            .first()
            .ok_or_else(|| corrupt("the row of the queue is missing".to_owned()))?;
        let (worker, task): (Option<String>, Option<&str>) = (row.try_get(2)?, row.try_get(3)?);
        let task = task.and_then(|task| task.parse().ok());
        self.queue = Some(Queue {
            token: row.try_get::<_, i64>(0)?.unsigned_abs(),
            turn_now: row.try_get::<_, i64>(1)?.unsigned_abs(),
            alone: worker
                .zip(task)
                .map(|(worker, task)| alone::Next::stored(worker, task)),
            is_changed: false,
        });
        Ok(())
    }

    /// A fencing token above all others, from the queue, which must be locked.
    pub(super) fn next_token(&mut self) -> Done<u64> {
        let queue = self.queue_mut()?;
        queue.token += 1;
        Ok(queue.token)
    }

    pub(super) fn queue_mut(&mut self) -> Done<&mut Queue> {
        let queue = self.queue.as_mut();
        let queue = queue.ok_or_else(|| corrupt("the queue is not locked".to_owned()))?;
        queue.is_changed = true;
        Ok(queue)
    }

    /// Reads and locks the rows that `statement` selects.
    pub(super) async fn load(&mut self, statement: Statement) -> Done<Vec<TaskId>> {
        let rows = self.query(statement).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = super::rows::id(row)?;
            self.keep(id, super::rows::read(row))?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Those of `named`, and of the tasks that idempotency keys are bound to, that were read and have not changed.
    pub(super) fn unchanged(&self, named: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
        let bound = self.bindings.values().map(|binding| binding.task);
        let is_unchanged = |slot: &Slot| match (&slot.stored, &slot.now) {
            (Some(stored), Some(now)) => Arc::ptr_eq(stored, now),
            _ => false,
        };
        named
            .chain(bound)
            .filter(|id| self.tasks.get(id).is_some_and(is_unchanged))
            .collect()
    }

    /// Projects whose sums are changed.
    pub(super) fn charged(&self) -> BTreeSet<&str> {
        let changed = self.projects.iter().filter(|(_, project)| {
            let is_moved = project.turn > 0 || project.last_fetch > 0;
            is_moved || project.has_endings || project.added != Sums::default()
        });
        changed.map(|(name, _)| name.as_str()).collect()
    }
}
