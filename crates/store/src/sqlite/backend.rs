//! The store's answers: from memory where possible, otherwise from the file or through the writer. It
//! never blocks a thread of the runtime on the disk.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{ClockReading, TaskId, UnixMs};

use super::fault::SqliteResult;
use super::reads::{PageReading, UnreadableRow};
use super::transaction::WriterTransaction;
use super::worker_registry::{ROW_AGE_MAX, millis};
use super::writer::WriterStep;
use super::{SqliteStore, read_overview, stopped};
use crate::backend::{StoreBackend, StoreOperation, StoreTables};
use crate::changes::WakeSignals;
use crate::changes::{UNDER_WAY_MS, ended_from};
use crate::queue::QueueEstimates;
use crate::sql::{SqlDialect, SqlScript, TypedQuery};
use crate::tables::keys::RecordUses;
use crate::tables::workers::{AnnounceWorker, WithdrawWorker};
use crate::tables::{operators, workers};
use crate::{
    ApiKey, EndedRequest, EndedTasks, IdempotencyKey, Lease, LivingWorker, PageRequest,
    QueueCounts, QuotaUsage, ServiceOverview, StoreError, TaskGlance, TaskPage, WorkerAnnouncement,
    WorkerDirectory,
};

impl StoreTables for SqliteStore {
    const DIALECT: SqlDialect = SqlDialect::Sqlite;

    async fn ask<T: Send + 'static>(&self, question: TypedQuery<T>) -> Result<Vec<T>, StoreError> {
        self.read(None, move |readers, _| readers.ask(&question))
            .await
    }

    async fn run<S: SqlScript>(&self, script: S) -> Result<S::Output, StoreError> {
        self.writer.call(script).await
    }

    /// Finds the key in memory while that is fresh, otherwise on disk, on a thread that may block.
    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        if let Some(key) = self.keys.cached(sha256, now_ms) {
            return Ok(Some(key));
        }
        // Unknown keys queue at another place, so that a client that tries keys at random does not
        // delay those whose keys are only due for a check.
        let place = usize::from(!self.keys.is_cached(sha256));
        let (keys, sha256) = (self.keys.clone(), *sha256);
        let found = self.key_reading[place].run(move || keys.find(&sha256, now_ms));
        Ok(found.await.map_err(stopped)??)
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.keys.clone();
        let listed = self.key_reading[1].run(move || keys.list());
        Ok(listed.await.map_err(stopped)??)
    }

    fn forget_keys(&self) {
        self.keys.expire();
    }
}

impl StoreBackend for SqliteStore {
    async fn commit<O: StoreOperation>(&self, operation: O) -> Result<O::Output, StoreError> {
        self.writer.call(operation).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        Ok(self.clock.read())
    }

    fn process_ms(&self) -> UnixMs {
        self.clock.now_ms()
    }

    fn signals(&self) -> &WakeSignals {
        &self.memory.signals
    }

    fn estimates(&self) -> &QueueEstimates {
        &self.memory.queue
    }

