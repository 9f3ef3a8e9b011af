//! What a store in PostgreSQL reads from its database, or remembers of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::Record;
use kinora_contract::{Reading, Status, TaskId, UnixMs};
use tokio_postgres::types::Type;

use super::batch::Batch;
use super::fault::{Done, Fault};
use super::lane::LaneStep;
use super::session::Statement;
use super::{PostgresStore, rows, script};
use crate::backend::{Backend, Channel, Needs, Operation, Tables};
use crate::changes::Signals;
use crate::changes::{UNDER_WAY_MS, ended_from};
use crate::queue::QueueEstimates;
use crate::sql::{Dialect, Query, Question, Script};
use crate::tables::operators;
use crate::tables::workers::{Announce, Withdraw, announced, living};
use crate::tasks::Filling;
use crate::workers::served;
use crate::{
    Announcement, ApiKey, Count, Counts, Ended, EndedRequest, Glance, Idempotency, Lease,
    LivingWorker, Order, Overview, Page, PageRequest, StoreError, Usage, Workers,
};

/// The columns of a [`Glance`].
const GLANCE: &str = "id, phase, started_at_ms IS NULL, progress, created_at_ms";
/// Maximum number of queries for one page. Each may find only rows that cannot be read.
const READINGS_MAX: usize = 10;

