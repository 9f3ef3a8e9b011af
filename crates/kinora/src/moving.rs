//! `kinora export` and `kinora import`: move a service to a task store and result store of any
//! kind, through a folder. Both can be interrupted and repeated, and both verify everything they
//! write.

pub(crate) mod export;
mod folder;
pub(crate) mod import;

use std::future::Future;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// Maximum number of concurrent transfers of files: a remote store answers each with a delay.
const TRANSFERS_MAX: usize = 8;

/// The runtime of one command.
fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))
}

/// Transfers in progress.
#[derive(Debug)]
struct Transfers<T>(JoinSet<Result<T, Failure>>);

impl<T: Send + 'static> Transfers<T> {
    fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Starts a transfer. If there are enough already, waits for another one first, and returns its
    /// result.
    async fn begin(
        &mut self,
        transfer: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let ended = if self.0.len() < TRANSFERS_MAX {
            None
        } else {
            self.next().await?
        };
        self.0.spawn(transfer);
        Ok(ended)
    }

    /// The result of a transfer in progress; `None` if there are no more.
    async fn next(&mut self) -> Result<Option<T>, Failure> {
        match self.0.join_next().await {
            None => Ok(None),
            Some(Ok(ended)) => ended.map(Some),
            Some(Err(error)) => Err(Failure::because("A file could not be transferred", error)),
        }
    }
}
