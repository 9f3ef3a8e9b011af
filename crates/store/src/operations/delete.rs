//! Deletes a task for its owner, in any phase. Another project's task counts as missing.

use kinora_contract::State;
use kinora_contract::TaskId;
use kinora_contract::lifecycle::Event;

use super::chores;
use crate::Deletion;
use crate::backend::{Needs, Operation, Transaction, TransactionFault as _};

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
