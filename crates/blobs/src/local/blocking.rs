//! File operations that block a thread of a pool, and the meaning of their errors.

use std::io::{self, ErrorKind};

use kinora_pool::Pool;

use crate::BlobError;

/// Whether there is no such file, including when a parent of the key is itself a blob.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Runs `work` on a thread of `pool`.
pub(super) async fn blocking<T: Send + 'static>(
    pool: &Pool,
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    let done = pool.run(work).await;
    done.unwrap_or_else(|stopped| Err(BlobError::Unavailable(stopped)))
}
