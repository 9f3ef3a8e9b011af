//! One transaction of a lane. At the start one round trip locks and reads the rows that its operations
//! need; they change records in memory by the rules of the contract, and `commit` writes all changes
//! at once.
//!
//! All processes take locks in one order, which rules out deadlocks: the queue, tasks by id (claims
//! and sweeps skip locked ones instead of waiting), projects by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{EventRefusal, TaskEffects, TaskEvent, TaskRecord};
use kinora_contract::{ID_AHEAD_MS_MAX, TaskId, UnixMs};
use tokio_postgres::Row;

use super::fault::{PostgresFault, PostgresResult, corrupt};
use super::rows;
use super::rows::RowVersion;
use super::session::{BEGIN, QueryPipeline, SYNCED, ServerSession, SqlStatement, read_time};
use super::shared::{QueueTotals, RunningTasks, SharedState, TotalsCache};
use crate::backend::{KeyBinding, RowNeeds};
use crate::effects::PendingEffects;
use crate::operators::TallySums;
use crate::present_time::PresentTime;
use crate::queue::{QueueIndex, RecordChange, claiming};
use crate::{PostgresOptions, StoreError};

/// An open transaction.
pub(super) struct LaneTransaction<'a> {
    pub(super) session: &'a ServerSession,
    pub(super) runs: &'a RunningTasks,
    /// The time at its start, by which all its operations judge.
    pub(super) now: PresentTime,
    /// Version of the rows written by this transaction, if known.
    pub(super) version: Option<RowVersion>,
    pub(super) tasks: HashMap<TaskId, LoadedTask>,
    pub(super) projects: BTreeMap<String, LoadedProject>,
    /// Bound idempotency keys, by project and key.
    pub(super) bindings: HashMap<(String, String), KeyBinding>,
    pub(super) places: std::vec::IntoIter<u64>,
    pub(super) totals: QueueTotals,
    pub(super) queue: Option<QueueRow>,
    pub(super) new: NewRows,
    /// Changes in the order of their events.
    pub(super) changes: Vec<RecordChange>,
    /// Number of tasks that its jobs want to claim.
    pub(super) claims: usize,
    /// Whether there was anything to claim at the start.
    pub(super) is_claimable: bool,
    /// The part of the queue read for a claim, with the changes so far.
    pub(super) part: Option<QueueSlice>,
    /// The part of the queue read for fetches, with the changes so far.
    pub(super) fetchable: Option<QueueIndex>,
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
pub(super) struct QueueSlice {
    pub(super) models: Vec<String>,
    pub(super) worker: String,
    pub(super) index: QueueIndex,
    /// Projects were passed over whose next task costs more.
    pub(super) cost_max: Option<u64>,
    /// Number of further claims before the queue must be read again.
    pub(super) left: usize,
    /// Number of tasks read by project and model, where more may wait in the table.
    pub(super) truncated: HashMap<(String, String), usize>,
    /// Multiple of a project's even share of a claim that was read.
    pub(super) breadth: u64,
}

/// A task as stored, and with its changes.
#[derive(Debug)]
pub(super) struct LoadedTask {
    pub(super) stored: Option<Arc<TaskRecord>>,
    pub(super) now: Option<Arc<TaskRecord>>,
    /// Why the row cannot be read; nothing else about it is known.
    unreadable: Option<String>,
}

impl LoadedTask {
    fn is_unchanged(&self) -> bool {
        match (&self.stored, &self.now) {
            (Some(stored), Some(now)) => Arc::ptr_eq(stored, now),
            _ => false,
        }
    }
}

/// The difference that a change from `before` to `after` makes to the number of records for which
/// `counts` is true: -1, 0 or 1.
fn difference(
    before: Option<&TaskRecord>,
    after: Option<&TaskRecord>,
    counts: fn(&TaskRecord) -> bool,
) -> i64 {
    i64::from(after.is_some_and(counts)) - i64::from(before.is_some_and(counts))
}

