//! One transaction of the writer, as operations see it. All its changes to the queue are recorded,
//! and undone if the transaction is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{Effects, Ending, Event, Record, Refused};
use kinora_contract::{Reading, TaskId};
use rusqlite::Connection;

use super::fault::{Done, Fault};
use super::rows::int;
use super::{rows, script};
use crate::effects::{EffectsMark, PendingEffects};
use crate::operators::Tallies;
use crate::present::Present;
use crate::queue::{Change, Index, alone};
use crate::sql::Dialect;
use crate::tables::tallies;
use crate::usages::{Charge, Usages};

/// An open transaction, with the queue as it will stand after it.
pub(super) struct Batch<'a> {
    pub(super) conn: &'a mut Connection,
    /// Its start time.
    pub(super) now: Present,
    standing: &'a mut Standing,
    changes: Vec<Change>,
    charges: Vec<Charge>,
    endings: Vec<Ending>,
    pub(super) effects: PendingEffects,
    erases: bool,
}

/// A position in the records of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    changes: usize,
    charges: usize,
    endings: usize,
    effects: EffectsMark,
}

impl<'a> Batch<'a> {
    pub(super) fn new(conn: &'a mut Connection, standing: &'a mut Standing, now: Reading) -> Self {
        Self {
            conn,
            now: Present::steady(now),
            standing,
            changes: Vec::new(),
            charges: Vec::new(),
            endings: Vec::new(),
            effects: PendingEffects::default(),
            erases: false,
        }
    }

    /// The queue as it is in this transaction.
    pub(super) const fn queue(&self) -> &Index {
        &self.standing.queue
    }

    /// All other remembered state, as it is in this transaction.
    pub(super) const fn standing(&self) -> &Standing {
        self.standing
    }

    /// Remembers that a task waits to run alone, even if the transaction fails.
    pub(super) fn wait_alone(&mut self, next: alone::Next) {
        self.standing.queue.alone = Some(next);
    }

    /// A place after all others. Places of refused tasks and failed transactions stay empty.
    pub(super) const fn next_seq(&mut self) -> u64 {
        self.standing.seq += 1;
        self.standing.seq
    }

    /// The id under which a task is accepted, after those of all others of its project.
    pub(super) fn next_id(&mut self, project: &str, drawn: TaskId) -> Done<TaskId> {
        if let Some(newest) = self.standing.newest.get_mut(project) {
            *newest = drawn.following(*newest);
            return Ok(*newest);
        }
        let id = drawn.following(rows::newest(self.conn, project)?);
        self.standing.newest.insert(project.to_owned(), id);
        Ok(id)
    }

    /// A fencing token larger than all others; durable once the transaction is committed.
    pub(super) fn next_token(&mut self) -> Done<u64> {
        self.standing.token += 1;
        rows::set_counter(self.conn, "token", self.standing.token)?;
        Ok(self.standing.token)
    }

    /// A fetch's token, larger than all others of this process.
    pub(super) const fn next_fetch_token(&mut self) -> u64 {
        self.standing.fetch_token += 1;
        self.standing.fetch_token
    }

    /// A chore's token, larger than all others of this process, whose start ended all earlier
    /// leases.
    pub(super) const fn next_chore_token(&mut self) -> u64 {
        self.standing.chore_token += 1;
        self.standing.chore_token
    }

    /// The record as it is in this transaction.
    pub(super) fn find(&self, id: TaskId) -> Done<Option<Arc<Record>>> {
        match self.standing.queue.get(id) {
            Some(record) => Ok(Some(record.clone())),
            None => rows::find(self.conn, id),
        }
    }

    /// Adds a record.
    pub(super) fn insert(&mut self, record: Arc<Record>) -> Done<()> {
        rows::add(self.conn, &record)?;
        self.follow(&record.task.project, &Effects::of(None, Some(&record)));
        self.note(record.task.id, Some(record));
        Ok(())
    }

