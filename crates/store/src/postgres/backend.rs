//! The backend of a store in PostgreSQL: sends each change to its lane, and answers reads from the
//! database or from what it remembers of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{ClockReading, Status, TaskId, UnixMs};
use tokio_postgres::types::Type;

use super::batch::LaneTransaction;
use super::fault::{PostgresFault, PostgresResult};
use super::lane::LaneStep;
use super::session::SqlStatement;
use super::{PostgresStore, rows, script};
use crate::backend::{CommitChannel, RowNeeds, StoreBackend, StoreOperation, StoreTables};
use crate::changes::WakeSignals;
use crate::changes::{UNDER_WAY_MS, ended_from};
use crate::queue::QueueEstimates;
use crate::sql::{SqlDialect, SqlQuery, SqlScript, TypedQuery};
use crate::tables::operators;
use crate::tables::workers::{AnnounceWorker, WithdrawWorker, announced, living};
use crate::tasks::PageBuilder;
use crate::workers::served;
use crate::{
    ApiKey, EndedRequest, EndedTasks, IdempotencyKey, Lease, ListOrder, LivingWorker, PageRequest,
    PhaseCounts, QueueCounts, QuotaUsage, ServiceOverview, StoreError, TaskGlance, TaskPage,
    WorkerAnnouncement, WorkerDirectory,
};

/// The columns of a [`TaskGlance`].
const GLANCE: &str = "id, phase, started_at_ms IS NULL, progress, created_at_ms";
/// Maximum number of queries for one page. Each may find only rows that cannot be read.
const READINGS_MAX: usize = 10;

impl StoreTables for PostgresStore {
    const DIALECT: SqlDialect = SqlDialect::Postgres;

    async fn ask<T: Send + 'static>(&self, question: TypedQuery<T>) -> Result<Vec<T>, StoreError> {
        script::ask(&self.reader, question).await
    }

    async fn run<S: SqlScript>(&self, script: S) -> Result<S::Output, StoreError> {
        self.acts.call(script).await
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let at = (&*self.reader, &*self.shared, &self.acts);
        self.keys.find(sha256, now_ms, at).await
    }

    fn forget_keys(&self) {
        self.keys.forget();
    }
}

