//! Several transfers of files at a time: a far store answers each of them late.

use std::future::Future;

use tokio::task::JoinSet;

use crate::failure::Failure;

/// Transfers at a time.
const AT_ONCE: usize = 8;

/// Transfers under way.
#[derive(Debug)]
pub(super) struct Crowd<T>(JoinSet<Result<T, Failure>>);

impl<T: Send + 'static> Crowd<T> {
    pub(super) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Begins one. Where there are enough, it waits for another first, and returns what came of that.
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

    /// What came of one of those under way; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<T>, Failure> {
        match self.0.join_next().await {
            None => Ok(None),
            Some(Ok(ended)) => ended.map(Some),
            Some(Err(error)) => Err(Failure::because("A file could not be transferred", error)),
        }
    }
}
