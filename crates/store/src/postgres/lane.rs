//! A lane: a task that owns one writing connection. It takes all queued jobs into one transaction,
//! commits it, makes the result visible to readers of this process, and only then answers. A job
//! that fails does not fail its neighbours. If the answer to a commit is lost or does not come, the lane
//! looks up the outcome before it answers ([`writer`]).

mod link;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::limits::STORE_ANSWER_SECONDS;
use tokio::sync::mpsc;

use self::writer::Writer;
use super::connect::Connector;
use super::fault::{Done, answered, closed};
use super::job::{Job, LaneStep, call};
use super::shared::Shared;
use crate::StoreError;

/// Maximum number of queued requests; callers beyond it wait for a place.
const QUEUED_MAX: usize = 4_096;
/// Maximum number of requests in one transaction: bounds the work repeated after a neighbour fails.
const BATCH_MAX: usize = 512;
/// Maximum number of bytes that one transaction sends, apart from its last request: bounds its
/// memory here and at the server.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// The handle of a lane. Dropping it lets the lane finish its queued jobs.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Lane {
    /// Starts a lane whose row has this id.
    pub(super) fn start(connector: Arc<Connector>, shared: Arc<Shared>, id: u64) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = State {
            writer: Writer::new(connector.clone(), shared, id),
            own: jobs.downgrade(),
        };
        connector.spawn(state.serve(queue));
        Self { jobs }
    }

    /// Does `operation`; returns once it is committed.
    pub(super) async fn call<O: LaneStep>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (job, answer) = call(operation);
        self.jobs.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// The same for a client, which does not wait for a server that does not answer. As after any lost answer, the
    /// operation may be done all the same.
    pub(super) async fn call_soon<O: LaneStep>(
        &self,
        operation: O,
    ) -> Result<O::Output, StoreError> {
        let limit = Duration::from_secs(STORE_ANSWER_SECONDS);
        answered(limit, self.call(operation)).await
    }

    /// Queues `operation` without waiting, unless the lane is too busy.
    pub(super) fn try_send<O: LaneStep>(&self, operation: O) {
        // Callers of this can do without the operation.
        let _ = self.jobs.try_send(call(operation).0);
    }
}

/// The state that a lane owns.
struct State {
    writer: Writer,
    own: mpsc::WeakSender<Box<dyn Job>>,
}

impl State {
    async fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut jobs: Vec<Box<dyn Job>> = Vec::new();
        loop {
            match self.next_job(&mut queue).await {
                Some(Some(job)) => jobs.push(job),
                Some(None) => {
                    self.probe().await;
                    continue;
                }
                None => return,
            }
            // The callers just answered may have more.
            tokio::task::yield_now().await;
            fill(&mut jobs, &mut queue);
            let failures = self.writer.catch_up_and_commit(&mut jobs).await;
            for (job, failure) in jobs.drain(..).zip(failures) {
                self.send_all(job.answer(failure));
            }
        }
    }

    /// The next job; `Some(None)` when it is time to check whether the server accepts writes again, and what is left
    /// to catch up on.
    async fn next_job(
        &mut self,
        queue: &mut mpsc::Receiver<Box<dyn Job>>,
    ) -> Option<Option<Box<dyn Job>>> {
        if self.writer.shared.is_writable() && self.writer.is_caught_up() {
            return queue.recv().await.map(Some);
        }
        match tokio::time::timeout(self.writer.link.pause(), queue.recv()).await {
            Ok(job) => job.map(Some),
            Err(_) => Some(None),
        }
    }

    /// Writes only the lane's own row.
    async fn probe(&mut self) {
        let mut jobs: Vec<Box<dyn Job>> = vec![call(Probe).0];
        self.writer.catch_up_and_commit(&mut jobs).await;
    }

    fn send_all(&self, jobs: Vec<Box<dyn Job>>) {
        for job in jobs {
            if let Some(own) = self.own.upgrade() {
                // A full or closed lane accepts no more; the lease expires by itself.
                let _ = own.try_send(job);
            }
        }
    }
}

/// Adds queued jobs, as far as they fit into one transaction.
fn fill(jobs: &mut Vec<Box<dyn Job>>, queue: &mut mpsc::Receiver<Box<dyn Job>>) {
    let mut bytes: usize = jobs.iter().map(|job| job.bytes()).sum();
    while jobs.len() < BATCH_MAX
        && bytes < BATCH_BYTES_MAX
        && let Ok(job) = queue.try_recv()
    {
        bytes += job.bytes();
        jobs.push(job);
    }
}

/// Checks whether the server accepts writes.
struct Probe;

impl LaneStep for Probe {
    type Output = ();

    async fn apply(&self, batch: &mut super::batch::Batch<'_>) -> Done<()> {
        // The lane's own row is already written.
        batch.wrote = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