impl Tables for PostgresStore {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn ask<T: Send + 'static>(&self, question: Question<T>) -> Result<Vec<T>, StoreError> {
        script::ask(&self.reader, question).await
    }

    async fn run<S: Script>(&self, script: S) -> Result<S::Output, StoreError> {
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

impl Backend for PostgresStore {
    async fn commit<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let lane = match operation.channel() {
            Channel::Submits(project) => self.inserts(project),
            Channel::Changes => &self.acts,
            Channel::Queue => &self.queue,
        };
        if operation.has_client() {
            lane.call_soon(operation).await
        } else {
            lane.call(operation).await
        }
    }

    async fn clock(&self) -> Result<Reading, StoreError> {
        Ok(self.reader.present().await?.reading())
    }

    fn process_ms(&self) -> UnixMs {
        self.shared.clock.now_ms()
    }

    fn signals(&self) -> &Signals {
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

    async fn settle_start(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_writable(&self) -> bool {
        self.shared.is_writable()
    }

    async fn find(&self, _: Option<&str>, id: TaskId) -> Result<Option<Arc<Record>>, StoreError> {
        self.reader.find(id).await
    }

    async fn find_recent(
        &self,
        _: Option<&str>,
        id: TaskId,
    ) -> Result<Option<Arc<Record>>, StoreError> {
        self.reader.poll(id).await
    }

    async fn find_all(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Record>>, StoreError>>, StoreError> {
        self.reader.find_all(ids).await
    }

    async fn find_waiting(&self, ids: &[TaskId]) -> Result<Vec<Option<Arc<Record>>>, StoreError> {
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
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Record>>, StoreError> {
        let text = format!(
            "SELECT {} FROM idempotency i JOIN tasks t ON t.id = i.task \
             WHERE i.project = $1 AND i.key = $2 AND i.fingerprint = $3",
            rows::columns("t")
        );
        let ask = Statement::new(text)
            .text(project)
            .text(idempotency.key.clone());
        let ask = ask.bind(idempotency.fingerprint.to_vec(), Type::BYTEA);
        let found = self.reader.query(ask).await?;
        let record = found.first().map(rows::read).transpose()?;
        self.compare(record.iter().map(|record| Glance::of(&record.task)));
        Ok(record)
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        let mut filling = Filling::up_to(request.limit);
        let mut after = request.after.map(|id| id.to_string());
        for _ in 0..READINGS_MAX {
            let found = self.reader.query(page(&request, after.take())).await?;
            for row in &found {
                let record = match rows::read(row) {
                    Err(Fault::Job(StoreError::Corrupt(error))) => {
                        tracing::error!(error, "unreadable task left out of a list");
                        continue;
                    }
                    read => read?,
                };
                self.compare([Glance::of(&record.task)]);
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

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError> {
        let named: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let text = format!("SELECT {GLANCE} FROM tasks WHERE id = ANY($1)");
        let found = self.reader.query(Statement::new(text).texts(named)).await?;
        let found = glances(&found)?;
        self.compare(found.iter().copied().map(Some));
        let found: HashMap<TaskId, Glance> = found.into_iter().map(|one| (one.id, one)).collect();
        Ok(ids.iter().map(|id| found.get(id).copied()).collect())
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError> {
        // Each place has a partial index of its own, which PostgreSQL uses only if the condition names
        // that place as a constant: four simple queries instead of `place IN (1, 2, 3, 4)`.
        let ask = [1, 2, 3, 4]
            .map(|place: i16| {
                format!("SELECT {GLANCE} FROM tasks WHERE project = $1 AND place = {place}")
            })
            .join(" UNION ALL ");
        let found = self.reader.query(Statement::new(ask).text(project)).await?;
        let mut found = glances(&found)?;
        self.compare(found.iter().copied().map(Some));
        found.sort_unstable_by_key(|glance| glance.id);
        Ok(found)
    }

    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError> {
        let now_ms = self.reader.present().await?.wall_ms;
        let from_ms = ended_from(request.since_ms, now_ms).saturating_sub(UNDER_WAY_MS);
        let found = self.ask(operators::ended(&request, from_ms)).await?;
        let tasks: Vec<_> = found.into_iter().rev().flatten().collect();
        // The reader of this answer knows that they have ended. A later poll must not show one of them
        // as running.
        let ended = tasks.iter().map(|(_, id)| (*id, None));
        self.shared.cache.compare(ended);
        Ok(Ended {
            tasks,
            from_ms,
            next_ms: now_ms,
            now_ms,
        })
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let ask = "SELECT picture FROM previews WHERE task = $1";
        let picture = Question {
            query: Query::new(ask).bind(id.to_string()),
            read: |row| row.get::<Vec<u8>>(0),
        };
        Ok(self.ask(picture).await?.pop().map(Arc::from))
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.acts.call(PutPreview { lease, preview }).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        let ask = "SELECT bytes, tasks FROM projects WHERE name = $1";
        let sums = Question {
            query: Query::new(ask).bind(project),
            read: |row| {
                Ok(Usage {
                    bytes: row.get(0)?,
                    tasks: row.get(1)?,
                })
            },
        };
        Ok(self.ask(sums).await?.pop().unwrap_or_default())
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let ask = [1, 2, 3, 4]
            .map(|place: i16| {
                format!(
                    "SELECT model, project, {place}::smallint, fetch_token IS NOT NULL, count(*), min(created_at_ms) \
                     FROM tasks WHERE place = {place} GROUP BY 1, 2, 4"
                )
            })
            .join(" UNION ALL ");
        let found = self.reader.query(Statement::new(ask)).await?;
        let now_ms = self.reader.present().await?.wall_ms;
        Ok(counts(&found, now_ms)?)
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        script::overview(&self.reader).await
    }

    async fn may_claim(&self, models: &[String]) -> Result<bool, StoreError> {
        let ask = format!(
            "SELECT 1 FROM tasks WHERE place = {} AND model = ANY($1) LIMIT 1",
            rows::CLAIMABLE
        );
        let ask = Statement::new(ask).texts(models.to_vec());
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
impl Workers for PostgresStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        self.acts.call(Announce(worker.clone(), for_ms)).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.acts.call(Withdraw(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let now = self.reader.present().await?;
        Ok(living(self.ask(announced(Dialect::Postgres)).await?, &now)?)
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

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.lease.task);
    }

    fn bytes(&self) -> usize {
        self.preview.len()
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let record = batch.find(self.lease.task)?;
        if Record::judge_lease(record.as_deref(), &self.lease).is_ok() {
            let (task, preview) = (self.lease.task, self.preview.clone());
            batch.new.previews.insert(task, preview);
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Drops cached unfinished tasks whose state differs from the one just read: once a client has seen
    /// the new state, no poll may show it the old one.
    fn compare(&self, seen: impl IntoIterator<Item = Option<Glance>>) {
        let seen = seen.into_iter().flatten();
        self.shared
            .cache
            .compare(seen.map(|glance| (glance.id, Some(glance))));
    }
}

/// Asks for one task more than the page may hold.
fn page(request: &PageRequest, after: Option<String>) -> Statement {
    let (compare, direction, first) = match request.order {
        Order::Ascending => (">", "ASC", ""),
        // Sorts after every id: ids consist of digits and letters.
        Order::Descending => ("<", "DESC", "~"),
    };
    let text = format!(
        "SELECT {} FROM tasks t WHERE project = $1 AND phase <> 'expired' AND id {compare} $2 \
         ORDER BY id {direction} LIMIT $3",
        rows::columns("t")
    );
    Statement::new(text)
        .text(request.project.clone())
        .text(after.unwrap_or_else(|| first.to_owned()))
        .int((request.limit as u64).saturating_add(1))
}

/// Reads the columns of [`GLANCE`]; omits expired tasks.
fn glances(found: &[tokio_postgres::Row]) -> Result<Vec<Glance>, Fault> {
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
        glances.push(Glance {
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
fn counts(found: &[tokio_postgres::Row], now_ms: u64) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    for row in found {
        let (model, project): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (place, fetched_for): (i16, bool) = (row.try_get(2)?, row.try_get(3)?);
        let tasks = row.try_get::<_, i64>(4)?.unsigned_abs();
        let created_ms = row.try_get::<_, i64>(5)?.unsigned_abs();
        let waits = place != rows::RUNNING;
        let is_fetched = place == rows::CLAIMABLE;
        let mut count = Count::default();
        if waits {
            count.waiting = tasks;
            counts.waits_since(&model, created_ms, now_ms);
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