/// A project's stored sums, if its row is locked, and the additions to them.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedProject {
    /// The stored sums; zeros if not read.
    pub(super) stored: ProjectSums,
    pub(super) added: ProjectSums,
    /// The project's clock of turns, if a claim moved it; otherwise 0.
    pub(super) turn: u64,
    /// Token of the project's last fetch in this transaction; 0 without one.
    pub(super) last_fetch: u64,
    /// Whether any of its tasks have ended.
    has_endings: bool,
    /// Creation time and place of the newest task ever accepted, if the project is locked.
    pub(super) newest_ms: UnixMs,
    pub(super) newest_seq: u64,
    /// Id of the last accepted task, if the project is locked for new ones.
    newest_id: TaskId,
    pub(super) is_locked: bool,
}

/// Sums of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProjectSums {
    pub(super) bytes: i64,
    pub(super) tasks: i64,
    pub(super) waiting: i64,
    pub(super) unfinished: i64,
}

impl ProjectSums {
    const fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.tasks += other.tasks;
        self.waiting += other.waiting;
        self.unfinished += other.unfinished;
    }
}

/// The row that serialises claims.
#[derive(Clone, Debug)]
pub(super) struct QueueRow {
    pub(super) token: u64,
    pub(super) turn_now: u64,
    pub(super) alone: Option<claiming::WaitingAlone>,
    pub(super) is_changed: bool,
}

/// New rows in other tables than that of the tasks.
#[derive(Debug, Default)]
pub(super) struct NewRows {
    pub(super) effects: PendingEffects,
    pub(super) previews: BTreeMap<TaskId, Arc<[u8]>>,
    pub(super) bindings: Vec<NewBinding>,
    pub(super) tallies: TallySums,
}

