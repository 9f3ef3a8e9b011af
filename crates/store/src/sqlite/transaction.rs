//! The writer's [`Batch`] as operations use it. Every call is answered at once, from the writer's
//! memory or the file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record, Refused};
use kinora_contract::{Phase, TaskId, UnixMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::fault::{Done, Fault};
use super::rows::{int, phase_name};
use super::{rows, script};
use crate::backend::{KeyBinding, Transaction, TransactionFault};
use crate::present::Present;
use crate::queue::{Index, alone};
use crate::sql::{Dialect, Query, Row};
use crate::task::Load;
use crate::usages::Charge;
use crate::{
    Callback, ClaimRequest, ExpiryCursor, FetchRequest, Idempotency, LongTasks, Postpone,
    SweepRequest,
};

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

    /// The writer is the only one that writes.
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

    /// The whole queue is in memory.
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
            self.set_aside(before);
        }
        Ok(claimed.flatten())
    }

    fn wait_alone(&mut self, next: alone::Next) -> Done<()> {
        Batch::wait_alone(self, next);
        Ok(())
    }

    async fn reach_fetches(&mut self, _: &FetchRequest) -> Done<bool> {
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

    /// Nobody else can have changed them.
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
                // It must not block those after it.
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
                // It ages like all others.
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
    // A single upper bound, so that the index is entered where the last call ended.
    let last_ms = request.expires_before_ms().saturating_sub(1);
    let last_ms = last_ms.min(request.below.expires_at_ms);
    let mut found = BTreeMap::new();
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
