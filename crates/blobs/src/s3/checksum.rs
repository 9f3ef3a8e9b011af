//! The length and SHA-256 of an object: from its head or, if another program has put it, from its
//! bytes.

use futures_util::TryStreamExt;
use kinora_contract::{StoredFile, hex};
use sha2::{Digest, Sha256};

use super::bucket::{Bucket, Found};
use super::read::read;
use crate::BlobError;

/// `None` for an unknown key.
pub(super) async fn checksum(bucket: &Bucket, key: &str) -> Result<Option<StoredFile>, BlobError> {
    let Some(Found { bytes, sha256 }) = bucket.look(key).await? else {
        return Ok(None);
    };
    let key = key.to_owned();
    if let Some(sha256) = sha256 {
        return Ok(Some(StoredFile { key, bytes, sha256 }));
    }
    match measure(bucket, &key).await {
        Ok((bytes, sha256)) => Ok(Some(StoredFile { key, bytes, sha256 })),
        Err(BlobError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the object to its end.
async fn measure(bucket: &Bucket, key: &str) -> Result<(u64, String), BlobError> {
    let mut chunks = read(bucket, key, 0..u64::MAX).await?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    while let Some(chunk) = chunks.try_next().await? {
        hash.update(&chunk);
        bytes += chunk.len() as u64;
    }
    Ok((bytes, hex::text(&hash.finalize())))
}
