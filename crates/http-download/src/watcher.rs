//! The receiver of a download's progress.

use std::time::Duration;

use crate::error::DownloadError;

/// Receives the progress of one download. The calls must return at once: the download waits for
/// them.
pub trait DownloadWatcher: Send + Sync {
    /// Bytes follow. `held` are present already, of `whole`.
    fn begun(&self, held: u64, whole: u64);

    /// The file now has this many bytes.
    fn grown(&self, held: u64);

    /// All bytes are present; their SHA-256 is being computed.
    fn checking(&self);

    /// An attempt failed. The next one, number `retry` of at most `retries_max` without progress,
    /// follows after `wait`.
    fn retrying(&self, error: &DownloadError, wait: Duration, retry: u32, retries_max: u32);
}