    /// Applies `event` to a task, and stores the task and the effects; `None` if the event removes
    /// it. A refused event changes nothing.
    pub(super) fn apply(
        &mut self,
        before: &Record,
        event: Event,
    ) -> Done<Result<Option<Arc<Record>>, Refused>> {
        let transition = match before.apply(event) {
            Ok(transition) => transition,
            Err(refused) => return Ok(Err(refused)),
        };
        let project = &before.task.project;
        let Some(after) = transition.after.map(Arc::new) else {
            // The row contains its charge.
            let effects = Effects {
                bytes: 0,
                tasks: 0,
                ..transition.effects
            };
            self.follow(project, &effects);
            self.remove(before.task.id, int(before.seq))?;
            return Ok(Ok(None));
        };
        rows::store(self.conn, before, &after)?;
        self.follow(project, &transition.effects);
        self.note(after.task.id, Some(after.clone()));
        Ok(Ok(Some(after)))
    }

    /// The same for an event that the task's state allows.
    pub(super) fn expect(&mut self, before: &Record, event: Event) -> Done<Option<Arc<Record>>> {
        self.apply(before, event)?
            .map_err(|refused| Fault::Corrupt(format!("{}: {refused}", before.task.id)))
    }

    /// Removes a row; its idempotency key goes with it.
    pub(super) fn remove(&mut self, id: TaskId, seq: i64) -> Done<()> {
        let removed = self
            .conn
            .prepare_cached(
                "DELETE FROM tasks WHERE seq = ?1 RETURNING project, charged_bytes, phase <> 'expired'",
            )?
            .query_row([seq], |row| {
                let project: Option<String> = row.get(0).ok();
                let (bytes, tasks) = (row.get(1)?, row.get(2)?);
                // A damaged project is charged nothing.
                Ok(project.map(|project| Charge::of(&project, bytes, tasks)))
            })?;
        if let Some(removed) = removed {
            self.charge(removed.reversed());
        }
        self.erase();
        self.note(id, None);
        Ok(())
    }

    /// Marks the lease of a task as used up by a dead process ([`alone::judged`]).
    pub(super) fn condemn(&mut self, before: &Record) -> Done<()> {
        let lease = before.lease.as_ref().map(alone::judged);
        let after = Arc::new(Record {
            lease,
            ..before.clone()
        });
        rows::renew(self.conn, before, &after)?;
        self.note(after.task.id, Some(after));
        Ok(())
    }

    /// Collects the effects of a change.
    pub(super) fn follow(&mut self, project: &str, effects: &Effects) {
        self.effects.add(project, effects);
        self.erases |= effects.erases;
        self.endings.extend(effects.ending.clone());
        self.charge(Charge::of(project, effects.bytes, effects.tasks));
    }

    /// Runs the part of an operation that handles one row. Damage undoes only that part, and is
    /// logged: it must not block the rows after it. Returns nothing in that case.
    pub(super) fn apart<T>(&mut self, part: impl FnOnce(&mut Self) -> Done<T>) -> Done<Option<T>> {
        let mark = self.mark();
        self.control("SAVEPOINT part")?;
        let done = part(self);
        if let Err(Fault::Corrupt(error)) = done {
            tracing::error!(error, "damaged row skipped");
            self.undo_to(mark);
            self.control("ROLLBACK TO part")?;
            self.control("RELEASE part")?;
            return Ok(None);
        }
        let done = done?;
        self.control("RELEASE part")?;
        Ok(Some(done))
    }

    fn control(&self, statement: &str) -> Done<()> {
        Ok(control(self.conn, statement)?)
    }

    /// Removes a task with a damaged row from the queue, even if the transaction fails: otherwise
    /// it would be claimed again and again, and block all tasks after it.
    pub(super) fn set_aside(&mut self, record: &Arc<Record>) {
        self.standing.queue.apply(&Change {
            id: record.task.id,
            before: Some(record.clone()),
            after: None,
        });
    }

