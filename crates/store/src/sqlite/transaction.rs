//! One transaction of the writer, as operations see it: the open SQLite transaction, the state that
//! the writer remembers between transactions, and a record of every change to it, so that a rollback
//! undoes both. Every call is answered at once, from memory or the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{EventRefusal, TallyEntry, TaskEffects, TaskEvent, TaskRecord};
use kinora_contract::{ClockReading, TaskId, TaskPhase, UnixMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{SqliteFault, SqliteResult};
use super::rows::{phase_name, to_sql_int};
use super::{rows, script};
use crate::backend::{KeyBinding, StoreTransaction, TransactionFault};
use crate::effects::{EffectsMark, PendingEffects};
use crate::operators::TallySums;
use crate::present_time::PresentTime;
use crate::queue::{QueueIndex, RecordChange, claiming};
use crate::sql::{SqlDialect, SqlQuery, SqlRow};
use crate::tables::operators;
use crate::tasks::QueueLoad;
use crate::tasks::{UsageCharge, UsageSums};
use crate::{
    ClaimRequest, ExpiryCursor, FetchRequest, IdempotencyKey, LongTasks, PostponeRequest,
    SweepRequest, TaskCallback,
};

/// An open transaction, with the queue as it will be after the commit.
pub(super) struct WriterTransaction<'a> {
    pub(super) conn: &'a mut Connection,
    /// The time at its start, by which all its operations judge.
    pub(super) now: PresentTime,
    state: &'a mut WriterState,
    changes: Vec<RecordChange>,
    charges: Vec<UsageCharge>,
    endings: Vec<TallyEntry>,
    effects: PendingEffects,
    erases: bool,
}

/// A position in the recorded changes of a transaction, to which they can be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UndoPoint {
    changes: usize,
    charges: usize,
    endings: usize,
    effects: EffectsMark,
}

impl<'a> WriterTransaction<'a> {
    pub(super) fn new(
        conn: &'a mut Connection,
        state: &'a mut WriterState,
        now: ClockReading,
    ) -> Self {
        Self {
            conn,
            now: PresentTime::steady(now),
            state,
            changes: Vec::new(),
            charges: Vec::new(),
            endings: Vec::new(),
            effects: PendingEffects::default(),
            erases: false,
        }
    }

    /// The queue as it is in this transaction.
    pub(super) const fn queue(&self) -> &QueueIndex {
        &self.state.queue
    }

    /// All other remembered state, as it is in this transaction.
    pub(super) const fn state(&self) -> &WriterState {
        self.state
    }

    /// Remembers that a task waits to run alone, even if the transaction fails.
    fn wait_alone(&mut self, next: claiming::WaitingAlone) {
        self.state.queue.alone = Some(next);
    }

    /// A place after all others. Places of refused tasks and failed transactions stay empty.
    const fn next_seq(&mut self) -> u64 {
        self.state.seq += 1;
        self.state.seq
    }

    /// The id under which a task is accepted, after those of all others of its project.
    fn next_id(&mut self, project: &str, drawn: TaskId) -> SqliteResult<TaskId> {
        // Ids order a project's list, so each must follow the last one, even within a millisecond or
        // after the clock was set back.
        if let Some(newest) = self.state.newest.get_mut(project) {
            *newest = drawn.following(*newest);
            return Ok(*newest);
        }
        let id = drawn.following(rows::newest_id(self.conn, project)?);
        self.state.newest.insert(project.to_owned(), id);
        Ok(id)
    }

    /// A fencing token larger than all others; durable once the transaction is committed.
    fn next_token(&mut self) -> SqliteResult<u64> {
        self.state.token += 1;
        // Written in the same transaction as the lease. File keys contain the token too, so a token
        // that a crash let be issued twice would make two runs write the same files.
        rows::set_counter(self.conn, "token", self.state.token)?;
        Ok(self.state.token)
    }

