//! Concurrent transfers of files: a remote store answers each with a delay.

use std::future::Future;

use tokio::task::JoinSet;

use crate::failure::Failure;

/// Maximum number of concurrent transfers.
const AT_ONCE: usize = 8;

/// Transfers in progress.
#[derive(Debug)]
pub(super) struct Crowd<T>(JoinSet<Result<T, Failure>>);

impl<T: Send + 'static> Crowd<T> {
    pub(super) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Starts a transfer. If there are enough already, waits for another one first, and returns its
    /// result.
    pub(super) async fn begin(
        &mut self,
        transfer: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let ended = match self.0.len() < AT_ONCE {
            true => None,
            false => self.next().await?,
        };
        self.0.spawn(transfer);
        Ok(ended)
    }

    /// The result of a transfer in progress; `None` if there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<T>, Failure> {
        match self.0.join_next().await {
            None => Ok(None),
            Some(Ok(ended)) => ended.map(Some),
            Some(Err(error)) => Err(Failure::because("A file could not be transferred", error)),
        }
    }
}