impl LaneTransaction<'_> {
    /// Runs a query in this transaction, or changes rows that nothing else in it sees.
    pub(super) async fn query(
        &self,
        statement: SqlStatement,
    ) -> PostgresResult<Vec<tokio_postgres::Row>> {
        Ok(self.session.run(&statement).await?)
    }

    /// As [`Self::query`], for a statement that changes something.
    pub(super) async fn change(
        &mut self,
        statement: SqlStatement,
    ) -> PostgresResult<Vec<tokio_postgres::Row>> {
        self.wrote = true;
        Ok(self.session.run(&statement).await?)
    }

    /// The record with the changes of this transaction. Its row is locked.
    pub(super) fn find(&self, id: TaskId) -> PostgresResult<Option<Arc<TaskRecord>>> {
        match self.tasks.get(&id) {
            None => Ok(None),
            Some(LoadedTask {
                unreadable: Some(text),
                ..
            }) => Err(corrupt(text.clone())),
            Some(slot) => Ok(slot.now.clone()),
        }
    }

    /// Stores a row that was read and locked.
    pub(super) fn add_loaded(
        &mut self,
        id: TaskId,
        read: PostgresResult<Arc<TaskRecord>>,
    ) -> PostgresResult<()> {
        let slot = match read {
            Ok(record) => LoadedTask {
                stored: Some(record.clone()),
                now: Some(record),
                unreadable: None,
            },
            Err(PostgresFault::Job(StoreError::Corrupt(text))) => LoadedTask {
                stored: None,
                now: None,
                unreadable: Some(text),
            },
            Err(fault) => return Err(fault),
        };
        // Not replaced if it is there: a record that this transaction has changed is newer than its
        // row, which is written only at the end.
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
    pub(super) fn insert(&mut self, record: &Arc<TaskRecord>) {
        let created_ms = record.task.id.created_at_ms();
        let project = self.project(&record.task.project);
        // Ids follow the newest one of their project. If a server's clock was years ahead for a
        // moment, all later ids would carry that year, so an absurd distance resets the newest time.
        let is_absurd = project.newest_ms > created_ms.saturating_add(ID_AHEAD_MS_MAX);
        project.newest_ms = if is_absurd {
            created_ms
        } else {
            project.newest_ms.max(created_ms)
        };
        project.newest_seq = record.seq;
        self.add_charge(None, Some(record));
        self.record_change(RecordChange {
            id: record.task.id,
            before: None,
            after: Some(record.clone()),
        });
    }

    /// Applies `event` to a task, and records the task and the effects. A refused event changes
    /// nothing.
    pub(super) fn apply(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> Result<Option<Arc<TaskRecord>>, EventRefusal> {
        let transition = before.apply(event)?;
        let after = transition.after.map(Arc::new);
        self.collect_effects(&before.task.project, transition.effects);
        self.add_charge(Some(before), after.as_deref());
        self.record_change(RecordChange {
            id: before.task.id,
            before: Some(before.clone()),
            after: after.clone(),
        });
        Ok(after)
    }

    /// As [`Self::apply`], for an event that the task's state allows; a refusal means damage.
    pub(super) fn expect(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> PostgresResult<Option<Arc<TaskRecord>>> {
        self.apply(before, event)
            .map_err(|refused| corrupt(format!("{}: {refused}", before.task.id)))
    }

    fn collect_effects(&mut self, project: &str, effects: TaskEffects) {
        self.new.effects.add(project, &effects);
        if let Some(ending) = effects.ending {
            self.new.tallies.add(&ending);
            self.project(&ending.project).has_endings = true;
        }
    }

    fn record_change(&mut self, change: RecordChange) {
        let was = change.before.as_ref().and_then(|one| one.running_lease());
        let is = change.after.as_ref().and_then(|one| one.running_lease());
        if was != is {
            self.new.previews.remove(&change.id);
        }
        // These parts of the queue no longer show its state. A claim or a fetch takes its part out
        // before its own change, applies the change to it and puts it back.
        (self.part, self.fetchable) = (None, None);
        let slot = self.tasks.entry(change.id).or_insert(LoadedTask {
            stored: None,
            now: None,
            unreadable: None,
        });
        slot.now.clone_from(&change.after);
        self.changes.push(change);
    }

    /// Adds the effect of a change to its project's sums.
    fn add_charge(&mut self, before: Option<&TaskRecord>, after: Option<&TaskRecord>) {
        let effects = TaskEffects::between(before, after);
        let added = ProjectSums {
            bytes: effects.bytes,
            tasks: effects.tasks,
            waiting: difference(before, after, TaskRecord::is_waiting),
            unfinished: difference(before, after, |record| !record.is_terminal()),
        };
        if let Some(record) = before.or(after) {
            self.add_sums(&record.task.project, added);
        }
    }

    pub(super) fn add_sums(&mut self, project: &str, added: ProjectSums) {
        self.totals.add(added.waiting, added.bytes);
        self.project(project).added.add(added);
    }

    pub(super) fn project(&mut self, project: &str) -> &mut LoadedProject {
        self.projects.entry(project.to_owned()).or_default()
    }

    /// Locks the queue: no other transaction claims or takes fetches before this one ends.
    pub(super) async fn lock_queue(&mut self) -> PostgresResult<()> {
        match self.queue_lock_statement() {
            Some(lock) => {
                let rows = self.query(lock).await?;
                self.set_queue(&rows)
            }
            None => Ok(()),
        }
    }

    /// The statement that locks the queue, unless it is locked; for [`LaneTransaction::set_queue`].
    pub(super) fn queue_lock_statement(&self) -> Option<SqlStatement> {
        let lock = "SELECT token, turn_now, alone_worker, alone_task FROM queue FOR UPDATE";
        self.queue.is_none().then(|| SqlStatement::new(lock))
    }

    pub(super) fn set_queue(&mut self, rows: &[tokio_postgres::Row]) -> PostgresResult<()> {
        let row = rows
            .first()
            .ok_or_else(|| corrupt("the row of the queue is missing".to_owned()))?;
        let (worker, task): (Option<String>, Option<&str>) = (row.try_get(2)?, row.try_get(3)?);
        let task = task.and_then(|task| task.parse().ok());
        self.queue = Some(QueueRow {
            token: row.try_get::<_, i64>(0)?.unsigned_abs(),
            turn_now: row.try_get::<_, i64>(1)?.unsigned_abs(),
            alone: worker
                .zip(task)
                .map(|(worker, task)| claiming::WaitingAlone::from_stored(worker, task)),
            is_changed: false,
        });
        Ok(())
    }

    /// A fencing token above all others, from the queue, which must be locked.
    pub(super) fn next_token(&mut self) -> PostgresResult<u64> {
        let queue = self.queue_mut()?;
        queue.token += 1;
        Ok(queue.token)
    }

    pub(super) fn queue_mut(&mut self) -> PostgresResult<&mut QueueRow> {
        let queue = self.queue.as_mut();
        let queue = queue.ok_or_else(|| corrupt("the queue is not locked".to_owned()))?;
        queue.is_changed = true;
        Ok(queue)
    }

    /// Reads and locks the rows that `statement` selects.
    pub(super) async fn load(&mut self, statement: SqlStatement) -> PostgresResult<Vec<TaskId>> {
        let rows = self.query(statement).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = rows::id(row)?;
            self.add_loaded(id, rows::read(row))?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// The tasks, among `named` and those to which idempotency keys are bound, that this transaction has
    /// read and not changed.
    pub(super) fn unchanged_tasks(&self, named: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
        let bound = self.bindings.values().map(|binding| binding.task);
        named
            .chain(bound)
            .filter(|id| self.tasks.get(id).is_some_and(LoadedTask::is_unchanged))
            .collect()
    }

    /// Projects whose sums are changed.
    pub(super) fn changed_projects(&self) -> BTreeSet<&str> {
        let changed = self.projects.iter().filter(|(_, project)| {
            let is_moved = project.turn > 0 || project.last_fetch > 0;
            is_moved || project.has_endings || project.added != ProjectSums::default()
        });
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

/// The lane of a transaction and its number there, by which its outcome can be looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneBatch {
    /// The lane's row.
    pub(super) lane: u64,
    /// Number of the transaction in its lane.
    pub(super) batch: u64,
}

const SUMS: &str = "name, bytes, tasks, waiting, unfinished, newest_ms, newest_seq";

/// Begins a transaction. It writes and locks the lane's row first, so a later query for the outcome
/// of this transaction waits until it has ended.
pub(super) async fn begin<'a>(
    session: &'a ServerSession,
    needs: &RowNeeds,
    origin: LaneBatch,
    shared: &'a SharedState,
) -> PostgresResult<LaneTransaction<'a>> {
    let batch = try_begin(session, needs, origin, shared).await?;
    let names = needs.projects.iter();
    let missing = names.filter(|name| !batch.projects.contains_key(*name));
    let missing: Vec<String> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(batch);
    }
    // Only for the first task of a project. The second attempt locks the new rows, and reads what the
    // lock protects after it has the lock.
    add_projects(session, missing).await?;
    try_begin(session, needs, origin, shared).await
}

async fn try_begin<'a>(
    session: &'a ServerSession,
    needs: &RowNeeds,
    origin: LaneBatch,
    shared: &'a SharedState,
) -> PostgresResult<LaneTransaction<'a>> {
    let fresh = shared.totals.fresh();
    let asks_totals = needs.totals && fresh.is_none();
    // All statements are sent at once and answered in one round trip, in this order: the lane's row
    // first, since a later lookup of the outcome waits for it, then tasks before projects, which is the
    // order of locks in all processes. Each statement sees what was committed before it began (READ
    // COMMITTED), so those after a lock see the state that the lock protects.
    let mut asked = QueryPipeline::default();
    asked.add(SqlStatement::new(BEGIN));
    let marked = asked.add(write_lane_row(origin, &shared.options));
    let tasks = asked.add_if(!needs.tasks.is_empty(), || lock_tasks(needs));
    let projects = asked.add_if(!needs.projects.is_empty(), || lock_projects(needs));
    let newest = asked.add_if(needs.places > 0, || newest_ids(needs));
    let places = asked.add_if(needs.places > 0, || draw_places(needs.places));
    let bound = asked.add_if(!needs.keys.is_empty(), || select_bindings(needs));
    let of_bound = asked.add_if(!needs.keys.is_empty(), || bound_tasks(needs));
    let claimable = asked.add_if(needs.claims > 0, any_claimable);
    let sums = asked.add_if(asks_totals, TotalsCache::select_totals);
    let sent = shared.server_clock.start_reading();
    let mut answers = asked.send(session).await?;
    let marked = answers.take(Some(marked));
    let mut batch = LaneTransaction {
        session,
        runs: &shared.runs,
        now: shared.server_clock.present(read_time(&marked)?, sent),
        version: marked.first().map(read_version).transpose()?,
        tasks: HashMap::new(),
        projects: BTreeMap::new(),
        bindings: HashMap::new(),
        places: read_numbers(&answers.take(places))?.into_iter(),
        totals: QueueTotals::default(),
        queue: None,
        new: NewRows::default(),
        changes: Vec::new(),
        claims: needs.claims,
        is_claimable: !answers.take(claimable).is_empty(),
        part: None,
        fetchable: None,
        wrote: false,
    };
    for row in &answers.take(bound) {
        let binding = KeyBinding {
            fingerprint: row.try_get(2)?,
            task: rows::parse_id(row.try_get(3)?)?,
        };
        let key = (row.try_get(0)?, row.try_get(1)?);
        batch.bindings.insert(key, binding);
    }
    for row in answers.take(tasks).iter().chain(&answers.take(of_bound)) {
        batch.add_loaded(rows::id(row)?, rows::read(row))?;
    }
    add_loaded_projects(&mut batch, &answers.take(projects))?;
    set_newest_ids(&mut batch, &answers.take(newest))?;
    let sums = match answers.take(sums).first() {
        Some(row) => Some(shared.totals.store(row)?),
        None => fresh,
    };
    batch.totals = sums.unwrap_or_default();
    Ok(batch)
}

