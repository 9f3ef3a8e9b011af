//! Puts: small bodies at once, large ones in parts; also the probe, a put of a small object. Every
//! body is hashed while it is read, and the server checks the SHA-256 of the bytes that arrive.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use kinora_contract::{StoredFile, hex};
use object_store::{
    Attribute, Attributes, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload,
};
use sha2::{Digest, Sha256};

use super::bucket::{S3Bucket, SHA256, code, unavailable};
use super::read::checksum;
use crate::BlobError;

/// Larger bodies are sent in parts of this length (S3 requires at least 5 MiB, and at most 10,000
/// parts).
const PART_BYTES: u64 = 8 << 20;
/// Number of parts sent at a time; together with the one being read, the memory of a put.
const PARTS_AT_ONCE: usize = 2;

/// The body of a put.
pub(super) enum PutBody {
    Bytes(Bytes),
    File(PathBuf),
}

/// The content of a key compared with the file to put there.
enum KeyContent {
    Nothing,
    Same,
    Other,
}

/// Publishes `body` with the key, length and hash in `file`.
pub(super) async fn put(
    bucket: &S3Bucket,
    file: &StoredFile,
    body: PutBody,
) -> Result<(), BlobError> {
    bucket.check_writable()?;
    let source = match body {
        PutBody::Bytes(bytes) => BodySource::Small(bytes),
        PutBody::File(from) => open(bucket, file, from).await?,
    };
    // Servers that ignore a create-only put would replace an existing object.
    match compare_key(bucket, file).await? {
        KeyContent::Nothing => {}
        KeyContent::Same => return Ok(()),
        KeyContent::Other => return Err(BlobError::Exists(file.key.clone())),
    }
    let sent = match source {
        BodySource::Small(bytes) => put_at_once(bucket, file, bytes).await,
        BodySource::Big(from) => put_in_parts(bucket, file, from).await,
    };
    let Err(error) = sent else {
        return Ok(());
    };
    // Another put may have been first, or this one succeeded although its answer was lost.
    match compare_key(bucket, file).await? {
        KeyContent::Nothing => Err(BlobError::Unavailable(error)),
        KeyContent::Same => Ok(()),
        KeyContent::Other => Err(BlobError::Exists(file.key.clone())),
    }
}

async fn compare_key(bucket: &S3Bucket, file: &StoredFile) -> Result<KeyContent, BlobError> {
    Ok(match checksum(bucket, &file.key).await? {
        None => KeyContent::Nothing,
        Some(found) if found == *file => KeyContent::Same,
        Some(_) => KeyContent::Other,
    })
}

enum BodySource {
    Small(Bytes),
    Big(File),
}

/// Reads a small file, which must match its measures.
async fn open(
    bucket: &S3Bucket,
    file: &StoredFile,
    from: PathBuf,
) -> Result<BodySource, BlobError> {
    let file = file.clone();
    let opened = bucket.files.run(move || open_file(&file, &from)).await?;
    Ok(opened?)
}

fn open_file(file: &StoredFile, from: &Path) -> io::Result<BodySource> {
    let found = fs::symlink_metadata(from)?;
    if !found.is_file() || found.len() != file.bytes {
        return Err(changed());
    }
    let mut from = File::open(from)?;
    if file.bytes > PART_BYTES {
        return Ok(BodySource::Big(from));
    }
    let bytes = next_part(&mut from)?;
    let sha256 = hex::text(&Sha256::digest(&bytes));
    if (bytes.len() as u64, &sha256) != (file.bytes, &file.sha256) {
        return Err(changed());
    }
    Ok(BodySource::Small(bytes))
}

fn changed() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "the file changed after it was measured",
    )
}

