//! Jobs of the writer: its steps, and where to send their answers.

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::fault::{Done, Fault};
use crate::StoreError;
use crate::backend::Operation;
use crate::lease::LeasedChange;

/// A change by the writer, which can be retried after an undo: an [`Operation`], or what only this
/// database does.
pub(super) trait WriterStep: Send + 'static {
    type Output: Send + 'static;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output>;

    /// Whether the caller waits on its own runtime, so that its answer must not depend on the
    /// runtime in which the store was opened.
    fn is_urgent(&self) -> bool {
        false
    }

    /// What to do if the caller has gone before the answer.
    fn unclaimed(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

impl<O: Operation> WriterStep for O {
    type Output = O::Output;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<O::Output> {
        let done = Operation::apply(self, batch).now_or_never();
        // A batch answers every call at once.
        done.unwrap_or_else(|| Err(Fault::GivenUp("an operation waited".to_owned())))
    }

    fn is_urgent(&self) -> bool {
        Operation::is_urgent(self)
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::unclaimed(output)
    }
}

/// An operation and its caller, with the type erased.
pub(super) trait Job: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// As [`WriterStep::is_urgent`].
    fn is_urgent(&self) -> bool;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

pub(super) struct Call<O: WriterStep> {
    pub(super) operation: O,
    pub(super) output: Option<O::Output>,
    pub(super) reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: WriterStep> Job for Call<O> {
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
            Err(Ok(output)) => O::unclaimed(output).into_iter().map(unattended).collect(),
            _ => Vec::new(),
        }
    }
}

/// A change without a waiting caller.
fn unattended(operation: LeasedChange) -> Box<dyn Job> {
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
