//! How a file comes under its key, and how it goes: the order of syncs that makes "published"
//! mean "on disk". Blocking; runs on threads that may block.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use kinora_contract::StoredFile;
pub(super) use kinora_durable::sync_folder;
use sha2::{Digest, Sha256};

use super::is_absent;
use crate::BlobError;

/// Bytes that are hashed at once.
const HASH_BYTES: usize = 256 * 1024;
/// A folder may vanish under a put, when a delete finds it empty: so often it is made again.
const FOLDER_TRIES: usize = 8;

/// Publishes the file at `from` as `objects/key`: hashed, synced, linked, folders synced.
pub(super) fn publish(objects: &Path, key: String, from: &Path) -> Result<StoredFile, BlobError> {
    let mut file = File::open(from)?;
    let (bytes, sha256) = measure(&mut file)?;
    // The bytes before the name: a name that survives a crash never names a torn file.
    file.sync_all()?;
    kinora_crash::point("blobs.synced");
    let path = objects.join(&key);
    let is_new = match link(from, &path).map_err(|error| (error.kind(), error)) {
        Ok(()) => true,
        // An earlier put whose answer was lost.
        Err((ErrorKind::AlreadyExists, _)) if holds(&path, bytes, &sha256)? => false,
        Err((ErrorKind::AlreadyExists | ErrorKind::NotADirectory, _)) => {
            return Err(BlobError::Exists(key));
        }
        Err((_, error)) => return Err(error.into()),
    };
    kinora_crash::point("blobs.linked");
    if let Err(error) = sync_upwards(objects, &path) {
        if is_new {
            let _ = fs::remove_file(&path);
        }
        return Err(error.into());
    }
    if let Err(error) = fs::remove_file(from) {
        // The blob stands; a second name in the staging folder goes at the next opening.
        tracing::warn!(%error, "a published file stays in the staging folder");
    }
    Ok(StoredFile { key, bytes, sha256 })
}

/// Removes a blob and the folders that it leaves empty.
pub(super) fn remove(objects: &Path, path: &Path) -> Result<(), BlobError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        // A folder is not a blob.
        Err(error) if is_absent(&error) || path.is_dir() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    for folder in path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != objects)
    {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    for folder in path.ancestors().skip(1) {
        match sync_folder(folder) {
            Err(error) if is_absent(&error) => {}
            synced => return Ok(synced?),
        }
    }
    Ok(())
}

/// Length and SHA-256 in lower-case hexadecimal.
pub(crate) fn measure(file: &mut File) -> io::Result<(u64, String)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    let mut buffer = vec![0_u8; HASH_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digest = hash.finalize();
    Ok((
        bytes,
        digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    ))
}

/// Whether the file at `path` has these bytes, which are then synced.
fn holds(path: &Path, bytes: u64, sha256: &str) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if is_absent(&error) => return Ok(false),
        file => file?,
    };
    let data = file.metadata()?;
    if !data.is_file() || data.len() != bytes || measure(&mut file)?.1 != sha256 {
        return Ok(false);
    }
    file.sync_all()?;
    Ok(true)
}

/// A second name for the file; unlike a rename it refuses to replace.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    for _ in 0..FOLDER_TRIES {
        match fs::create_dir_all(folder).and_then(|()| fs::hard_link(from, to)) {
            Err(error) if error.kind() == ErrorKind::NotFound && from.exists() => {}
            done => return done,
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// Syncs every folder from the file's up to `objects`. All of them, since a folder that another
/// put has just made may not be synced yet.
fn sync_upwards(objects: &Path, path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1) {
        sync_folder(folder)?;
        if folder == objects {
            break;
        }
    }
    Ok(())
}