    /// A fetch's token, larger than all others of this process.
    const fn next_fetch_token(&mut self) -> u64 {
        self.state.fetch_token += 1;
        self.state.fetch_token
    }

    /// A chore's token, larger than all others of this process, whose start ended all earlier
    /// leases.
    const fn next_chore_token(&mut self) -> u64 {
        self.state.chore_token += 1;
        self.state.chore_token
    }

    /// The record as it is in this transaction.
    fn find(&self, id: TaskId) -> SqliteResult<Option<Arc<TaskRecord>>> {
        match self.state.queue.get(id) {
            Some(record) => Ok(Some(record.clone())),
            None => rows::find(self.conn, id),
        }
    }

    /// Adds a record.
    fn insert(&mut self, record: Arc<TaskRecord>) -> SqliteResult<()> {
        rows::add(self.conn, &record)?;
        self.collect_effects(
            &record.task.project,
            &TaskEffects::between(None, Some(&record)),
        );
        self.record_change(record.task.id, Some(record));
        Ok(())
    }

    /// Applies `event` to a task, and stores the task and the effects; `None` if the event removes
    /// it. A refused event changes nothing.
    fn apply(
        &mut self,
        before: &TaskRecord,
        event: TaskEvent,
    ) -> SqliteResult<Result<Option<Arc<TaskRecord>>, EventRefusal>> {
        let transition = match before.apply(event) {
            Ok(transition) => transition,
            Err(refused) => return Ok(Err(refused)),
        };
        let project = &before.task.project;
        let Some(after) = transition.after.map(Arc::new) else {
            // The row contains its charge: `remove` takes it from there, since it also serves rows
            // that cannot be read as a record. Taken from the effects too, it would count twice.
            let effects = TaskEffects {
                bytes: 0,
                tasks: 0,
                ..transition.effects
            };
            self.collect_effects(project, &effects);
            self.remove(before.task.id, to_sql_int(before.seq))?;
            return Ok(Ok(None));
        };
        rows::store(self.conn, before, &after)?;
        self.collect_effects(project, &transition.effects);
        self.record_change(after.task.id, Some(after.clone()));
        Ok(Ok(Some(after)))
    }

    /// As [`Self::apply`], for an event that the task's state allows; a refusal means damage.
    pub(super) fn expect(
        &mut self,
        before: &TaskRecord,
        event: TaskEvent,
    ) -> SqliteResult<Option<Arc<TaskRecord>>> {
        self.apply(before, event)?
            .map_err(|refused| SqliteFault::Corrupt(format!("{}: {refused}", before.task.id)))
    }

    /// Removes a row and, by its foreign key, its idempotency key.
    fn remove(&mut self, id: TaskId, seq: i64) -> SqliteResult<()> {
        let removed = self
            .conn
            .prepare_cached(
                "DELETE FROM tasks WHERE seq = ?1 RETURNING project, charged_bytes, phase <> 'expired'",
            )?
            .query_row([seq], |row| {
                let project: Option<String> = row.get(0).ok();
                let (bytes, tasks) = (row.get(1)?, row.get(2)?);
                // A damaged project is charged nothing.
                Ok(project.map(|project| UsageCharge::new(&project, bytes, tasks)))
            })?;
        if let Some(removed) = removed {
            self.charge(removed.reversed());
        }
        self.record_erasure();
        self.record_change(id, None);
        Ok(())
    }

    /// Marks the lease of a task as used up by a dead process ([`claiming::mark_evaluated`]).
    pub(super) fn mark_lost(&mut self, before: &TaskRecord) -> SqliteResult<()> {
        let lease = before.lease.as_ref().map(claiming::mark_evaluated);
        let after = Arc::new(TaskRecord {
            lease,
            ..before.clone()
        });
        rows::renew(self.conn, before, &after)?;
        self.record_change(after.task.id, Some(after));
        Ok(())
    }

    /// Collects the effects of a change.
    fn collect_effects(&mut self, project: &str, effects: &TaskEffects) {
        self.effects.add(project, effects);
        self.erases |= effects.erases;
        self.endings.extend(effects.ending.clone());
        self.charge(UsageCharge::new(project, effects.bytes, effects.tasks));
    }

