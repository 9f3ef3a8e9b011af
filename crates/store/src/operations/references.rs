//! Records the size of a task's fetched references.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Event;

use crate::backend::{Needs, Operation, Transaction};

/// Charges a task for its references. Has no effect on a task that has ended.
#[derive(Debug)]
pub(crate) struct ChargeReferences {
    pub(crate) task: TaskId,
    pub(crate) bytes: u64,
}

impl Operation for ChargeReferences {
    type Output = ();

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.task);
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<(), T::Fault> {
        if let Some(before) = tx.find(self.task)?
            && before.reference_bytes != self.bytes
        {
            let _ = tx.apply(&before, Event::ReferencesStored { bytes: self.bytes })?;
        }
        Ok(())
    }
}
