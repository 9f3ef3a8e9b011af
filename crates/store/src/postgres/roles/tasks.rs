//! For the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Failure, Task, TaskId};
use tokio_postgres::types::Type;

use super::super::fault::Fault;
use super::super::statement::Statement;
use super::super::{PostgresStore, acts, chores, insert, rows};
use crate::page::Filling;
use crate::{
    Cancellation, ChoreDone, Count, Counts, Deletion, Idempotency, Insertion, NewTask, Order, Page,
    PageRequest, StoreError, Tasks, Usage,
};

/// Readings of one page, of which each may be of rows that cannot be read.
const READINGS_MAX: usize = 10;

#[async_trait]
impl Tasks for PostgresStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        let forecasts = &self.shared.forecasts;
        let now_ms = self.shared.clock.now_ms();
        let (project, bounds) = (new.project.clone(), new.bounds);
        let reserved = forecasts.reserved(&project, now_ms);
        let insert = insert::Insert { new, reserved };
        Ok(match self.inserts(&project).call(insert).await? {
            insert::Outcome::Inserted(record) => {
                forecasts.admitted(&project, now_ms);
                Insertion::Inserted(record.task.clone())
            }
            insert::Outcome::Replayed(record) => Insertion::Replayed(record.task.clone()),
            insert::Outcome::KeyReused => Insertion::KeyReused,
            insert::Outcome::Refused(full) => {
                self.pictures.refresh(&self.reader, &self.shared).await?;
                forecasts.refuse(&project, now_ms, bounds, full)
            }
        })
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError> {
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
        Ok(record.map(|record| record.task.clone()))
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let found = self.reader.find(id).await?;
        let own = found.filter(|record| record.task.project == project);
        Ok(own.map(|record| record.task.clone()))
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
                if request.lists(&record.task) && !filling.add(&record.task) {
                    return Ok(filling.page());
                }
            }
            let Some(last) = found.last().filter(|_| found.len() > request.limit) else {
                return Ok(filling.page());
            };
            after = Some(rows::id(last)?.to_string());
        }
        let mut page = filling.page();
        page.has_more = true;
        Ok(page)
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        self.pictures.refresh(&self.reader, &self.shared).await?;
        let mut positions = Vec::with_capacity(ids.len());
        for record in self.reader.find_all(ids).await? {
            let record = record.ok().flatten();
            positions.push(record.and_then(|record| self.shared.forecasts.position(&record)));
        }
        Ok(positions)
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let ask = "SELECT picture FROM previews WHERE task = $1";
        let found = self
            .reader
            .query(Statement::new(ask).text(id.to_string()))
            .await?;
        let picture = found.first().map(|row| row.try_get::<_, Vec<u8>>(0));
        let picture = picture.transpose().map_err(Fault::from)?;
        Ok(picture.map(Arc::from))
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError> {
        let cancel = acts::Cancel {
            project: project.to_owned(),
            id,
            failure,
            retention_ms,
        };
        Ok(match self.acts.call(cancel).await? {
            acts::Outcome::Cancelled(record) => Cancellation::Cancelled(record.task.clone()),
            acts::Outcome::AlreadyFinished(record) => {
                Cancellation::AlreadyFinished(record.task.clone())
            }
            acts::Outcome::NotFound => Cancellation::NotFound,
        })
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        let project = project.to_owned();
        self.acts.call(acts::Delete { project, id }).await
    }

    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.acts.call(chores::Settle(done)).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        let ask = "SELECT bytes, tasks FROM projects WHERE name = $1";
        let found = self.reader.query(Statement::new(ask).text(project)).await?;
        let Some(row) = found.first() else {
            return Ok(Usage::default());
        };
        let number = |at: usize| -> Result<u64, StoreError> {
            let value: i64 = row.try_get(at).map_err(Fault::from)?;
            Ok(u64::try_from(value).unwrap_or(0))
        };
        Ok(Usage {
            bytes: number(0)?,
            tasks: number(1)?,
        })
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let part = |place: i16| {
            format!(
                "SELECT model, project, {place} = 4, count(*), min(created_at_ms) FROM tasks \
                 WHERE place = {place} GROUP BY model, project"
            )
        };
        let ask = [1, 2, 3, 4].map(part).join(" UNION ALL ");
        let found = self.reader.query(Statement::new(ask)).await?;
        let now_ms = self.present().await?.wall_ms;
        Ok(counts(&found, now_ms)?)
    }

    fn is_writable(&self) -> bool {
        self.shared.is_writable()
    }
}

/// Asks for one task more than the page may hold.
fn page(request: &PageRequest, after: Option<String>) -> Statement {
    let (compare, direction, first) = match request.order {
        Order::Ascending => (">", "ASC", ""),
        // Sorts behind every id.
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

/// Reads model, project, whether they run, how many, and when the oldest was created.
fn counts(found: &[tokio_postgres::Row], now_ms: u64) -> Result<Counts, Fault> {
    let (mut models, mut projects) = (BTreeMap::new(), BTreeMap::new());
    let mut oldest_ms: Option<u64> = None;
    for row in found {
        let (model, project): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (runs, count): (bool, i64) = (row.try_get(2)?, row.try_get(3)?);
        let created_ms = row.try_get::<_, i64>(4)?.unsigned_abs();
        let of_model: &mut Count = models.entry(model).or_default();
        let of_project: &mut Count = projects.entry(project).or_default();
        for of in [of_model, of_project] {
            match runs {
                true => of.running += count.unsigned_abs(),
                false => of.waiting += count.unsigned_abs(),
            }
        }
        if !runs {
            oldest_ms = Some(oldest_ms.map_or(created_ms, |oldest| oldest.min(created_ms)));
        }
    }
    Ok(Counts {
        models,
        projects,
        oldest_waiting_ms: oldest_ms.map(|at_ms| now_ms.saturating_sub(at_ms)),
    })
}
