//! Jobs of a lane: its steps, with the channels for their answers.

use std::future::Future;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::fault::{Done, closed};
use crate::StoreError;
use crate::backend::{Needs, Operation};
use crate::operations::lease::LeasedChange;

/// A change by a lane, which can be retried after a rollback: an [`Operation`], or what only this
/// database does. A failed one has changed nothing in the batch.
pub(super) trait LaneStep: Send + Sync + 'static {
    type Output: Send + 'static;

    /// As [`Operation::needs`].
    fn needs(&self, _needs: &mut Needs) {}

    /// As [`Operation::bytes`].
    fn bytes(&self) -> usize {
        0
    }

    fn apply(&self, batch: &mut Batch<'_>) -> impl Future<Output = Done<Self::Output>> + Send;

    /// As [`Operation::unclaimed`], and if the caller was told that it failed.
    fn unclaimed(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

impl<O: Operation> LaneStep for O {
    type Output = O::Output;

    fn needs(&self, needs: &mut Needs) {
        Operation::needs(self, needs);
    }

    fn bytes(&self) -> usize {
        Operation::bytes(self)
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<O::Output> {
        Operation::apply(self, batch).await
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::unclaimed(output)
    }
}

/// A step with its caller, without its type.
#[async_trait]
pub(super) trait Job: Send {
    fn needs(&self, needs: &mut Needs);
    fn bytes(&self) -> usize;
    async fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// The jobs to run if the last run was committed although its caller is told that it failed.
    fn undo(&mut self) -> Vec<Box<dyn Job>>;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

struct Call<O: LaneStep> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

#[async_trait]
impl<O: LaneStep> Job for Call<O> {
    fn needs(&self, needs: &mut Needs) {
        self.operation.needs(needs);
    }

    fn bytes(&self) -> usize {
        self.operation.bytes()
    }

    async fn run(&mut self, batch: &mut Batch<'_>) -> Done<()> {
        self.output = None;
        self.output = Some(self.operation.apply(batch).await?);
        Ok(())
    }

    fn undo(&mut self) -> Vec<Box<dyn Job>> {
        self.output.take().map(jobs_of::<O>).unwrap_or_default()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => jobs_of::<O>(output),
            _ => Vec::new(),
        }
    }
}

fn jobs_of<O: LaneStep>(unclaimed: O::Output) -> Vec<Box<dyn Job>> {
    let changes = O::unclaimed(unclaimed).into_iter();
    changes.map(|change| call(change).0).collect()
}

/// The channel for the answer to an operation.
type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A job, and its answer.
pub(super) fn call<O: LaneStep>(operation: O) -> (Box<dyn Job>, Answer<O::Output>) {
    let (reply, answer) = oneshot::channel();
    let call = Call {
        operation,
        output: None,
        reply,
    };
    (Box::new(call), answer)
}
