//! A lane's [`LaneTransaction`] as operations use it. Rows that [`StoreOperation::needs`] names are answered from
//! memory; searches send statements.
//!
//! [`StoreOperation::needs`]: crate::backend::StoreOperation::needs

use std::collections::HashMap;
use std::sync::Arc;

use kinora_contract::lifecycle::{EventRefusal, TaskEvent, TaskRecord};
use kinora_contract::{TaskId, TaskPhase, UnixMs};

use super::batch::read_numbers;
use super::batch::{LaneTransaction, NewBinding, ProjectSums};
use super::claims::{self, read_or_skip};
use super::fault::{PostgresFault, PostgresResult, corrupt, unavailable};
use super::session::SqlStatement;
use super::{rows, script};
use crate::backend::{KeyBinding, StoreTransaction, TransactionFault};
use crate::present_time::PresentTime;
use crate::queue::{QueueIndex, claiming};
use crate::sql::{SqlDialect, SqlQuery, SqlRow};
use crate::sql::{artifact_keys, phase_name};
use crate::tables::workers::announced;
use crate::tasks::QueueLoad;
use crate::{
    ClaimRequest, ExpiryCursor, FetchRequest, IdempotencyKey, LongTasks, PostponeRequest,
    QuotaUsage, StoreError, SweepRequest, TaskCallback,
};

/// Time without a write after which the sweep removes a lane's row. A week, since a process may look up the
/// outcome of its last commit after a long outage.
const LANES_KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;

impl TransactionFault for PostgresFault {
    fn corrupt(text: String) -> Self {
        corrupt(text)
    }

    fn damage(&self) -> Option<&str> {
        match self {
            Self::Job(StoreError::Corrupt(text)) => Some(text),
            Self::Job(_) | Self::Sql(_) => None,
        }
    }
}

