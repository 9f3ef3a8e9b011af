//! Gaps in PostgreSQL.

use super::batch::Batch;
use super::fault::Done;
use super::job::LaneStep;
use super::statement::Statement;
use crate::Gap;
use crate::stored::int;

/// Confirms that no files of tasks in these gaps remain.
#[derive(Debug)]
pub(super) struct CloseGaps(pub(super) Vec<Gap>);

impl LaneStep for CloseGaps {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let close = "DELETE FROM gaps WHERE after_ms = ANY($1)";
        let beginnings = self.0.iter().map(|gap| int(gap.after_ms)).collect();
        batch.change(Statement::new(close).ints(beginnings)).await?;
        Ok(())
    }
}
