//! Cancels an unfinished task for its owner. Another project's task counts as missing.

use kinora_contract::lifecycle::Event;
use kinora_contract::{Failure, TaskId};

use crate::Cancellation;
use crate::backend::{Needs, Operation, Transaction};

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
            _ => Cancellation::AlreadyFinished(before.task.clone()),
        })
    }
}