    /// Records a row that the caller's own statement has changed.
    pub(super) fn note(&mut self, id: TaskId, after: Option<Arc<Record>>) {
        let before = self.standing.queue.get(id).cloned();
        let change = Change { id, before, after };
        self.standing.queue.apply(&change);
        self.changes.push(change);
    }

    /// Changes a project's charge.
    pub(super) fn charge(&mut self, charge: Charge) {
        self.standing.usages.charge(&charge);
        self.charges.push(charge);
    }

    /// Records that clients' texts were removed, which must leave the disk soon.
    pub(super) const fn erase(&mut self) {
        self.erases = true;
    }

    /// Whether clients' texts were removed.
    pub(super) const fn erases(&self) -> bool {
        self.erases
    }

    /// Writes the effects, sums and counters of the transaction, as its last step. If it changed anything,
    /// its `jobs` count as changes.
    pub(super) fn write_rest(&self, jobs: u64, rows_before: u64) -> Done<u64> {
        self.write_effects()?;
        self.write_usage()?;
        let tallies: Tallies = self.endings.iter().collect();
        for row in tallies.rows() {
            script::run(self.conn, &tallies::add(&row))?;
        }
        if self.conn.total_changes() == rows_before {
            return Ok(self.standing.changes);
        }
        let changes = self.standing.changes.saturating_add(jobs);
        rows::set_counter(self.conn, "changes", changes)?;
        Ok(changes)
    }

    /// Writes the effects of all changes.
    pub(super) fn write_effects(&self) -> Done<()> {
        for query in self.effects.queries(Dialect::Sqlite) {
            script::run(self.conn, &query)?;
        }
        Ok(())
    }

    /// Keeps the written sums after the commit.
    pub(super) const fn settle(&mut self, changes: u64) {
        self.standing.changes = changes;
    }

    /// Writes the new usage of the charged projects.
    fn write_usage(&self) -> Done<()> {
        let charges = self.charges.iter().filter(|charge| !charge.is_nothing());
        let projects: BTreeSet<&str> = charges.map(|charge| &*charge.project).collect();
        for project in projects {
            rows::set_usage(self.conn, project, self.standing.usages.of(project))?;
        }
        Ok(())
    }

    /// The current position in the records.
    pub(super) const fn mark(&self) -> Mark {
        Mark {
            changes: self.changes.len(),
            charges: self.charges.len(),
            endings: self.endings.len(),
            effects: self.effects.mark(),
        }
    }

    /// Undoes all changes since `mark`, newest first.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        for change in self.changes.drain(mark.changes..).rev() {
            self.standing.queue.undo(&change);
        }
        for charge in self.charges.drain(mark.charges..).rev() {
            self.standing.usages.charge(&charge.reversed());
        }
        self.endings.truncate(mark.endings);
        self.effects.undo_to(mark.effects);
        self.standing.newest.clear();
    }

    /// All recorded changes, for readers of memory.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

/// The remembered state.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Unfinished tasks.
    pub(super) queue: Index,
    /// Stored bytes and tasks of all projects.
    pub(super) usages: Usages,
    /// Ids of the last accepted tasks of projects; read again after a transaction that failed.
    pub(super) newest: HashMap<String, TaskId>,
    /// Largest issued place.
    pub(super) seq: u64,
    /// Largest issued fencing token.
    pub(super) token: u64,
    /// Largest issued token of a fetch.
    pub(super) fetch_token: u64,
    /// Largest issued token of a chore.
    pub(super) chore_token: u64,
    /// Number of changes ever committed.
    pub(super) changes: u64,
}

/// Begins, ends or undoes a transaction or a part of one. Every commit runs these statements, so
/// they are prepared once.
pub(super) fn control(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Rolls an open transaction back.
pub(super) fn roll_back(conn: &Connection) {
    // Some errors have already rolled back.
    if !conn.is_autocommit()
        && let Err(error) = control(conn, "ROLLBACK")
    {
        tracing::error!(%error, "rollback of the store's transaction failed");
    }
}
