//! Changes by the owner of a task: cancels an unfinished one, or those that are queued, and deletes one in
//! any phase. Another project's task counts as missing.

use kinora_contract::lifecycle::TaskEvent;
use kinora_contract::{Failure, Status, TaskId, TaskState};

use crate::backend::{RowNeeds, StoreOperation, StoreTransaction, TransactionFault as _};
use crate::operations::chores;
use crate::{CancelOutcome, DeleteOutcome, QueuedCancel};

/// Fails an unfinished task.
#[derive(Debug)]
pub(crate) struct CancelTask {
    pub(crate) project: String,
    pub(crate) id: TaskId,
    pub(crate) failure: Failure,
    pub(crate) retention_ms: u64,
}

impl StoreOperation for CancelTask {
    type Output = CancelOutcome;

    fn has_client(&self) -> bool {
        true
    }

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.insert(self.id);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<CancelOutcome, T::Fault> {
        let found = tx.find(self.id)?;
        let Some(before) = found.filter(|record| record.task.project == self.project) else {
            return Ok(CancelOutcome::NotFound);
        };
        let event = TaskEvent::Cancelled {
            failure: self.failure.clone(),
            now_ms: tx.now().wall_ms,
            retention_ms: self.retention_ms,
        };
        Ok(match tx.apply(&before, event)? {
            Ok(Some(after)) => CancelOutcome::Cancelled(after.task.clone()),
            // A task that has ended refuses this event, and nothing else does.
            _ => CancelOutcome::AlreadyFinished(before.task.clone()),
        })
    }
}

/// Maximum number of tasks that one transaction cancels, so that submits never wait for long.
pub(crate) const CANCELLED_AT_ONCE: usize = 100;

/// Fails those of these tasks that are still queued, and fit the request. Returns how many.
#[derive(Debug)]
pub(crate) struct CancelQueued {
    pub(crate) request: QueuedCancel,
    pub(crate) ids: Vec<TaskId>,
}

impl StoreOperation for CancelQueued {
    type Output = u64;

    fn has_client(&self) -> bool {
        true
    }

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.extend(&self.ids);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<u64, T::Fault> {
        let QueuedCancel {
            project,
            model,
            failure,
            retention_ms,
        } = &self.request;
        let mut cancelled = 0;
        for id in &self.ids {
            let found = match tx.find(*id) {
                // It must not keep the others from their end.
                Err(fault) if fault.damage().is_some() => continue,
                found => found?,
            };
            // A worker may have claimed it since the ids were read.
            let queued = found.filter(|record| {
                let task = &record.task;
                let is_asked = model.as_ref().is_none_or(|model| *model == task.spec.model);
                task.project == *project && is_asked && task.status() == Some(Status::Queued)
            });
            let Some(before) = queued else { continue };
            let event = TaskEvent::Cancelled {
                failure: failure.clone(),
                now_ms: tx.now().wall_ms,
                retention_ms: *retention_ms,
            };
            cancelled += u64::from(tx.expect_unless_damaged(&before, event)?);
        }
        Ok(cancelled)
    }
}

/// Removes a task, even one whose row cannot be read.
#[derive(Debug)]
pub(crate) struct DeleteTask {
    pub(crate) project: String,
    pub(crate) id: TaskId,
}

impl StoreOperation for DeleteTask {
    type Output = DeleteOutcome;

    fn has_client(&self) -> bool {
        true
    }

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.insert(self.id);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<DeleteOutcome, T::Fault> {
        let keys = match tx.find(self.id) {
            Err(fault) if fault.damage().is_some() => {
                // Its owner must be able to get rid of a task that no version can read. The row's
                // own columns still say whose it is and which files it has.
                tx.remove_unreadable(self.id, Some(&self.project)).await?
            }
            found => match found?.filter(|record| record.task.project == self.project) {
                None => None,
                Some(before) => {
                    let now_ms = tx.now().wall_ms;
                    tx.expect(&before, TaskEvent::Deleted { now_ms })?;
                    Some(match &before.task.state {
                        TaskState::Completed(artifact) => {
                            artifact.files().map(|file| file.key.clone()).collect()
                        }
                        _ => Vec::new(),
                    })
                }
            },
        };
        let Some(keys) = keys else {
            return Ok(DeleteOutcome::NotFound);
        };
        // The caller removes the files of a result at once. Those of a run are only recorded, for
        // the sweep: its worker may be storing them at this moment.
        let files = chores::lease_files(tx, &keys).await?;
        Ok(DeleteOutcome::Deleted { files })
    }
}
