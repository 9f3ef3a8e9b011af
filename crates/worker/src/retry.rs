//! Retries calls while a store is full or unavailable, so that an outage of seconds costs no task.
//! Persistent errors are returned unchanged.

use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_store::StoreError;
use tokio_util::sync::CancellationToken;

/// Number of calls to a full or unavailable store before the error is returned.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// An error that may be temporary.
pub(crate) trait TransientError: std::error::Error {
    /// Whether a retry may succeed.
    fn is_transient(&self) -> bool;
}

impl TransientError for BlobError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl TransientError for StoreError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Makes `call`, and repeats it with doubling pauses while its error is transient. After `stopped`
/// it starts no new call, but waits for the one in progress.
pub(crate) async fn retry_unavailable<T, E, Call>(
    stopped: &CancellationToken,
    call: impl Fn() -> Call,
) -> Result<T, E>
where
    E: TransientError,
    Call: Future<Output = Result<T, E>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, ?pause, "store unavailable; retrying");
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(pause) => {}
                    () = stopped.cancelled() => return Err(error),
                }
            }
            result => return result,
        }
        // 0.5, 1 and 2 s: an outage of three seconds costs no task, and a longer one no slot for
        // long.
        pause *= 2;
    }
    call().await
}
