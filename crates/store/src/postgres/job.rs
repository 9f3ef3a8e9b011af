//! Jobs of a lane: operations with the channels for their answers.

use std::collections::BTreeSet;
use std::future::Future;

use async_trait::async_trait;
use kinora_contract::TaskId;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::fault::{Done, closed};
use crate::StoreError;

/// The rows that a transaction reads and locks at its start.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Tasks to change.
    pub(super) tasks: BTreeSet<TaskId>,
    /// Projects that accept tasks.
    pub(super) projects: BTreeSet<String>,
    /// Idempotency keys to bind, by project.
    pub(super) keys: BTreeSet<(String, String)>,
    /// Places of new tasks.
    pub(super) places: u64,
    /// Whether a bound over all projects is set.
    pub(super) totals: bool,
    /// Number of tasks to claim.
    pub(super) claims: usize,
}

/// A change that can be tried, and retried after a rollback. A failed one has changed nothing in
/// the batch.
pub(super) trait Operation: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Adds the rows that [`Operation::apply`] will look for.
    fn needs(&self, _needs: &mut Needs) {}

    /// Approximate number of bytes that it sends to the server, if they may be many.
    fn bytes(&self) -> usize {
        0
    }

    fn apply(&self, batch: &mut Batch<'_>) -> impl Future<Output = Done<Self::Output>> + Send;

    /// The jobs to run if the caller vanished before the answer, or was told that it failed.
    fn unclaimed(_output: Self::Output) -> Vec<Box<dyn Job>> {
        Vec::new()
    }
}

/// An operation with its caller, without its type.
#[async_trait]
pub(super) trait Job: Send {
    fn needs(&self, needs: &mut Needs);
    /// As [`Operation::bytes`].
    fn bytes(&self) -> usize;
    async fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// The jobs to run if the last run was committed although its caller is told that it failed.
    fn undo(&mut self) -> Vec<Box<dyn Job>>;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

struct Call<O: Operation> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

#[async_trait]
impl<O: Operation> Job for Call<O> {
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
        self.output.take().map(O::unclaimed).unwrap_or_default()
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

/// The channel for the answer to an operation.
type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A job, and its answer.
pub(super) fn call<O: Operation>(operation: O) -> (Box<dyn Job>, Answer<O::Output>) {
    let (reply, answer) = oneshot::channel();
    let call = Call {
        operation,
        output: None,
        reply,
    };
    (Box::new(call), answer)
}
