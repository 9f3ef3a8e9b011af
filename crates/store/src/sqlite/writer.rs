//! The single writing thread. It puts all queued requests into one transaction, commits (and so
//! syncs) it, publishes the result to readers, and only then answers. A failing request does not
//! fail its neighbours, and nothing of a failed transaction is visible or remembered.

mod spot;
mod state;

use std::sync::Arc;
use std::thread::JoinHandle;

use kinora_contract::Clock;
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::ending;
use super::job::{Call, Job, WriterStep, closed};
use super::memory::Memory;
use super::standing::Standing;
use super::writes::Writes;
use crate::{SqliteOptions, StoreError};
use spot::Spot;
pub(super) use state::Kept;
use state::State;

/// Maximum number of queued requests; further ones wait, which holds back their callers.
const QUEUED_MAX: usize = 4_096;

/// The writer's queue. Dropping it lets the writer finish the queued requests, and waits for that,
/// but no longer than [`ending::LIMIT`].
#[derive(Debug)]
pub(super) enum Writer {
    Thread {
        jobs: Option<mpsc::Sender<Box<dyn Job>>>,
        thread: Option<JoinHandle<()>>,
    },
    /// No thread ([`SqliteOptions::on_the_spot`]).
    Spot(Spot),
}

impl Writer {
    pub(super) fn start(
        conn: Connection,
        standing: Standing,
        memory: Arc<Memory>,
        kept: Kept,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = State {
            conn,
            standing,
            memory: memory.clone(),
            kept,
            writes: Writes::new(clock.clone(), memory),
            clock,
            runtime: Handle::try_current().ok().filter(|_| !options.on_the_spot),
            queue: jobs.downgrade(),
        };
        if options.on_the_spot {
            return Ok(Self::Spot(Spot::of(state)));
        }
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = thread.spawn(move || state.serve(queue))?;
        Ok(Self::Thread {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs `operation`; returns once it is on disk.
    pub(super) async fn call<O: WriterStep>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Call {
            operation,
            output: None,
            reply,
        });
        match self {
            Self::Thread { jobs, .. } => {
                let jobs = jobs.as_ref().ok_or_else(closed)?;
                jobs.send(job).await.map_err(|_| closed())?;
            }
            Self::Spot(spot) => spot.serve_with_others(job).await,
        }
        answer.await.map_err(|_| closed())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Self::Thread { jobs, thread } = self {
            drop(jobs.take());
            ending::join(thread.take(), "store writer");
        }
    }
}