    /// Does nothing: this process makes all changes of the queue itself.
    async fn refresh_estimates(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn unclean_starts(&self) -> Option<u64> {
        Some(self.unclean_starts)
    }

    async fn confirm_start(&self) -> Result<(), StoreError> {
        self.writer.call(ResetUncleanStarts).await
    }

    fn is_writable(&self) -> bool {
        self.memory.is_writable()
    }

    /// Answers from memory if possible, without a thread and without waiting.
    async fn find(
        &self,
        project: Option<&str>,
        id: TaskId,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        if let Ok(record) = self.memory.cache.get(id) {
            return Ok(Some(record));
        }
        self.read(project, move |readers, memory| readers.find(memory, id))
            .await
    }

    async fn find_all(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<TaskRecord>>, StoreError>>, StoreError> {
        let cached: Option<Vec<_>> = ids
            .iter()
            .map(|id| self.memory.cache.get(*id).ok())
            .collect();
        if let Some(cached) = cached {
            return Ok(cached.into_iter().map(|record| Ok(Some(record))).collect());
        }
        let ids = ids.to_vec();
        self.read(None, move |readers, memory| {
            let found = ids.iter().map(|id| readers.find(memory, *id));
            Ok(found.map(|found| found.map_err(StoreError::from)).collect())
        })
        .await
    }

    /// Waiting tasks are in memory.
    async fn find_waiting(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Option<Arc<TaskRecord>>>, StoreError> {
        let found = ids.iter().map(|id| self.memory.cache.get(*id).ok());
        Ok(found.collect())
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let (owner, idempotency) = (project.to_owned(), idempotency.clone());
        self.read(Some(project), move |readers, memory| {
            readers.find_twin(memory, &owner, &idempotency)
        })
        .await
    }

    async fn list(&self, request: PageRequest) -> Result<TaskPage, StoreError> {
        // A hundred tasks may have to come from disk, so not on a thread that serves others.
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = tokio::task::spawn_blocking(move || readers.list(&memory, &request));
        let PageReading { page, unreadable } = read.await.map_err(stopped)??;
        for UnreadableRow { seq, error } in unreadable {
            tracing::error!(seq, error, "unreadable task left out of a list");
        }
        Ok(page)
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<TaskGlance>>, StoreError> {
        let mut glances = Vec::with_capacity(ids.len());
        for id in ids {
            // Few of the requested tasks have ended, and fewer have left memory.
            let found = self.find(None, *id).await?;
            glances.push(found.and_then(|record| TaskGlance::from_task(&record.task)));
        }
        Ok(glances)
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<TaskGlance>, StoreError> {
        let own = self.memory.unfinished.ids_of(project).into_iter();
        let glances =
            own.filter_map(|id| TaskGlance::from_task(&self.memory.cache.get(id).ok()?.task));
        // The list and the cache are published one after the other, so a task of the list may have
        // ended in the cache.
        Ok(glances.filter(|glance| !glance.has_ended()).collect())
    }

    async fn ended(&self, request: EndedRequest) -> Result<EndedTasks, StoreError> {
        let now_ms = self.clock.now_ms();
        let from_ms = ended_from(request.since_ms, now_ms);
        let ask = operators::ended(&request, from_ms);
        let found = self
            .read(Some(&request.project), move |readers, _| readers.ask(&ask))
            .await?;
        Ok(EndedTasks {
            tasks: found.into_iter().rev().flatten().collect(),
            from_ms,
            // A transaction reads the clock at its start, but its changes are readable only after
            // its commit. The next request must begin early enough to include those in between.
            next_ms: now_ms.saturating_sub(UNDER_WAY_MS),
            now_ms,
        })
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.memory.previews.get(id))
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        // A running task is in memory, so its lease can be checked there.
        self.memory.previews.put(lease, preview, || {
            let record = self.memory.cache.get(lease.task).ok();
            TaskRecord::check_lease(record.as_deref(), lease).is_ok()
        });
        Ok(())
    }

    async fn usage(&self, project: &str) -> Result<QuotaUsage, StoreError> {
        self.writer.call(ReadUsage(project.to_owned())).await
    }

    async fn counts(&self) -> Result<QueueCounts, StoreError> {
        self.writer.call(CountTasks).await
    }

    async fn overview(&self) -> Result<ServiceOverview, StoreError> {
        let script = read_overview(self.clock.read());
        let overview = self
            .read(None, move |readers, _| readers.read_all(&script))
            .await?;
        // Memory has the current state; the rows are for other processes.
        let workers = self.living().await?;
        Ok(ServiceOverview {
            workers,
            ..overview
        })
    }

    /// Always true: a claim reads only memory, so asking first would save nothing.
    async fn may_claim(&self, _: &[String]) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn may_fetch(&self) -> bool {
        self.memory.has_unready()
    }

    async fn write_key_uses(&self) {
        let uses = self.keys.drain_uses();
        if !uses.is_empty() {
            // Lost if the store is unavailable: the time of last use is only information.
            let _ = self.writer.call(RecordUses(uses)).await;
        }
    }
}

#[async_trait]
impl WorkerDirectory for SqliteStore {
    async fn announce(&self, worker: &WorkerAnnouncement, for_ms: u64) -> Result<(), StoreError> {
        let (now, length) = (self.clock.steady(), Duration::from_millis(for_ms));
        if self.workers.announce(worker, length, now) {
            // The row lasts longer than the announcement, since not every renewal rewrites it.
            let row_ms = for_ms.saturating_add(millis(ROW_AGE_MAX));
            self.writer
                .call(AnnounceWorker(worker.clone(), row_ms))
                .await?;
            self.workers.record_written(&worker.id, now);
        }
        Ok(())
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.workers.withdraw(id);
        self.writer.call(WithdrawWorker(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let running = self.ask(workers::running(SqlDialect::Sqlite)).await?;
        let running = running.into_iter().collect();
        Ok(self.workers.living(self.clock.steady(), &running))
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.workers.served_models(self.clock.steady()))
    }
}

/// Reads a project's usage.
#[derive(Debug)]
struct ReadUsage(String);

impl WriterStep for ReadUsage {
    type Output = QuotaUsage;

    fn apply(&self, batch: &mut WriterTransaction<'_>) -> SqliteResult<QuotaUsage> {
        Ok(batch.state().usages.project_usage(&self.0))
    }
}

/// Counts waiting and running tasks.
#[derive(Debug)]
struct CountTasks;

impl WriterStep for CountTasks {
    type Output = QueueCounts;

    fn apply(&self, batch: &mut WriterTransaction<'_>) -> SqliteResult<QueueCounts> {
        let unfinished = batch.queue().records().map(|record| &**record);
        Ok(QueueCounts::from_records(unfinished, batch.now.wall_ms))
    }
}

/// Resets the count of unclean starts.
#[derive(Debug)]
struct ResetUncleanStarts;

impl WriterStep for ResetUncleanStarts {
    type Output = ();

    fn apply(&self, batch: &mut WriterTransaction<'_>) -> SqliteResult<()> {
        let mut query = batch.conn.prepare_cached(
            "UPDATE counters SET value = 0 WHERE name = 'unclean_starts' AND value > 0",
        )?;
        query.execute([])?;
        Ok(())
    }
}
