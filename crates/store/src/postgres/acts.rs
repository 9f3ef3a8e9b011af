//! Operations on single tasks, by lease holders, owners and the fetch stage.

use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record, Refused};
use kinora_contract::{Failure, State, StoredFile, TaskId};

use super::batch::Batch;
use super::chores;
use super::fault::{Done, Fault, corrupt};
use super::job::{Job, Needs, Operation, call};
use super::statement::Statement;
use crate::act::Act;
use crate::stored::files;
use crate::{Attempt, Chore, Claim, Deletion, Fetch, Fetched, Lease, LeaseLost, StoreError};

/// An action of a lease holder (a run or a fetch) on its task.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) task: TaskId,
    pub(super) act: Act,
}

impl Operation for Leased {
    type Output = Result<(), LeaseLost>;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.task);
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let Some(before) = batch.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        match batch.apply(&before, self.act.at(&batch.now)) {
            Ok(_) => Ok(Ok(())),
            Err(Refused::LeaseLost(lost)) => Ok(Err(lost)),
            Err(refused) => Err(corrupt(format!("{}: {refused}", self.task))),
        }
    }
}

/// Returns the tasks of a vanished claimant to the queue.
pub(super) fn release(claims: Vec<Claim>) -> Vec<Box<dyn Job>> {
    let release = |Lease { task, token }| Leased {
        task,
        act: Act::Release {
            token,
            attempt: Attempt::Forgiven,
        },
    };
    let claims = claims.into_iter();
    claims.map(|claim| call(release(claim.lease)).0).collect()
}

/// Ends a fetch.
pub(super) fn settle(fetch: &Fetch, fetched: Fetched) -> Leased {
    Leased {
        task: fetch.task.id,
        act: Act::SettleFetch {
            token: fetch.token,
            fetched,
        },
    }
}

/// Records the size of a task's fetched references.
#[derive(Debug)]
pub(super) struct ChargeReferences {
    pub(super) task: TaskId,
    pub(super) bytes: u64,
}

impl Operation for ChargeReferences {
    type Output = ();

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.task);
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        if let Some(before) = batch.find(self.task)?
            && before.reference_bytes != self.bytes
        {
            // Has no effect on a task that has ended.
            let _ = batch.apply(&before, Event::ReferencesStored { bytes: self.bytes });
        }
        Ok(())
    }
}

/// Stores the preview of a run.
#[derive(Debug)]
pub(super) struct PutPreview {
    pub(super) lease: Lease,
    pub(super) preview: Arc<[u8]>,
}

impl Operation for PutPreview {
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

/// Fails an unfinished task.
#[derive(Debug)]
pub(super) struct Cancel {
    pub(super) project: String,
    pub(super) id: TaskId,
    pub(super) failure: Failure,
    pub(super) retention_ms: u64,
}

/// The result, before it becomes an answer.
#[derive(Debug)]
pub(super) enum Outcome {
    Cancelled(Arc<Record>),
    AlreadyFinished(Arc<Record>),
    NotFound,
}

impl Operation for Cancel {
    type Output = Outcome;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.id);
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Outcome> {
        let found = batch.find(self.id)?;
        let Some(before) = found.filter(|record| record.task.project == self.project) else {
            return Ok(Outcome::NotFound);
        };
        let event = Event::Cancelled {
            failure: self.failure.clone(),
            now_ms: batch.now.wall_ms,
            retention_ms: self.retention_ms,
        };
        Ok(match batch.apply(&before, event) {
            Ok(Some(after)) => Outcome::Cancelled(after),
            _ => Outcome::AlreadyFinished(before),
        })
    }
}

/// Removes a task in any phase, including one that this program cannot read.
#[derive(Debug)]
pub(super) struct Delete {
    pub(super) project: String,
    pub(super) id: TaskId,
}

impl Operation for Delete {
    type Output = Deletion;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.id);
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Deletion> {
        let before = match batch.find(self.id) {
            Err(Fault::Job(StoreError::Corrupt(_))) => return self.remove_unread(batch).await,
            found => found?,
        };
        let Some(before) = before.filter(|record| record.task.project == self.project) else {
            return Ok(Deletion::NotFound);
        };
        let keys = match &before.task.state {
            State::Completed(artifact) => artifact
                .files()
                .map(|file: &StoredFile| file.key.clone())
                .into(),
            _ => Vec::new(),
        };
        let files = take(batch, keys).await?;
        let now_ms = batch.now.wall_ms;
        batch.expect(&before, Event::Deleted { now_ms })?;
        Ok(Deletion::Deleted { files })
    }
}

impl Delete {
    /// Removes an unreadable task; its row states its charge.
    async fn remove_unread(&self, batch: &mut Batch<'_>) -> Done<Deletion> {
        let found = batch.query(
            Statement::new("SELECT artifact FROM tasks WHERE id = $1 AND project = $2")
                .text(self.id.to_string())
                .text(self.project.clone()),
        );
        let found = found.await?;
        let Some(row) = found.first() else {
            return Ok(Deletion::NotFound);
        };
        let keys = files(row.try_get(0)?);
        let files = take(batch, keys).await?;
        remove_unread(batch, self.id).await?;
        Ok(Deletion::Deleted { files })
    }
}

async fn take(batch: &mut Batch<'_>, keys: Vec<String>) -> Done<Vec<Chore>> {
    match keys.is_empty() {
        true => Ok(Vec::new()),
        false => chores::take_files(batch, keys).await,
    }
}

/// Removes the row of a task that this version cannot read.
pub(super) async fn remove_unread(batch: &mut Batch<'_>, id: TaskId) -> Done<()> {
    let removed = batch.change(
        Statement::new(
            "DELETE FROM tasks WHERE id = $1 \
             RETURNING project, charged_bytes, phase <> 'expired', place IN (1, 2, 3), place IS NOT NULL",
        )
        .text(id.to_string()),
    );
    for row in removed.await? {
        let one = |at: usize| -> Done<i64> {
            let counts: Option<bool> = row.try_get(at)?;
            Ok(-i64::from(counts.unwrap_or(false)))
        };
        let sums = super::batch::Sums {
            bytes: -row.try_get::<_, i64>(1)?,
            tasks: one(2)?,
            waiting: one(3)?,
            unfinished: one(4)?,
        };
        batch.add_sums(row.try_get(0)?, sums);
    }
    let keys = Statement::new("DELETE FROM idempotency WHERE task = $1").text(id.to_string());
    batch.change(keys).await?;
    Ok(())
}