/// The version of the rows that the transaction writes.
fn read_version(marked: &Row) -> PostgresResult<RowVersion> {
    let transaction: i64 = marked.try_get("transaction")?;
    Ok(RowVersion::of_transaction(transaction.unsigned_abs()))
}

/// Writes the lane's row, and sets limits for this transaction alone, so that a pooler's connection keeps
/// no setting.
fn write_lane_row(origin: LaneBatch, options: &PostgresOptions) -> SqlStatement {
    SqlStatement::new(format!(
        "INSERT INTO lanes (id, batch, at_ms) \
         VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) \
         ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at_ms = excluded.at_ms \
         RETURNING at_ms, txid_current() AS transaction, set_config('statement_timeout', $3, true), \
         set_config('idle_in_transaction_session_timeout', $3, true), \
         set_config('jit', 'off', true), {SYNCED}"
    ))
    .int(origin.lane)
    .int(origin.batch)
    .text(options.statement_timeout_ms.to_string())
}

/// Whether there may be anything to claim, without a lock; usually there is nothing.
fn any_claimable() -> SqlStatement {
    SqlStatement::new("SELECT 1 FROM tasks WHERE place = 1 LIMIT 1")
}

fn lock_tasks(needs: &RowNeeds) -> SqlStatement {
    let ids = needs.tasks.iter().map(ToString::to_string).collect();
    SqlStatement::new(format!(
        "SELECT {} FROM tasks t WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        rows::columns("t")
    ))
    .texts(ids)
}

