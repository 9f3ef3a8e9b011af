//! The two stores as the worker of a process sees them: every call takes a while on either side, waits while the
//! process hangs, and is never answered once it is dead. In between it is one effect, which the witness sees.

mod blobs;
mod chores;
mod work;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Task, TaskId};
use kinora_store::{StoreError, StoreHandles, TaskReader};
use tokio::time::sleep;

pub(crate) use blobs::SeenBlobs;

use crate::moment::at_one_moment;
use crate::process::Pulse;
use crate::witness::Witness;

/// The way to a store and back.
#[derive(Debug)]
struct Way {
    witness: Arc<Witness>,
    pulse: Arc<Pulse>,
}

impl Way {
    /// Goes one way: mostly at once, now and then slowly.
    async fn go(&self) {
        let ms = match self.witness.draw(100) {
            0..70 => 0,
            70..95 => 1 + self.witness.draw(20),
            _ => self.witness.draw(500),
        };
        if ms > 0 {
            sleep(Duration::from_millis(ms)).await;
        }
        self.pulse.beats().await;
    }

    /// Does `call`, with what the witness makes of it, as one effect.
    async fn there_and_back<T>(&self, call: impl Future<Output = T> + Send) -> T
    where
        T: Send,
    {
        self.go().await;
        let done = at_one_moment(call);
        self.go().await;
        done
    }

    fn tell(&self, line: &str) {
        self.witness.tell(&format!("{} {line}", self.pulse.k));
    }
}

/// The store.
#[derive(Debug)]
pub(crate) struct SeenStore {
    way: Way,
    /// With its faults.
    inner: StoreHandles,
}

impl SeenStore {
    pub(crate) const fn new(inner: StoreHandles, witness: Arc<Witness>, pulse: Arc<Pulse>) -> Self {
        let way = Way { witness, pulse };
        Self { way, inner }
    }
}

#[async_trait]
impl TaskReader for SeenStore {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.way.there_and_back(self.inner.work.task(id)).await
    }
}

pub(crate) fn told<T: Debug, E: std::fmt::Display>(done: &Result<T, E>) -> String {
    match done {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.to_string(),
    }
}