impl StoreTransaction for LaneTransaction<'_> {
    type Fault = PostgresFault;

    const DIALECT: SqlDialect = SqlDialect::Postgres;

    fn now(&self) -> &PresentTime {
        &self.now
    }

    async fn query(&mut self, query: SqlQuery) -> PostgresResult<Vec<SqlRow>> {
        script::rows(&LaneTransaction::query(self, query.into()).await?)
    }

    async fn write(&mut self, query: SqlQuery) -> PostgresResult<Vec<SqlRow>> {
        let found = LaneTransaction::query(self, query.into()).await?;
        self.wrote |= !found.is_empty();
        script::rows(&found)
    }

    async fn lock_table(&mut self, table: &'static str) -> PostgresResult<()> {
        let lock = format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE");
        LaneTransaction::query(self, SqlStatement::new(lock)).await?;
        Ok(())
    }

    fn find(&mut self, id: TaskId) -> PostgresResult<Option<Arc<TaskRecord>>> {
        LaneTransaction::find(self, id)
    }

    fn apply(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> PostgresResult<Result<Option<Arc<TaskRecord>>, EventRefusal>> {
        Ok(LaneTransaction::apply(self, before, event))
    }

    /// Always applies the event: rows that were loaded can be read.
    fn expect_unless_damaged(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> PostgresResult<bool> {
        self.expect(before, event)?;
        Ok(true)
    }

    async fn remove_unreadable(
        &mut self,
        id: TaskId,
        project: Option<&str>,
    ) -> PostgresResult<Option<Vec<String>>> {
        remove_unreadable(id, project, self).await
    }

    async fn expire_unreadable(&mut self, id: TaskId, now_ms: UnixMs) -> PostgresResult<()> {
        let expire = "UPDATE tasks t SET phase = 'expired', artifact = NULL, failure = NULL, \
                      expires_at_ms = greatest(t.expires_at_ms, $2) FROM tasks was \
                      WHERE t.id = $1 AND was.id = t.id RETURNING t.project, was.artifact";
        let expire = SqlStatement::new(expire).text(id.to_string()).int(now_ms);
        for row in self.change(expire).await? {
            let sums = ProjectSums {
                tasks: -1,
                ..ProjectSums::default()
            };
            self.add_sums(row.try_get(0)?, sums);
            self.new.effects.add_files(&artifact_keys(row.try_get(1)?));
        }
        Ok(())
    }

    fn next_place(&mut self) -> PostgresResult<u64> {
        let place = self.places.next();
        place.ok_or_else(|| corrupt("no place for a task".to_owned()))
    }

    fn next_id(&mut self, project: &str, drawn: TaskId) -> PostgresResult<TaskId> {
        let id = LaneTransaction::next_id(self, project, drawn);
        if LaneTransaction::find(self, id)?.is_some() {
            return Err(unavailable("the id is taken").into());
        }
        Ok(id)
    }

    fn load(&self, project: &str) -> QueueLoad {
        let own = self.projects.get(project).cloned().unwrap_or_default();
        // The sums of the project are exact: its row is locked, and the additions of this transaction count.
        // The totals over all projects may be a second old, since a lock for all would serialise submits.
        QueueLoad {
            waiting: self.totals.waiting,
            unfinished: sum(own.stored.unfinished, own.added.unfinished),
            own: QuotaUsage {
                bytes: sum(own.stored.bytes, own.added.bytes),
                tasks: sum(own.stored.tasks, own.added.tasks),
            },
            bytes: self.totals.bytes,
        }
    }

    fn key_binding(&mut self, project: &str, key: &str) -> PostgresResult<Option<KeyBinding>> {
        let key = (project.to_owned(), key.to_owned());
        Ok(self.bindings.get(&key).cloned())
    }

    fn bind_key(
        &mut self,
        record: &TaskRecord,
        idempotency: &IdempotencyKey,
    ) -> PostgresResult<()> {
        let (project, key) = (record.task.project.clone(), idempotency.key.clone());
        let binding = KeyBinding {
            fingerprint: idempotency.fingerprint.to_vec(),
            task: record.task.id,
        };
        // Stored twice: `new` is written at the end, `bindings` answers a repeated submit in this transaction.
        self.new.bindings.push(NewBinding {
            project: project.clone(),
            key: key.clone(),
            fingerprint: binding.fingerprint.clone(),
            expires_at_ms: self.now.wall_ms.saturating_add(idempotency.bound_ms),
            task: binding.task,
        });
        self.bindings.insert((project, key), binding);
        Ok(())
    }

    fn insert(
        &mut self,
        record: Arc<TaskRecord>,
        callback: Option<&TaskCallback>,
    ) -> PostgresResult<()> {
        if let Some(callback) = callback {
            self.new.effects.add_callback(record.task.id, callback);
        }
        LaneTransaction::insert(self, &record);
        Ok(())
    }

    fn charge_files(&mut self, project: &str, bytes: i64, garbage: &[String]) {
        self.new.effects.add_files(garbage);
        let sums = ProjectSums {
            bytes,
            ..ProjectSums::default()
        };
        self.add_sums(project, sums);
    }

    async fn reach(
        &mut self,
        request: &ClaimRequest,
        long: Option<LongTasks>,
    ) -> PostgresResult<bool> {
        claims::load_claimable(request, long, self).await
    }

    fn claimable(&self) -> Option<&QueueIndex> {
        self.part.as_ref().map(|part| &part.index)
    }

    async fn awaited(&mut self, request: &ClaimRequest) -> PostgresResult<Option<Arc<TaskRecord>>> {
        claims::find_awaited(request, self).await
    }

    fn next_token(&mut self) -> PostgresResult<u64> {
        LaneTransaction::next_token(self)
    }

    fn claim(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> PostgresResult<Option<Arc<TaskRecord>>> {
        claims::claim(before, event, self)
    }

    fn record_waiting_alone(&mut self, next: claiming::WaitingAlone) -> PostgresResult<()> {
        self.queue_mut()?.alone = Some(next);
        Ok(())
    }

    async fn reach_fetches(&mut self, request: &FetchRequest) -> PostgresResult<bool> {
        claims::load_fetchable(request, self).await
    }

    fn fetchable(&self) -> Option<&QueueIndex> {
        self.fetchable.as_ref()
    }

    /// Taken from the queue, which the fetches have locked.
    fn next_fetch_token(&mut self) -> PostgresResult<u64> {
        LaneTransaction::next_token(self)
    }

    fn begin_fetch(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
        token: u64,
    ) -> PostgresResult<Option<Arc<TaskRecord>>> {
        claims::begin_fetch(before, event, token, self)
    }

    async fn running(&mut self, lease_ms: u64) -> PostgresResult<Vec<Arc<TaskRecord>>> {
        // All running tasks are needed to judge one (which ones ran beside it), but only if any lease has
        // ended: the second condition keeps the usual sweep from reading them. No locks: most leases are
        // fine, and locking their rows would hold up renewals.
        let text = format!(
            "SELECT {} FROM tasks t WHERE place = 4 \
             AND EXISTS (SELECT 1 FROM tasks WHERE place = 4 \
             AND (lease_until_steady_ms <= $1 OR lease_until_steady_ms > $2))",
            rows::columns("t")
        );
        let now_ms = self.now.lease_ms;
        let ahead_ms = now_ms.saturating_add(lease_ms.saturating_mul(2));
        let ask = SqlStatement::new(text).int(now_ms).int(ahead_ms);
        let mut running = Vec::new();
        for row in &LaneTransaction::query(self, ask).await? {
            running.extend(read_or_skip(row)?);
        }
        Ok(running)
    }

    async fn reload_lost(
        &mut self,
        mut lost: Vec<Arc<TaskRecord>>,
    ) -> PostgresResult<HashMap<TaskId, Arc<TaskRecord>>> {
        let now_ms = self.now.lease_ms;
        // Leases that seem too long count as lost, in case the server's clock was set back. But if the
        // worker is alive, an operator is only changing `worker.lease_seconds`, and this worker still has
        // the longer setting: its lease is good.
        if lost.iter().any(|one| worker_ahead(one, now_ms).is_some()) {
            let workers = announced(Self::DIALECT);
            let found = StoreTransaction::query(self, workers.query).await?;
            let found = found.iter().map(workers.read);
            let mut living = found.collect::<Result<Vec<_>, _>>()?;
            living.retain(|worker| worker.is_living(&self.now));
            lost.retain(|record| {
                let worker = worker_ahead(record, now_ms);
                worker.is_none_or(|worker| !living.iter().any(|one| one.id == worker))
            });
        }
        let mut found = HashMap::new();
        if lost.is_empty() {
            return Ok(found);
        }
        let text = format!(
            "SELECT {} FROM tasks t WHERE id = ANY($1) ORDER BY id FOR UPDATE SKIP LOCKED",
            rows::columns("t")
        );
        let ids = lost.iter().map(|record| record.task.id.to_string());
        let locked = SqlStatement::new(text).texts(ids.collect());
        // Skips rows that another transaction has locked: their worker is renewing or ending them now. The
        // rows are compared again under the lock, since the first reading took none.
        let locked = LaneTransaction::load(self, locked).await?;
        for judged in lost.iter().filter(|one| locked.contains(&one.task.id)) {
            let now = LaneTransaction::find(self, judged.task.id)?;
            let same = now.filter(|now| now.lease == judged.lease && now.is_running());
            found.extend(same.map(|now| (now.task.id, now)));
        }
        Ok(found)
    }

    async fn late(
        &mut self,
        request: &SweepRequest,
        spared: &[String],
        now_ms: UnixMs,
    ) -> PostgresResult<Vec<Arc<TaskRecord>>> {
        let Some([early, usual]) = request.late_creations(now_ms) else {
            return Ok(Vec::new());
        };
        let text = format!(
            "SELECT {} FROM tasks t WHERE place IN (1, 2, 3) AND started_at_ms IS NULL \
             AND (created_at_ms >= $1 AND created_at_ms < $2 OR created_at_ms >= $3 AND created_at_ms < $4) \
             AND model <> ALL ($6) ORDER BY seq LIMIT $5 FOR UPDATE SKIP LOCKED",
            rows::columns("t")
        );
        let ask = SqlStatement::new(text)
            .int(early.start)
            .int(early.end)
            .int(usual.start)
            .int(usual.end)
            .int(request.batch as u64)
            .texts(spared.to_vec());
        let mut found = Vec::new();
        for id in LaneTransaction::load(self, ask).await? {
            found.extend(LaneTransaction::find(self, id).ok().flatten());
        }
        Ok(found)
    }

    async fn due(
        &mut self,
        phase: TaskPhase,
        until_ms: UnixMs,
        limit: usize,
    ) -> PostgresResult<Vec<TaskId>> {
        let text = format!(
            "SELECT {} FROM tasks t WHERE phase = $1 AND expires_at_ms <= $2 \
             ORDER BY expires_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED",
            rows::columns("t")
        );
        let ask = SqlStatement::new(text)
            .text(phase_name(phase))
            .int(until_ms);
        LaneTransaction::load(self, ask.int(limit as u64)).await
    }

    async fn postponable(
        &mut self,
        request: &PostponeRequest,
    ) -> PostgresResult<Vec<(ExpiryCursor, Option<Arc<TaskRecord>>)>> {
        let text = format!(
            "SELECT {} FROM tasks t WHERE phase IN ('completed', 'failed') AND expires_at_ms >= $1 \
             AND expires_at_ms <= $2 AND (expires_at_ms, seq) < ($3, $4) \
             ORDER BY expires_at_ms DESC, seq DESC LIMIT $5 FOR UPDATE",
            rows::columns("t")
        );
        let ask = SqlStatement::new(text)
            .int(request.from_ms)
            .int(request.expires_before_ms().saturating_sub(1))
            .int(request.below.expires_at_ms)
            .int(request.below.number)
            .int(request.batch as u64);
        let rows = LaneTransaction::query(self, ask).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = rows::id(row)?;
            self.add_loaded(id, rows::read(row))?;
            let place = ExpiryCursor {
                expires_at_ms: row.try_get::<_, i64>("expires_at_ms")?.unsigned_abs(),
                number: row.try_get::<_, i64>("seq")?.unsigned_abs(),
            };
            let record = LaneTransaction::find(self, id).ok().flatten();
            let record = record.filter(|record| {
                let ended_at_ms = record.task.finished_at_ms;
                ended_at_ms.is_some_and(|at_ms| request.applies_to(at_ms))
            });
            found.push((place, record));
        }
        Ok(found)
    }

    /// Removes the rows of lanes whose processes are gone, by the server's clock, which stamps them.
    async fn sweep_own(&mut self) -> PostgresResult<()> {
        let forget = "DELETE FROM lanes WHERE id IN (SELECT id FROM lanes \
                      WHERE at_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 LIMIT 100 \
                      FOR UPDATE SKIP LOCKED) RETURNING 1";
        let forget = SqlStatement::new(forget).int(LANES_KEPT_MS);
        let forgotten = LaneTransaction::query(self, forget).await?;
        self.wrote |= !forgotten.is_empty();
        Ok(())
    }

    async fn chore_tokens(&mut self, count: usize) -> PostgresResult<Vec<u64>> {
        let next = "SELECT nextval('chore_tokens') FROM generate_series(1, $1)";
        let next = SqlStatement::new(next).int(count as u64);
        read_numbers(&LaneTransaction::query(self, next).await?)
    }
}

/// A stored sum with an addition; zero if damage made it negative.
fn sum(stored: i64, added: i64) -> u64 {
    u64::try_from(stored.saturating_add(added)).unwrap_or(0)
}

/// The worker of a lease that ends after `now_ms`.
fn worker_ahead(record: &TaskRecord, now_ms: u64) -> Option<&str> {
    let lease = record.lease.as_ref().filter(|lease| lease.ends_ms > now_ms);
    lease.map(|lease| &*lease.worker)
}

/// Removes the row of a task that this version cannot read; it states its charge.
async fn remove_unreadable(
    id: TaskId,
    project: Option<&str>,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<Option<Vec<String>>> {
    let remove = SqlStatement::new(
        "DELETE FROM tasks WHERE id = $1 AND ($2 IS NULL OR project = $2) \
         RETURNING project, charged_bytes, phase <> 'expired', place IN (1, 2, 3), place IS NOT NULL, artifact",
    );
    let remove = remove.text(id.to_string());
    let remove = remove.bind(
        project.map(str::to_owned),
        tokio_postgres::types::Type::TEXT,
    );
    let mut removed = None;
    for row in batch.change(remove).await? {
        // `place` is null for ended tasks, and so is every comparison with it.
        let is_waiting: Option<bool> = row.try_get(3)?;
        let sums = ProjectSums {
            bytes: -row.try_get::<_, i64>(1)?,
            tasks: -i64::from(row.try_get::<_, bool>(2)?),
            waiting: -i64::from(is_waiting.unwrap_or(false)),
            unfinished: -i64::from(row.try_get::<_, bool>(4)?),
        };
        batch.add_sums(row.try_get(0)?, sums);
        removed = Some(artifact_keys(row.try_get(5)?));
    }
    let keys = SqlStatement::new("DELETE FROM idempotency WHERE task = $1").text(id.to_string());
    batch.change(keys).await?;
    Ok(removed)
}