impl StoreBackend for PostgresStore {
    async fn commit<O: StoreOperation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let lane = match operation.channel() {
            CommitChannel::Submits(project) => self.insert_lane(project),
            CommitChannel::Changes => &self.acts,
            CommitChannel::Queue => &self.queue,
        };
        if operation.has_client() {
            lane.call_with_limit(operation).await
        } else {
            lane.call(operation).await
        }
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        Ok(self.reader.present().await?.reading())
    }

    fn process_ms(&self) -> UnixMs {
        self.shared.clock.now_ms()
    }

    fn signals(&self) -> &WakeSignals {
        &self.shared.signals
    }

    fn estimates(&self) -> &QueueEstimates {
        &self.shared.estimates
    }

    async fn refresh_estimates(&self) -> Result<(), StoreError> {
        self.snapshots.refresh(&self.reader, &self.shared).await
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    /// Other processes also serve the store, so deaths of this one reveal nothing.
    fn unclean_starts(&self) -> Option<u64> {
        None
    }

    async fn confirm_start(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_writable(&self) -> bool {
        self.shared.is_writable()
    }

    async fn find(
        &self,
        _: Option<&str>,
        id: TaskId,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        self.reader.find(id).await
    }

    async fn find_recent(
        &self,
        _: Option<&str>,
        id: TaskId,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        self.reader.poll(id).await
    }

    async fn find_all(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<TaskRecord>>, StoreError>>, StoreError> {
        self.reader.find_all(ids).await
    }

    async fn find_waiting(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Option<Arc<TaskRecord>>>, StoreError> {
        // A client that waits for its place in the queue polls one task, whose record is mostly still
        // in the cache. Lists ask for many at once, which share one query in any case.
        if let [id] = ids {
            return match self.reader.poll(*id).await {
                Err(error @ StoreError::Unavailable(_)) => Err(error),
                found => Ok(vec![found.ok().flatten()]),
            };
        }
        let found = self.reader.find_all(ids).await?.into_iter();
        Ok(found.map(|record| record.ok().flatten()).collect())
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let text = format!(
            "SELECT {} FROM idempotency i JOIN tasks t ON t.id = i.task \
             WHERE i.project = $1 AND i.key = $2 AND i.fingerprint = $3",
            rows::columns("t")
        );
        let ask = SqlStatement::new(text)
            .text(project)
            .text(idempotency.key.clone());
        let ask = ask.bind(idempotency.fingerprint.to_vec(), Type::BYTEA);
        let found = self.reader.query(ask).await?;
        let record = found.first().map(rows::read).transpose()?;
        self.drop_outdated(
            record
                .iter()
                .map(|record| TaskGlance::from_task(&record.task)),
        );
        Ok(record)
    }

    async fn list(&self, request: PageRequest) -> Result<TaskPage, StoreError> {
        let mut filling = PageBuilder::with_limit(request.limit);
        let mut after = request.after.map(|id| id.to_string());
        for _ in 0..READINGS_MAX {
            let found = self
                .reader
                .query(page_statement(&request, after.take()))
                .await?;
            for row in &found {
                let record = match rows::read(row) {
                    Err(PostgresFault::Job(StoreError::Corrupt(error))) => {
                        tracing::error!(error, "unreadable task left out of a list");
                        continue;
                    }
                    read => read?,
                };
                self.drop_outdated([TaskGlance::from_task(&record.task)]);
                if request.lists(&record.task) && !filling.add(&record.task) {
                    return Ok(filling.page());
                }
            }
            // Fewer rows than were asked for: the list ends here, even if some could not be read.
            let Some(last) = found.last().filter(|_| found.len() > request.limit) else {
                return Ok(filling.page());
            };
            after = Some(rows::id(last)?.to_string());
        }
        let mut page = filling.page();
        page.has_more = true;
        Ok(page)
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<TaskGlance>>, StoreError> {
        let named: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let text = format!("SELECT {GLANCE} FROM tasks WHERE id = ANY($1)");
        let found = self
            .reader
            .query(SqlStatement::new(text).texts(named))
            .await?;
        let found = read_glances(&found)?;
        self.drop_outdated(found.iter().copied().map(Some));
        let found: HashMap<TaskId, TaskGlance> =
            found.into_iter().map(|one| (one.id, one)).collect();
        Ok(ids.iter().map(|id| found.get(id).copied()).collect())
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<TaskGlance>, StoreError> {
        // Each place has a partial index of its own, which PostgreSQL uses only if the condition names
        // that place as a constant: four simple queries instead of `place IN (1, 2, 3, 4)`.
        let ask = [1, 2, 3, 4]
            .map(|place: i16| {
                format!("SELECT {GLANCE} FROM tasks WHERE project = $1 AND place = {place}")
            })
            .join(" UNION ALL ");
        let found = self
            .reader
            .query(SqlStatement::new(ask).text(project))
            .await?;
        let mut found = read_glances(&found)?;
        self.drop_outdated(found.iter().copied().map(Some));
        found.sort_unstable_by_key(|glance| glance.id);
        Ok(found)
    }

    async fn ended(&self, request: EndedRequest) -> Result<EndedTasks, StoreError> {
        let now_ms = self.reader.present().await?.wall_ms;
        let from_ms = ended_from(request.since_ms, now_ms).saturating_sub(UNDER_WAY_MS);
        let found = self.ask(operators::ended(&request, from_ms)).await?;
        let tasks: Vec<_> = found.into_iter().rev().flatten().collect();
        // The reader of this answer knows that they have ended. A later poll must not show one of them
        // as running.
        let ended = tasks.iter().map(|(_, id)| (*id, None));
        self.shared.cache.drop_outdated(ended);
        Ok(EndedTasks {
            tasks,
            from_ms,
            next_ms: now_ms,
            now_ms,
        })
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let ask = "SELECT picture FROM previews WHERE task = $1";
        let picture = TypedQuery {
            query: SqlQuery::new(ask).bind(id.to_string()),
            read: |row| row.get::<Vec<u8>>(0),
        };
        Ok(self.ask(picture).await?.pop().map(Arc::from))
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.acts.call(PutPreview { lease, preview }).await
    }

    async fn usage(&self, project: &str) -> Result<QuotaUsage, StoreError> {
        let ask = "SELECT bytes, tasks FROM projects WHERE name = $1";
        let sums = TypedQuery {
            query: SqlQuery::new(ask).bind(project),
            read: |row| {
                Ok(QuotaUsage {
                    bytes: row.get(0)?,
                    tasks: row.get(1)?,
                })
            },
        };
        Ok(self.ask(sums).await?.pop().unwrap_or_default())
    }

    async fn counts(&self) -> Result<QueueCounts, StoreError> {
        let ask = [1, 2, 3, 4]
            .map(|place: i16| {
                format!(
                    "SELECT model, project, {place}::smallint, fetch_token IS NOT NULL, count(*), min(created_at_ms) \
                     FROM tasks WHERE place = {place} GROUP BY 1, 2, 4"
                )
            })
            .join(" UNION ALL ");
        let found = self.reader.query(SqlStatement::new(ask)).await?;
        let now_ms = self.reader.present().await?.wall_ms;
        Ok(counts(&found, now_ms)?)
    }

    async fn overview(&self) -> Result<ServiceOverview, StoreError> {
        script::overview(&self.reader).await
    }

    async fn may_claim(&self, models: &[String]) -> Result<bool, StoreError> {
        let ask = format!(
            "SELECT 1 FROM tasks WHERE place = {} AND model = ANY($1) LIMIT 1",
            rows::CLAIMABLE
        );
        let ask = SqlStatement::new(ask).texts(models.to_vec());
        Ok(!self.reader.query(ask).await?.is_empty())
    }

    /// Always true: only the database knows.
    fn may_fetch(&self) -> bool {
        true
    }

    /// Does nothing: the key cache queues each use itself.
    async fn write_key_uses(&self) {}
}

#[async_trait]
impl WorkerDirectory for PostgresStore {
    async fn announce(&self, worker: &WorkerAnnouncement, for_ms: u64) -> Result<(), StoreError> {
        self.acts.call(AnnounceWorker(worker.clone(), for_ms)).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.acts.call(WithdrawWorker(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let now = self.reader.present().await?;
        Ok(living(
            self.ask(announced(SqlDialect::Postgres)).await?,
            &now,
        )?)
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        let living = self.living().await?;
        Ok(served(living.iter().map(|one| &one.worker)))
    }
}

/// Stores the preview of a run.
#[derive(Debug)]
struct PutPreview {
    lease: Lease,
    preview: Arc<[u8]>,
}

impl LaneStep for PutPreview {
    type Output = ();

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.insert(self.lease.task);
    }

    fn bytes(&self) -> usize {
        self.preview.len()
    }

    async fn apply(&self, batch: &mut LaneTransaction<'_>) -> PostgresResult<()> {
        let record = batch.find(self.lease.task)?;
        if TaskRecord::check_lease(record.as_deref(), &self.lease).is_ok() {
            let (task, preview) = (self.lease.task, self.preview.clone());
            batch.new.previews.insert(task, preview);
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Drops cached unfinished tasks whose state differs from the one just read: once a client has seen
    /// the new state, no poll may show it the old one.
    fn drop_outdated(&self, seen: impl IntoIterator<Item = Option<TaskGlance>>) {
        let seen = seen.into_iter().flatten();
        self.shared
            .cache
            .drop_outdated(seen.map(|glance| (glance.id, Some(glance))));
    }
}

/// Asks for one task more than the page may hold.
fn page_statement(request: &PageRequest, after: Option<String>) -> SqlStatement {
    let (compare, direction, first) = match request.order {
        ListOrder::Ascending => (">", "ASC", ""),
        // Sorts after every id: ids consist of digits and letters.
        ListOrder::Descending => ("<", "DESC", "~"),
    };
    let text = format!(
        "SELECT {} FROM tasks t WHERE project = $1 AND phase <> 'expired' AND id {compare} $2 \
         ORDER BY id {direction} LIMIT $3",
        rows::columns("t")
    );
    SqlStatement::new(text)
        .text(request.project.clone())
        .text(after.unwrap_or_else(|| first.to_owned()))
        .int((request.limit as u64).saturating_add(1))
}

/// Reads the columns of [`GLANCE`]; omits expired tasks.
fn read_glances(found: &[tokio_postgres::Row]) -> Result<Vec<TaskGlance>, PostgresFault> {
    let mut glances = Vec::with_capacity(found.len());
    for row in found {
        let (phase, has_waited_only): (&str, bool) = (row.try_get(1)?, row.try_get(2)?);
        let status = match phase {
            "completed" => Status::Completed,
            "failed" => Status::Failed,
            "expired" => continue,
            _ if has_waited_only => Status::Queued,
            _ => Status::InProgress,
        };
        glances.push(TaskGlance {
            id: rows::id(row)?,
            status,
            progress: u8::try_from(row.try_get::<_, i16>(3)?).unwrap_or(0),
            created_at_ms: row.try_get::<_, i64>(4)?.unsigned_abs(),
        });
    }
    Ok(glances)
}

/// Reads model, project, place in the queue, whether a fetch is in progress, the count, and the
/// creation time of the oldest.
fn counts(found: &[tokio_postgres::Row], now_ms: u64) -> Result<QueueCounts, PostgresFault> {
    let mut counts = QueueCounts::default();
    for row in found {
        let (model, project): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (place, fetched_for): (i16, bool) = (row.try_get(2)?, row.try_get(3)?);
        let tasks = row.try_get::<_, i64>(4)?.unsigned_abs();
        let created_ms = row.try_get::<_, i64>(5)?.unsigned_abs();
        let waits = place != rows::RUNNING;
        let is_fetched = place == rows::CLAIMABLE;
        let mut count = PhaseCounts::default();
        if waits {
            count.waiting = tasks;
            counts.add_waiting(&model, created_ms, now_ms);
        } else {
            count.running = tasks;
        }
        if waits && fetched_for {
            count.fetching = tasks;
        } else if waits && !is_fetched {
            count.unfetched = tasks;
        }
        counts.models.entry(model).or_default().add(count);
        counts.projects.entry(project).or_default().add(count);
    }
    Ok(counts)
}
