//! Jobs of the writer: operations, and where to send their answers.

use tokio::sync::oneshot;

use super::batch::Batch;
use super::fault::Done;
use super::script;
use crate::StoreError;
use crate::sql::Script;

/// A change that can be retried after an undo.
pub(super) trait Operation: Send + 'static {
    type Output: Send + 'static;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output>;

    /// Whether the caller waits on its own runtime, so that its answer must not depend on the
    /// runtime in which the store was opened.
    fn is_urgent(&self) -> bool {
        false
    }

    /// What to do if the caller has gone before the answer.
    fn unclaimed(_output: Self::Output) -> Vec<Box<dyn Job>> {
        Vec::new()
    }
}

impl<S: Script> Operation for S {
    type Output = S::Output;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<S::Output> {
        script::run_all(batch.conn, self, batch.now.wall_ms)
    }
}

/// An operation and its caller, with the type erased.
pub(super) trait Job: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// As [`Operation::is_urgent`].
    fn is_urgent(&self) -> bool;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

pub(super) struct Call<O: Operation> {
    pub(super) operation: O,
    pub(super) output: Option<O::Output>,
    pub(super) reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: Operation> Job for Call<O> {
    fn run(&mut self, batch: &mut Batch<'_>) -> Done<()> {
        self.output = Some(self.operation.apply(batch)?);
        Ok(())
    }

    fn is_urgent(&self) -> bool {
        self.operation.is_urgent()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => O::unclaimed(output),
            _ => Vec::new(),
        }
    }
}

/// An operation without a waiting caller.
pub(super) fn unattended<O: Operation>(operation: O) -> Box<dyn Job> {
    Box::new(Call {
        operation,
        output: None,
        reply: oneshot::channel().0,
    })
}

/// The error of a closed store.
pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