fn lock_projects(needs: &RowNeeds) -> SqlStatement {
    SqlStatement::new(format!(
        "SELECT {SUMS} FROM projects WHERE name = ANY($1) ORDER BY name FOR UPDATE"
    ))
    .texts(needs.projects.iter().cloned().collect())
}

/// The last ids of projects that accept tasks. A statement of its own, after the lock on the projects:
/// one statement would not see a task whose transaction the lock had to wait for.
fn newest_ids(needs: &RowNeeds) -> SqlStatement {
    SqlStatement::new(
        "SELECT n.name, (SELECT t.id FROM tasks t WHERE t.project = n.name AND t.phase <> 'expired' \
         ORDER BY t.id DESC LIMIT 1) FROM unnest($1) AS n(name)",
    )
    .texts(needs.projects.iter().cloned().collect())
}

/// Records the last id of each project. If the newest task was removed, or had the time of a wrong clock,
/// the last possible id of the newest millisecond stands for it.
fn set_newest_ids(batch: &mut LaneTransaction<'_>, found: &[Row]) -> PostgresResult<()> {
    for row in found {
        let Some(project) = batch.projects.get_mut(row.try_get::<_, &str>(0)?) else {
            continue;
        };
        let newest_ms = project.newest_ms;
        let id = row.try_get::<_, Option<&str>>(1)?;
        let id = id.map(rows::parse_id).transpose()?;
        project.newest_id = id
            .filter(|id| id.created_at_ms() == newest_ms)
            .unwrap_or(TaskId::last_of(newest_ms));
    }
    Ok(())
}

