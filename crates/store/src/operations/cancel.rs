//! Changes by the owner of a task: cancels an unfinished one, deletes one in any phase. Another
//! project's task counts as missing.

use kinora_contract::lifecycle::Event;
use kinora_contract::{Failure, State, TaskId};

use crate::backend::{Needs, Operation, Transaction, TransactionFault as _};
use crate::operations::chores;
use crate::{Cancellation, Deletion};

/// Fails an unfinished task.
#[derive(Debug)]
pub(crate) struct Cancel {
    pub(crate) project: String,
    pub(crate) id: TaskId,
    pub(crate) failure: Failure,
    pub(crate) retention_ms: u64,
}

impl Operation for Cancel {
    type Output = Cancellation;

    fn has_client(&self) -> bool {
        true
    }

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.id);
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Cancellation, T::Fault> {
        let found = tx.find(self.id)?;
        let Some(before) = found.filter(|record| record.task.project == self.project) else {
            return Ok(Cancellation::NotFound);
        };
        let event = Event::Cancelled {
            failure: self.failure.clone(),
            now_ms: tx.now().wall_ms,
            retention_ms: self.retention_ms,
        };
        Ok(match tx.apply(&before, event)? {
            Ok(Some(after)) => Cancellation::Cancelled(after.task.clone()),
            // A task that has ended refuses this event, and nothing else does.
            _ => Cancellation::AlreadyFinished(before.task.clone()),
        })
    }
}

/// Removes a task, even one whose row cannot be read.
#[derive(Debug)]
pub(crate) struct Delete {
    pub(crate) project: String,
    pub(crate) id: TaskId,
}

impl Operation for Delete {
    type Output = Deletion;

    fn has_client(&self) -> bool {
        true
    }

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.id);
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Deletion, T::Fault> {
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
                    tx.expect(&before, Event::Deleted { now_ms })?;
                    Some(match &before.task.state {
                        State::Completed(artifact) => {
                            artifact.files().map(|file| file.key.clone()).into()
                        }
                        _ => Vec::new(),
                    })
                }
            },
        };
        let Some(keys) = keys else {
            return Ok(Deletion::NotFound);
        };
        // The caller removes the files of a result at once. Those of a run are only recorded, for
        // the sweep: its worker may be storing them at this moment.
        let files = chores::take_files(tx, &keys).await?;
        Ok(Deletion::Deleted { files })
    }
}