    /// Runs the part of an operation that handles one row. Damage undoes only that part, and is
    /// logged: it must not block the rows after it. Returns nothing in that case.
    pub(super) fn run_in_savepoint<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> SqliteResult<T>,
    ) -> SqliteResult<Option<T>> {
        // A savepoint undoes the rows, the mark undoes what memory has recorded of them. Both name
        // the same moment, so nothing may come between these two lines.
        let mark = self.undo_point();
        self.run_control("SAVEPOINT part")?;
        let done = part(self);
        if let Err(SqliteFault::Corrupt(error)) = done {
            tracing::error!(error, "damaged row skipped");
            self.undo_to(mark);
            self.run_control("ROLLBACK TO part")?;
            self.run_control("RELEASE part")?;
            return Ok(None);
        }
        let done = done?;
        self.run_control("RELEASE part")?;
        Ok(Some(done))
    }

    fn run_control(&self, statement: &str) -> SqliteResult<()> {
        Ok(execute_control(self.conn, statement)?)
    }

    /// Removes a task with a damaged row from the queue, even if the transaction fails: otherwise
    /// it would be claimed again and again, and block all tasks after it.
    fn remove_from_queue(&mut self, record: &Arc<TaskRecord>) {
        self.state.queue.apply(&RecordChange {
            id: record.task.id,
            before: Some(record.clone()),
            after: None,
        });
    }

    /// Records a row that the caller's own statement has changed.
    fn record_change(&mut self, id: TaskId, after: Option<Arc<TaskRecord>>) {
        let before = self.state.queue.get(id).cloned();
        let change = RecordChange { id, before, after };
        self.state.queue.apply(&change);
        self.changes.push(change);
    }

    /// Changes a project's charge.
    fn charge(&mut self, charge: UsageCharge) {
        self.state.usages.charge(&charge);
        self.charges.push(charge);
    }

    /// Records that clients' texts were removed, which must leave the disk soon.
    const fn record_erasure(&mut self) {
        self.erases = true;
    }

    /// Whether clients' texts were removed.
    pub(super) const fn erases(&self) -> bool {
        self.erases
    }

    /// Writes the effects, sums and counters of the transaction, as its last step. If it changed anything,
    /// its `jobs` count as changes.
    pub(super) fn write_totals(&self, jobs: u64, rows_before: u64) -> SqliteResult<u64> {
        self.write_effects()?;
        self.write_usage()?;
        let tallies: TallySums = self.endings.iter().collect();
        for row in tallies.rows() {
            script::run(self.conn, &operators::add(&row))?;
        }
        // An idle store makes many transactions that change nothing. Counting them would write a
        // row, and so sync the disk, for each.
        if self.conn.total_changes() == rows_before {
            return Ok(self.state.changes);
        }
        let changes = self.state.changes.saturating_add(jobs);
        rows::set_counter(self.conn, "changes", changes)?;
        Ok(changes)
    }

    /// Writes the effects of all changes.
    pub(super) fn write_effects(&self) -> SqliteResult<()> {
        for query in self.effects.queries(SqlDialect::Sqlite) {
            script::run(self.conn, &query)?;
        }
        Ok(())
    }

    /// Takes over the number of changes once it is committed.
    pub(super) const fn set_changes(&mut self, changes: u64) {
        self.state.changes = changes;
    }

    /// Writes the new usage of the charged projects.
    fn write_usage(&self) -> SqliteResult<()> {
        // One write per project and transaction, however many of its tasks changed.
        let charges = self.charges.iter().filter(|charge| !charge.is_nothing());
        let projects: BTreeSet<&str> = charges.map(|charge| &*charge.project).collect();
        for project in projects {
            rows::set_usage(self.conn, project, self.state.usages.project_usage(project))?;
        }
        Ok(())
    }

    /// The current position in the records.
    pub(super) const fn undo_point(&self) -> UndoPoint {
        UndoPoint {
            changes: self.changes.len(),
            charges: self.charges.len(),
            endings: self.endings.len(),
            effects: self.effects.mark(),
        }
    }

    /// Undoes all changes since `mark`, newest first.
    pub(super) fn undo_to(&mut self, mark: UndoPoint) {
        for change in self.changes.drain(mark.changes..).rev() {
            self.state.queue.undo(&change);
        }
        for charge in self.charges.drain(mark.charges..).rev() {
            self.state.usages.charge(&charge.reversed());
        }
        self.endings.truncate(mark.endings);
        self.effects.undo_to(mark.effects);
        // These ids may belong to tasks that were undone. Tokens and places keep their new values:
        // a gap in them is harmless, a repetition is not.
        self.state.newest.clear();
    }

    /// All recorded changes, for readers of memory.
    pub(super) fn into_changes(self) -> Vec<RecordChange> {
        self.changes
    }
}

