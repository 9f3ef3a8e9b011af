//! Checks whether a put would succeed: puts a small object, reads it back and removes it. Its name is
//! not a key, so it is neither listed nor read.

use std::io;

use kinora_contract::hex;
use object_store::{ObjectStoreExt, PutPayload};

use super::bucket::Bucket;
use super::error::unavailable;
use crate::BlobError;

const BYTES: usize = 1024;

/// Several probes may run at once.
pub(super) async fn probe(bucket: &Bucket) -> Result<(), BlobError> {
    let mut name = [0_u8; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let path = bucket.object(&format!(".probe-{}", hex::text(&name)))?;
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let put = async {
        let payload = PutPayload::from(bytes.clone());
        bucket.store.put(&path, payload).await?;
        bucket.store.get(&path).await?.bytes().await
    };
    let read = put.await;
    let removed = bucket.store.delete(&path).await;
    let read = read.map_err(|error| unavailable(&error))?;
    removed.map_err(|error| unavailable(&error))?;
    if read != bytes {
        return Err(io::Error::other("S3 returned other bytes than were put").into());
    }
    Ok(())
}