fn next_part(from: &mut File) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    from.take(PART_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn attributes(file: &StoredFile) -> Attributes {
    let name = Attribute::Metadata(SHA256.into());
    [(name, file.sha256.clone())].into_iter().collect()
}

async fn put_at_once(bucket: &S3Bucket, file: &StoredFile, bytes: Bytes) -> io::Result<()> {
    let path = bucket.path(&file.key).map_err(io::Error::other)?;
    let put = |mode| {
        let options = PutOptions {
            mode,
            attributes: attributes(file),
            ..PutOptions::default()
        };
        let payload = PutPayload::from_bytes(bytes.clone());
        bucket.store.put_opts(&path, payload, options)
    };
    if !bucket.overwrites.load(Ordering::Relaxed) {
        match put(PutMode::Create).await {
            Ok(_) => return Ok(()),
            Err(error) if code(&error).as_deref() != Some("NotImplemented") => {
                return Err(unavailable(&error));
            }
            Err(_) => {
                tracing::warn!(
                    "S3 server does not support create-only puts; continuing without them"
                );
                // Remembered for the life of the process: the next puts save the refused
                // request. The check before the put then is the only guard against replacing.
                bucket.overwrites.store(true, Ordering::Relaxed);
            }
        }
    }
    let put = put(PutMode::Overwrite).await;
    put.map(drop).map_err(|error| unavailable(&error))
}

async fn put_in_parts(bucket: &S3Bucket, file: &StoredFile, from: File) -> io::Result<()> {
    let path = bucket.path(&file.key).map_err(io::Error::other)?;
    let begun = bucket
        .store
        .put_multipart_opts(&path, attributes(file).into())
        .await;
    let mut upload = begun.map_err(|error| unavailable(&error))?;
    let mut sent = send_parts(bucket, file, from, &mut *upload).await;
    if sent.is_ok() {
        let completed = upload.complete().await;
        sent = completed.map(drop).map_err(|error| unavailable(&error));
    }
    if sent.is_err() {
        // If this fails too, a lifecycle rule of the bucket removes the rest.
        if let Err(error) = upload.abort().await {
            let error = unavailable(&error);
            tracing::debug!(%error, key = file.key, "unfinished upload not removed");
        }
    }
    sent
}

async fn send_parts(
    bucket: &S3Bucket,
    file: &StoredFile,
    mut from: File,
    upload: &mut dyn MultipartUpload,
) -> io::Result<()> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut sending = FuturesUnordered::new();
    loop {
        // The next part is read from disk while earlier ones are on their way. File and hash
        // move into the blocking closure and back, since it must own what it uses.
        let read = bucket.files.run(move || {
            let part = next_part(&mut from)?;
            hash.update(&part);
            io::Result::Ok((part, from, hash))
        });
        let part;
        (part, from, hash) = read.await??;
        bytes += part.len() as u64;
        if part.is_empty() {
            break;
        }
        sending.push(upload.put_part(PutPayload::from_bytes(part)));
        // Wait for any part, not the oldest: parts may be sent in any order.
        if sending.len() == PARTS_AT_ONCE {
            let sent = sending.next().await.unwrap_or(Ok(()));
            sent.map_err(|error| unavailable(&error))?;
        }
    }
    let all = sending.try_collect::<()>().await;
    all.map_err(|error| unavailable(&error))?;
    // Before `complete`: until then the object does not exist, and the upload is aborted.
    if (bytes, hex::text(&hash.finalize())) != (file.bytes, file.sha256.clone()) {
        return Err(changed());
    }
    Ok(())
}

const BYTES: usize = 1024;

/// Puts, reads back and removes a small object under a random name, so concurrent probes do not
/// disturb each other.
pub(super) async fn probe(bucket: &S3Bucket) -> Result<(), BlobError> {
    let mut name = [0_u8; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let path = bucket.object(&format!(".probe-{}", hex::text(&name)))?;
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let put = async {
        let payload = PutPayload::from(bytes.clone());
        bucket.store.put(&path, payload).await?;
        bucket.store.get(&path).await?.bytes().await
    };
    // Delete even if the put or the read failed: the object may exist anyway.
    let read = put.await;
    let removed = bucket.store.delete(&path).await;
    let read = read.map_err(|error| unavailable(&error))?;
    removed.map_err(|error| unavailable(&error))?;
    if read != bytes {
        return Err(io::Error::other("S3 returned other bytes than were put").into());
    }
    Ok(())
}
