//! One transaction of the writer, as operations see it: the open SQLite transaction, the state that
//! the writer remembers between transactions, and a record of every change to it, so that a rollback
//! undoes both. Every call is answered at once, from memory or the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{Effects, Ending, Event, Record, Refused};
use kinora_contract::{Phase, Reading, TaskId, UnixMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Done, Fault};
use super::rows::{int, phase_name};
use super::{rows, script};
use crate::backend::{KeyBinding, Transaction, TransactionFault};
use crate::effects::{EffectsMark, PendingEffects};
use crate::operators::Tallies;
use crate::present::Present;
use crate::queue::{Change, Index, claiming};
use crate::sql::{Dialect, Query, Row};
use crate::tables::operators;
use crate::tasks::Load;
use crate::tasks::{Charge, Usages};
use crate::{
    Callback, ClaimRequest, ExpiryCursor, FetchRequest, Idempotency, LongTasks, Postpone,
    SweepRequest,
};

/// An open transaction, with the queue as it will be after the commit.
pub(super) struct Batch<'a> {
    pub(super) conn: &'a mut Connection,
    /// The time at its start, by which all its operations judge.
    pub(super) now: Present,
    standing: &'a mut Standing,
    changes: Vec<Change>,
    charges: Vec<Charge>,
    endings: Vec<Ending>,
    effects: PendingEffects,
    erases: bool,
}

