//! Usage by project and the counts of all tasks, from the writer's memory.

use super::batch::Batch;
use super::fault::Done;
use super::job::WriterStep;
use crate::{Counts, Usage};

/// Reads a project's usage.
#[derive(Debug)]
pub(super) struct Ask(pub(super) String);

impl WriterStep for Ask {
    type Output = Usage;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Usage> {
        Ok(batch.standing().usages.of(&self.0))
    }
}

/// Counts waiting and running tasks.
#[derive(Debug)]
pub(super) struct Count;

impl WriterStep for Count {
    type Output = Counts;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Counts> {
        let unfinished = batch.queue().records().map(|record| &**record);
        Ok(Counts::of(unfinished, batch.now.wall_ms))
    }
}
