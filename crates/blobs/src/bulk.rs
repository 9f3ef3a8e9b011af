//! Operations for commands beyond the interface: save a blob to a file, list all keys of a prefix.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use futures_util::TryStreamExt;
use kinora_contract::{StoredFile, hex};
use sha2::{Digest, Sha256};

use crate::{BlobError, BlobStore};

/// Writes a blob to the file at `to`, which is created or truncated first, but not synced. Returns
/// its measures; `None` for an unknown key.
///
/// # Errors
/// [`BlobError`] if the blob cannot be read completely, or the file cannot be written.
pub async fn save(
    blobs: &dyn BlobStore,
    key: &str,
    to: &Path,
) -> Result<Option<StoredFile>, BlobError> {
    let mut chunks = match blobs.read(key, 0..u64::MAX).await {
        Err(BlobError::NotFound(_)) => return Ok(None),
        chunks => chunks?,
    };
    let mut file = File::create(to)?;
    // Measured from the bytes that arrive, not from the store's own record: a caller compares
    // both to find a damaged blob.
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    while let Some(chunk) = chunks.try_next().await? {
        hash.update(&chunk);
        file.write_all(&chunk)?;
        bytes += chunk.len() as u64;
    }
    Ok(Some(StoredFile {
        key: key.to_owned(),
        bytes,
        sha256: hex::text(&hash.finalize()),
    }))
}

/// Keys of all blobs that begin with `prefix`, in no order.
///
/// # Errors
/// [`BlobError`] if they cannot all be listed.
pub async fn keys(blobs: &dyn BlobStore, prefix: &str) -> Result<Vec<String>, BlobError> {
    let entries = blobs.list(prefix).try_concat().await?;
    Ok(entries.into_iter().map(|entry| entry.key).collect())
}