/// State that the writer remembers between transactions, so that it need not read it from the file.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    /// Unfinished tasks.
    pub(super) queue: QueueIndex,
    /// Stored bytes and tasks of all projects.
    pub(super) usages: UsageSums,
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
pub(super) fn execute_control(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Rolls an open transaction back.
pub(super) fn roll_back(conn: &Connection) {
    // Some errors have already rolled back.
    if !conn.is_autocommit()
        && let Err(error) = execute_control(conn, "ROLLBACK")
    {
        tracing::error!(%error, "rollback of the store's transaction failed");
    }
}

/// Maximum number of tasks that become fetchable again in one transaction, so that submits never
/// wait for long.
const BACK_MAX: usize = 500;

impl TransactionFault for SqliteFault {
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

impl StoreTransaction for WriterTransaction<'_> {
    type Fault = SqliteFault;

    const DIALECT: SqlDialect = SqlDialect::Sqlite;

    fn now(&self) -> &PresentTime {
        &self.now
    }

    async fn query(&mut self, query: SqlQuery) -> SqliteResult<Vec<SqlRow>> {
        script::run(self.conn, &query)
    }

    async fn write(&mut self, query: SqlQuery) -> SqliteResult<Vec<SqlRow>> {
        script::run(self.conn, &query)
    }

    /// Does nothing: no other transaction runs beside this one.
    async fn lock_table(&mut self, _: &'static str) -> SqliteResult<()> {
        Ok(())
    }

    fn find(&mut self, id: TaskId) -> SqliteResult<Option<Arc<TaskRecord>>> {
        WriterTransaction::find(self, id)
    }

    fn apply(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> SqliteResult<Result<Option<Arc<TaskRecord>>, EventRefusal>> {
        WriterTransaction::apply(self, before, event)
    }

    fn expect_unless_damaged(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> SqliteResult<bool> {
        let done = self.run_in_savepoint(|batch| batch.expect(before, event))?;
        Ok(done.is_some())
    }

    async fn remove_unreadable(
        &mut self,
        id: TaskId,
        project: Option<&str>,
    ) -> SqliteResult<Option<Vec<String>>> {
        let Some((seq, artifact)) = find_unreadable(self.conn, id, project)? else {
            return Ok(None);
        };
        let files = rows::artifact_keys(artifact.as_deref());
        self.effects.add_files(&files);
        self.remove(id, seq)?;
        Ok(Some(files))
    }

    async fn expire_unreadable(&mut self, id: TaskId, now_ms: UnixMs) -> SqliteResult<()> {
        let Some((seq, artifact)) = find_unreadable(self.conn, id, None)? else {
            return Ok(());
        };
        self.effects
            .add_files(&rows::artifact_keys(artifact.as_deref()));
        self.record_erasure();
        let project: Option<String> = self
            .conn
            .prepare_cached(
                "UPDATE tasks SET phase = 'expired', artifact = NULL, failure = NULL, state_sum = NULL, \
                 expires_at_ms = max(expires_at_ms, ?2) WHERE seq = ?1 RETURNING project",
            )?
            .query_row([seq, to_sql_int(now_ms)], |row| Ok(row.get(0).ok()))?;
        if let Some(project) = project {
            self.charge(UsageCharge::new(&project, 0, -1));
        }
        self.record_change(id, None);
        Ok(())
    }

    fn next_place(&mut self) -> SqliteResult<u64> {
        Ok(self.next_seq())
    }

    fn next_id(&mut self, project: &str, drawn: TaskId) -> SqliteResult<TaskId> {
        WriterTransaction::next_id(self, project, drawn)
    }

    fn load(&self, project: &str) -> QueueLoad {
        let (queue, usages) = (self.queue(), &self.state().usages);
        QueueLoad {
            waiting: queue.waiting(),
            unfinished: queue.unfinished(project),
            own: usages.project_usage(project),
            bytes: usages.bytes(),
        }
    }

    fn key_binding(&mut self, project: &str, key: &str) -> SqliteResult<Option<KeyBinding>> {
        find_key_binding(self.conn, project, key)
    }

    fn bind_key(&mut self, record: &TaskRecord, idempotency: &IdempotencyKey) -> SqliteResult<()> {
        let mut query = self.conn.prepare_cached(
            "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task_seq) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        query.execute(params![
            record.task.project,
            idempotency.key,
            idempotency.fingerprint,
            to_sql_int(self.now.wall_ms.saturating_add(idempotency.bound_ms)),
            to_sql_int(record.seq),
        ])?;
        Ok(())
    }

    fn insert(
        &mut self,
        record: Arc<TaskRecord>,
        callback: Option<&TaskCallback>,
    ) -> SqliteResult<()> {
        if let Some(callback) = callback {
            self.effects.add_callback(record.task.id, callback);
        }
        WriterTransaction::insert(self, record)
    }

    fn charge_files(&mut self, project: &str, bytes: i64, garbage: &[String]) {
        self.effects.add_files(garbage);
        self.charge(UsageCharge::new(project, bytes, 0));
    }

    /// Always succeeds: the whole queue is in memory.
    async fn reach(&mut self, _: &ClaimRequest, _: Option<LongTasks>) -> SqliteResult<bool> {
        Ok(true)
    }

    fn claimable(&self) -> Option<&QueueIndex> {
        Some(self.queue())
    }

    async fn awaited(&mut self, request: &ClaimRequest) -> SqliteResult<Option<Arc<TaskRecord>>> {
        Ok(self.queue().awaiting(request).cloned())
    }

    fn next_token(&mut self) -> SqliteResult<u64> {
        WriterTransaction::next_token(self)
    }

    fn claim(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> SqliteResult<Option<Arc<TaskRecord>>> {
        let claimed = self.run_in_savepoint(|batch| batch.expect(before, event))?;
        if claimed.is_none() {
            // The next claim would choose the same damaged row first, and so would all after it.
            self.remove_from_queue(before);
        }
        Ok(claimed.flatten())
    }

    fn record_waiting_alone(&mut self, next: claiming::WaitingAlone) -> SqliteResult<()> {
        WriterTransaction::wait_alone(self, next);
        Ok(())
    }

    async fn reach_fetches(&mut self, _: &FetchRequest) -> SqliteResult<bool> {
        // Leases and pauses of fetches are in memory only: after a restart all fetches start anew,
        // so ending one writes nothing.
        for record in self.queue().due_fetches(self.now.lease_ms, BACK_MAX) {
            self.expect(&record, TaskEvent::FetchDue)?;
        }
        Ok(true)
    }

    fn fetchable(&self) -> Option<&QueueIndex> {
        Some(self.queue())
    }

    fn next_fetch_token(&mut self) -> SqliteResult<u64> {
        Ok(WriterTransaction::next_fetch_token(self))
    }

    fn begin_fetch(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
        _: u64,
    ) -> SqliteResult<Option<Arc<TaskRecord>>> {
        self.expect(before, event)
    }

    async fn running(&mut self, _: u64) -> SqliteResult<Vec<Arc<TaskRecord>>> {
        Ok(self.queue().running().cloned().collect())
    }

    /// Returns them unchanged: no other process writes.
    async fn reload_lost(
        &mut self,
        lost: Vec<Arc<TaskRecord>>,
    ) -> SqliteResult<HashMap<TaskId, Arc<TaskRecord>>> {
        let lost = lost.into_iter();
        Ok(lost.map(|record| (record.task.id, record)).collect())
    }

    async fn late(
        &mut self,
        request: &SweepRequest,
        spared: &[String],
        now_ms: UnixMs,
    ) -> SqliteResult<Vec<Arc<TaskRecord>>> {
        Ok(request.late(self.queue().records(), spared, now_ms))
    }

    async fn due(
        &mut self,
        phase: TaskPhase,
        until_ms: UnixMs,
        limit: usize,
    ) -> SqliteResult<Vec<TaskId>> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM tasks WHERE phase = ?1 AND expires_at_ms <= ?2 \
             ORDER BY expires_at_ms LIMIT ?3",
        )?;
        let phase = phase_name(phase);
        let mut rows = query.query(params![
            phase,
            to_sql_int(until_ms),
            to_sql_int(limit as u64)
        ])?;
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
        request: &PostponeRequest,
    ) -> SqliteResult<Vec<(ExpiryCursor, Option<Arc<TaskRecord>>)>> {
        let places = find_postponable(self.conn, request)?;
        let mut found = Vec::with_capacity(places.len());
        for (place, id) in places {
            let record = id.map(|id| rows::find(self.conn, id)).transpose();
            let record = match record {
                // Left alone: a damaged task expires at its old time, like all others.
                Err(SqliteFault::Corrupt(_)) => None,
                record => record?.flatten(),
            };
            found.push((place, record));
        }
        Ok(found)
    }

    async fn sweep_own(&mut self) -> SqliteResult<()> {
        Ok(())
    }

    async fn chore_tokens(&mut self, count: usize) -> SqliteResult<Vec<u64>> {
        Ok((0..count).map(|_| self.next_chore_token()).collect())
    }
}

/// Place and result of a task whose row may not be readable as a whole.
fn find_unreadable(
    conn: &Connection,
    id: TaskId,
    project: Option<&str>,
) -> SqliteResult<Option<(i64, Option<String>)>> {
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
pub(super) fn find_key_binding(
    conn: &Connection,
    project: &str,
    key: &str,
) -> SqliteResult<Option<KeyBinding>> {
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
        .map_err(|_| SqliteFault::Corrupt(format!("{id} is no task id")))?;
    Ok(Some(KeyBinding { fingerprint, task }))
}

/// A batch of candidates for [`PostponeRequest`], those that expire last first. One that ended at another
/// time counts too, without an id.
fn find_postponable(
    conn: &Connection,
    request: &PostponeRequest,
) -> SqliteResult<Vec<(ExpiryCursor, Option<TaskId>)>> {
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
            to_sql_int(request.from_ms),
            to_sql_int(last_ms),
            to_sql_int(request.below.expires_at_ms),
            to_sql_int(request.below.number),
            to_sql_int(request.batch as u64),
        ])?;
        while let Some(row) = rows.next()? {
            let place = ExpiryCursor {
                expires_at_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                number: row.get::<_, i64>(1)?.unsigned_abs(),
            };
            let ended_at_ms = row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs);
            let is_meant = ended_at_ms.is_some_and(|at_ms| request.applies_to(at_ms));
            // An unreadable id is left alone: its task ages like all others.
            let id = row.get_ref(2)?.as_str().ok();
            let id = id.filter(|_| is_meant).and_then(|id| id.parse().ok());
            found.insert(place, id);
        }
    }
    Ok(found.into_iter().rev().take(request.batch).collect())
}
