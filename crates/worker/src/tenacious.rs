//! Retries calls while a store is full or away: an outage of seconds costs no task. Persistent
//! errors are returned unchanged.

use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::references::GatherError;

/// How often a full or absent store is asked before the error is returned.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// An error that may pass by itself.
pub(crate) trait Passing: std::error::Error {
    /// Whether the same call is worth another try.
    fn may_pass(&self) -> bool;
}

impl Passing for BlobError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl Passing for StoreError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl Passing for GatherError {
    fn may_pass(&self) -> bool {
        match self {
            Self::Blobs(error) => error.may_pass(),
            Self::Store(error) => error.may_pass(),
            Self::Later { .. } => true,
            // Room takes a while.
            Self::NoRoom => false,
            Self::Fetch { .. }
            | Self::Judge { .. }
            | Self::AudioTooLong(_)
            | Self::Ended
            | Self::Missing => false,
        }
    }
}

/// Does `call`, and does it again with doubling pauses while its error may pass. After `stopped`
/// it is not begun again, but the one under way is waited for.
pub(crate) async fn tenacious<T, E, Call>(
    stopped: &CancellationToken,
    call: impl Fn() -> Call,
) -> Result<T, E>
where
    E: Passing,
    Call: Future<Output = Result<T, E>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::warn!(%error, ?pause, "a store is away; trying again");
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(pause) => {}
                    () = stopped.cancelled() => return Err(error),
                }
            }
            result => return result,
        }
        pause *= 2;
    }
    call().await
}
