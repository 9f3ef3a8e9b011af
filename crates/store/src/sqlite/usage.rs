//! Queries and updates of usage: a project's stored data, the counts of all tasks, the size of
//! references.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Event;

use super::batch::Batch;
use super::fault::Done;
use super::job::Operation;
use crate::{Counts, Usage};

/// Reads a project's usage.
#[derive(Debug)]
pub(super) struct Ask(pub(super) String);

impl Operation for Ask {
    type Output = Usage;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Usage> {
        Ok(batch.standing().usages.of(&self.0))
    }
}

/// Counts waiting and running tasks.
#[derive(Debug)]
pub(super) struct Count;

impl Operation for Count {
    type Output = Counts;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Counts> {
        let unfinished = batch.queue().records().map(|record| &**record);
        Ok(Counts::of(unfinished, batch.now.wall_ms))
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

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        if let Some(before) = batch.find(self.task)?
            && before.reference_bytes != self.bytes
        {
            // No effect on a task that has ended.
            let _ = batch.apply(&before, Event::ReferencesStored { bytes: self.bytes })?;
        }
        Ok(())
    }
}