/// A position in the recorded changes of a transaction, to which they can be undone.
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
    fn wait_alone(&mut self, next: claiming::Next) {
        self.standing.queue.alone = Some(next);
    }

    /// A place after all others. Places of refused tasks and failed transactions stay empty.
    const fn next_seq(&mut self) -> u64 {
        self.standing.seq += 1;
        self.standing.seq
    }

    /// The id under which a task is accepted, after those of all others of its project.
    fn next_id(&mut self, project: &str, drawn: TaskId) -> Done<TaskId> {
        // Ids order a project's list, so each must follow the last one, even within a millisecond or
        // after the clock was set back.
        if let Some(newest) = self.standing.newest.get_mut(project) {
            *newest = drawn.following(*newest);
            return Ok(*newest);
        }
        let id = drawn.following(rows::newest(self.conn, project)?);
        self.standing.newest.insert(project.to_owned(), id);
        Ok(id)
    }

    /// A fencing token larger than all others; durable once the transaction is committed.
    fn next_token(&mut self) -> Done<u64> {
        self.standing.token += 1;
        // Written in the same transaction as the lease. File keys contain the token too, so a token
        // that a crash let be issued twice would make two runs write the same files.
        rows::set_counter(self.conn, "token", self.standing.token)?;
        Ok(self.standing.token)
    }

    /// A fetch's token, larger than all others of this process.
    const fn next_fetch_token(&mut self) -> u64 {
        self.standing.fetch_token += 1;
        self.standing.fetch_token
    }

    /// A chore's token, larger than all others of this process, whose start ended all earlier
    /// leases.
    const fn next_chore_token(&mut self) -> u64 {
        self.standing.chore_token += 1;
        self.standing.chore_token
    }

    /// The record as it is in this transaction.
    fn find(&self, id: TaskId) -> Done<Option<Arc<Record>>> {
        match self.standing.queue.get(id) {
            Some(record) => Ok(Some(record.clone())),
            None => rows::find(self.conn, id),
        }
    }

    /// Adds a record.
    fn insert(&mut self, record: Arc<Record>) -> Done<()> {
        rows::add(self.conn, &record)?;
        self.follow(&record.task.project, &Effects::of(None, Some(&record)));
        self.note(record.task.id, Some(record));
        Ok(())
    }

    /// Applies `event` to a task, and stores the task and the effects; `None` if the event removes
    /// it. A refused event changes nothing.
    fn apply(
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
            // The row contains its charge: `remove` takes it from there, since it also serves rows
            // that cannot be read as a record. Taken from the effects too, it would count twice.
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

    /// As [`Self::apply`], for an event that the task's state allows; a refusal means damage.
    pub(super) fn expect(&mut self, before: &Record, event: Event) -> Done<Option<Arc<Record>>> {
        self.apply(before, event)?
            .map_err(|refused| Fault::Corrupt(format!("{}: {refused}", before.task.id)))
    }

    /// Removes a row and, by its foreign key, its idempotency key.
    fn remove(&mut self, id: TaskId, seq: i64) -> Done<()> {
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

    /// Marks the lease of a task as used up by a dead process ([`claiming::judged`]).
    pub(super) fn condemn(&mut self, before: &Record) -> Done<()> {
        let lease = before.lease.as_ref().map(claiming::judged);
        let after = Arc::new(Record {
            lease,
            ..before.clone()
        });
        rows::renew(self.conn, before, &after)?;
        self.note(after.task.id, Some(after));
        Ok(())
    }

    /// Collects the effects of a change.
    fn follow(&mut self, project: &str, effects: &Effects) {
        self.effects.add(project, effects);
        self.erases |= effects.erases;
        self.endings.extend(effects.ending.clone());
        self.charge(Charge::of(project, effects.bytes, effects.tasks));
    }

    /// Runs the part of an operation that handles one row. Damage undoes only that part, and is
    /// logged: it must not block the rows after it. Returns nothing in that case.
    pub(super) fn apart<T>(&mut self, part: impl FnOnce(&mut Self) -> Done<T>) -> Done<Option<T>> {
        // A savepoint undoes the rows, the mark undoes what memory has recorded of them. Both name
        // the same moment, so nothing may come between these two lines.
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
    fn set_aside(&mut self, record: &Arc<Record>) {
        self.standing.queue.apply(&Change {
            id: record.task.id,
            before: Some(record.clone()),
            after: None,
        });
    }

    /// Records a row that the caller's own statement has changed.
    fn note(&mut self, id: TaskId, after: Option<Arc<Record>>) {
        let before = self.standing.queue.get(id).cloned();
        let change = Change { id, before, after };
        self.standing.queue.apply(&change);
        self.changes.push(change);
    }

    /// Changes a project's charge.
    fn charge(&mut self, charge: Charge) {
        self.standing.usages.charge(&charge);
        self.charges.push(charge);
    }

    /// Records that clients' texts were removed, which must leave the disk soon.
    const fn erase(&mut self) {
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
            script::run(self.conn, &operators::add(&row))?;
        }
        // An idle store makes many transactions that change nothing. Counting them would write a
        // row, and so sync the disk, for each.
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

    /// Takes over the number of changes once it is committed.
    pub(super) const fn settle(&mut self, changes: u64) {
        self.standing.changes = changes;
    }

    /// Writes the new usage of the charged projects.
    fn write_usage(&self) -> Done<()> {
        // One write per project and transaction, however many of its tasks changed.
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
        // These ids may belong to tasks that were undone. Tokens and places keep their new values:
        // a gap in them is harmless, a repetition is not.
        self.standing.newest.clear();
    }

    /// All recorded changes, for readers of memory.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

/// State that the writer remembers between transactions, so that it need not read it from the file.
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

/// Maximum number of tasks that become fetchable again in one transaction, so that submits never
/// wait for long.
const BACK_MAX: usize = 500;

impl TransactionFault for Fault {
    fn corrupt(text: String) -> Self {
        Self::Corrupt(text)
    }

    fn damage(&self) -> Option<&str> {
        match self {
            Self::Corrupt(text) => Some(text),
            Self::Sql(_) | Self::GivenUp(_) => None,
        }
    }
}

impl Transaction for Batch<'_> {
    type Fault = Fault;

    const DIALECT: Dialect = Dialect::Sqlite;

    fn now(&self) -> &Present {
        &self.now
    }

    async fn query(&mut self, query: Query) -> Done<Vec<Row>> {
        script::run(self.conn, &query)
    }

    async fn write(&mut self, query: Query) -> Done<Vec<Row>> {
        script::run(self.conn, &query)
    }

    /// Does nothing: no other transaction runs beside this one.
    async fn lock_table(&mut self, _: &'static str) -> Done<()> {
        Ok(())
    }

    fn find(&mut self, id: TaskId) -> Done<Option<Arc<Record>>> {
        Batch::find(self, id)
    }

    fn apply(
        &mut self,
        before: &Arc<Record>,
        event: Event,
    ) -> Done<Result<Option<Arc<Record>>, Refused>> {
        Batch::apply(self, before, event)
    }

    fn expect_unless_damaged(&mut self, before: &Arc<Record>, event: Event) -> Done<bool> {
        let done = self.apart(|batch| batch.expect(before, event))?;
        Ok(done.is_some())
    }

    async fn remove_unreadable(
        &mut self,
        id: TaskId,
        project: Option<&str>,
    ) -> Done<Option<Vec<String>>> {
        let Some((seq, artifact)) = unreadable(self.conn, id, project)? else {
            return Ok(None);
        };
        let files = rows::files(artifact.as_deref());
        self.effects.add_files(&files);
        self.remove(id, seq)?;
        Ok(Some(files))
    }

    async fn expire_unreadable(&mut self, id: TaskId, now_ms: UnixMs) -> Done<()> {
        let Some((seq, artifact)) = unreadable(self.conn, id, None)? else {
            return Ok(());
        };
        self.effects.add_files(&rows::files(artifact.as_deref()));
        self.erase();
        let project: Option<String> = self
            .conn
            .prepare_cached(
                "UPDATE tasks SET phase = 'expired', artifact = NULL, failure = NULL, state_sum = NULL, \
                 expires_at_ms = max(expires_at_ms, ?2) WHERE seq = ?1 RETURNING project",
            )?
            .query_row([seq, int(now_ms)], |row| Ok(row.get(0).ok()))?;
        if let Some(project) = project {
            self.charge(Charge::of(&project, 0, -1));
        }
        self.note(id, None);
        Ok(())
    }

    fn next_place(&mut self) -> Done<u64> {
        Ok(self.next_seq())
    }

    fn next_id(&mut self, project: &str, drawn: TaskId) -> Done<TaskId> {
        Batch::next_id(self, project, drawn)
    }

    fn load(&self, project: &str) -> Load {
        let (queue, usages) = (self.queue(), &self.standing().usages);
        Load {
            waiting: queue.waiting(),
            unfinished: queue.unfinished(project),
            own: usages.of(project),
            bytes: usages.bytes(),
        }
    }

    fn key_binding(&mut self, project: &str, key: &str) -> Done<Option<KeyBinding>> {
        key_binding(self.conn, project, key)
    }

    fn bind_key(&mut self, record: &Record, idempotency: &Idempotency) -> Done<()> {
        let mut query = self.conn.prepare_cached(
            "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task_seq) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        query.execute(params![
            record.task.project,
            idempotency.key,
            idempotency.fingerprint,
            int(self.now.wall_ms.saturating_add(idempotency.bound_ms)),
            int(record.seq),
        ])?;
        Ok(())
    }

    fn insert(&mut self, record: Arc<Record>, callback: Option<&Callback>) -> Done<()> {
        if let Some(callback) = callback {
            self.effects.add_callback(record.task.id, callback);
        }
        Batch::insert(self, record)
    }

    /// Always succeeds: the whole queue is in memory.
    async fn reach(&mut self, _: &ClaimRequest, _: Option<LongTasks>) -> Done<bool> {
        Ok(true)
    }

    fn claimable(&self) -> Option<&Index> {
        Some(self.queue())
    }

    async fn awaited(&mut self, request: &ClaimRequest) -> Done<Option<Arc<Record>>> {
        Ok(self.queue().awaiting(request).cloned())
    }

    fn next_token(&mut self) -> Done<u64> {
        Batch::next_token(self)
    }

    fn claim(&mut self, before: &Arc<Record>, event: Event) -> Done<Option<Arc<Record>>> {
        let claimed = self.apart(|batch| batch.expect(before, event))?;
        if claimed.is_none() {
            // The next claim would choose the same damaged row first, and so would all after it.
            self.set_aside(before);
        }
        Ok(claimed.flatten())
    }

    fn wait_alone(&mut self, next: claiming::Next) -> Done<()> {
        Batch::wait_alone(self, next);
        Ok(())
    }

    async fn reach_fetches(&mut self, _: &FetchRequest) -> Done<bool> {
        // Leases and pauses of fetches are in memory only: after a restart all fetches start anew,
        // so ending one writes nothing.
        for record in self.queue().back(self.now.lease_ms, BACK_MAX) {
            self.expect(&record, Event::FetchDue)?;
        }
        Ok(true)
    }

    fn fetchable(&self) -> Option<&Index> {
        Some(self.queue())
    }

    fn next_fetch_token(&mut self) -> Done<u64> {
        Ok(Batch::next_fetch_token(self))
    }

    fn begin_fetch(
        &mut self,
        before: &Arc<Record>,
        event: Event,
        _: u64,
    ) -> Done<Option<Arc<Record>>> {
        self.expect(before, event)
    }

    async fn running(&mut self, _: u64) -> Done<Vec<Arc<Record>>> {
        Ok(self.queue().running().cloned().collect())
    }

    /// Returns them unchanged: no other process writes.
    async fn reload_lost(&mut self, lost: Vec<Arc<Record>>) -> Done<HashMap<TaskId, Arc<Record>>> {
        let lost = lost.into_iter();
        Ok(lost.map(|record| (record.task.id, record)).collect())
    }

    async fn late(&mut self, request: &SweepRequest, now_ms: UnixMs) -> Done<Vec<Arc<Record>>> {
        Ok(request.late(self.queue().records(), now_ms))
    }

    async fn due(&mut self, phase: Phase, until_ms: UnixMs, limit: usize) -> Done<Vec<TaskId>> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM tasks WHERE phase = ?1 AND expires_at_ms <= ?2 \
             ORDER BY expires_at_ms LIMIT ?3",
        )?;
        let phase = phase_name(phase);
        let mut rows = query.query(params![phase, int(until_ms), int(limit as u64)])?;
        let mut due = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?;
            let Some(id) = id.as_str().ok().and_then(|id| id.parse().ok()) else {
                // Skipped, so that it does not block the tasks after it.
                tracing::error!(?id, "damaged task id skipped");
                continue;
            };
            due.push(id);
        }
        Ok(due)
    }

    async fn postponable(
        &mut self,
        request: &Postpone,
    ) -> Done<Vec<(ExpiryCursor, Option<Arc<Record>>)>> {
        let places = ended(self.conn, request)?;
        let mut found = Vec::with_capacity(places.len());
        for (place, id) in places {
            let record = id.map(|id| rows::find(self.conn, id)).transpose();
            let record = match record {
                // Left alone: a damaged task expires at its old time, like all others.
                Err(Fault::Corrupt(_)) => None,
                record => record?.flatten(),
            };
            found.push((place, record));
        }
        Ok(found)
    }

    async fn sweep_own(&mut self) -> Done<()> {
        Ok(())
    }

    async fn chore_tokens(&mut self, count: usize) -> Done<Vec<u64>> {
        Ok((0..count).map(|_| self.next_chore_token()).collect())
    }
}