fn draw_places(count: u64) -> SqlStatement {
    SqlStatement::new("SELECT nextval('task_seq') FROM generate_series(1, $1)").int(count)
}

/// The rows of idempotency keys.
const BOUND: &str =
    "FROM unnest($1, $2) AS k(project, key) JOIN idempotency i USING (project, key)";

fn select_bindings(needs: &RowNeeds) -> SqlStatement {
    let text = format!("SELECT i.project, i.key, i.fingerprint, i.task {BOUND}");
    with_keys(needs, text)
}

/// The tasks to which keys are bound, without a lock: they are shown, not changed.
fn bound_tasks(needs: &RowNeeds) -> SqlStatement {
    let columns = rows::columns("t");
    with_keys(
        needs,
        format!("SELECT {columns} {BOUND} JOIN tasks t ON t.id = i.task"),
    )
}

fn with_keys(needs: &RowNeeds, text: String) -> SqlStatement {
    let (projects, keys): (Vec<String>, Vec<String>) = needs.keys.iter().cloned().unzip();
    SqlStatement::new(text).texts(projects).texts(keys)
}

fn add_loaded_projects(batch: &mut LaneTransaction<'_>, found: &[Row]) -> PostgresResult<()> {
    for row in found {
        let project = LoadedProject {
            stored: ProjectSums {
                bytes: row.try_get(1)?,
                tasks: row.try_get(2)?,
                waiting: row.try_get(3)?,
                unfinished: row.try_get(4)?,
            },
            newest_ms: row.try_get::<_, i64>(5)?.unsigned_abs(),
            newest_seq: row.try_get::<_, i64>(6)?.unsigned_abs(),
            is_locked: true,
            ..LoadedProject::default()
        };
        batch.projects.insert(row.try_get(0)?, project);
    }
    Ok(())
}

/// Adds the rows of projects that get their first task, in a transaction of its own, so that everything
/// that the lock of a project protects is read after that lock was taken.
async fn add_projects(session: &ServerSession, missing: Vec<String>) -> PostgresResult<()> {
    let add = SqlStatement::new(
        "INSERT INTO projects (name) SELECT name FROM unnest($1) AS n(name) ORDER BY name ON CONFLICT DO NOTHING",
    );
    let statements = [SqlStatement::new("ROLLBACK"), add.texts(missing)];
    session.run_all(&statements).await?;
    Ok(())
}

pub(super) fn read_numbers(rows: &[Row]) -> PostgresResult<Vec<u64>> {
    rows.iter()
        .map(|row| Ok(row.try_get::<_, i64>(0)?.unsigned_abs()))
        .collect()
}