/// Place and result of a task whose row may not be readable as a whole.
fn unreadable(
    conn: &Connection,
    id: TaskId,
    project: Option<&str>,
) -> Done<Option<(i64, Option<String>)>> {
    let mut query = conn.prepare_cached(
        "SELECT seq, artifact FROM tasks WHERE id = ?1 AND (?2 IS NULL OR project = ?2)",
    )?;
    let found = query.query_row(params![id.to_string(), project], |row| {
        // A damaged text must not keep the row; the search for orphans finds its files.
        Ok((row.get(0)?, row.get(1).unwrap_or_default()))
    });
    Ok(found.optional()?)
}

/// The binding of a request's key, if it is stored.
pub(super) fn key_binding(conn: &Connection, project: &str, key: &str) -> Done<Option<KeyBinding>> {
    let mut query = conn.prepare_cached(
        "SELECT tasks.id, fingerprint FROM idempotency JOIN tasks ON seq = task_seq \
         WHERE idempotency.project = ?1 AND key = ?2",
    )?;
    let found = query.query_row(params![project, key], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let Some((id, fingerprint)) = found.optional()? else {
        return Ok(None);
    };
    let task = id
        .parse()
        .map_err(|_| Fault::Corrupt(format!("{id} is no task id")))?;
    Ok(Some(KeyBinding { fingerprint, task }))
}

/// A batch of candidates for [`Postpone`], those that expire last first. One that ended at another
/// time counts too, without an id.
fn ended(conn: &Connection, request: &Postpone) -> Done<Vec<(ExpiryCursor, Option<TaskId>)>> {
    // A single upper bound, so that the index is entered where the last call ended. The unary plus
    // keeps the OR away from the indexes, which SQLite would otherwise search once per term.
    let last_ms = request.expires_before_ms().saturating_sub(1);
    let last_ms = last_ms.min(request.below.expires_at_ms);
    let mut found = BTreeMap::new();
    // One query per phase, merged by the map: `phase IN (...)` would sort all rows of both phases
    // instead of reading the index of each in order.
    for phase in ["completed", "failed"] {
        let mut query = conn.prepare_cached(
            "SELECT expires_at_ms, seq, id, finished_at_ms FROM tasks WHERE phase = ?1 AND expires_at_ms >= ?2 \
             AND expires_at_ms <= ?3 AND (+expires_at_ms < ?4 OR +seq < ?5) \
             ORDER BY expires_at_ms DESC, seq DESC LIMIT ?6",
        )?;
        let mut rows = query.query(params![
            phase,
            int(request.from_ms),
            int(last_ms),
            int(request.below.expires_at_ms),
            int(request.below.number),
            int(request.batch as u64),
        ])?;
        while let Some(row) = rows.next()? {
            let place = ExpiryCursor {
                expires_at_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                number: row.get::<_, i64>(1)?.unsigned_abs(),
            };
            let ended_at_ms = row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs);
            let is_meant = ended_at_ms.is_some_and(|at_ms| request.is_meant(at_ms));
            // An unreadable id is left alone: its task ages like all others.
            let id = row.get_ref(2)?.as_str().ok();
            let id = id.filter(|_| is_meant).and_then(|id| id.parse().ok());
            found.insert(place, id);
        }
    }
    Ok(found.into_iter().rev().take(request.batch).collect())
}
