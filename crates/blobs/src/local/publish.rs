//! How a file comes under its key, and how it goes: the order of syncs that makes "published"
//! mean "on disk". Blocking; runs on threads that may block.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kinora_contract::StoredFile;
pub(super) use kinora_durable::sync_folder;

use super::blocking::is_absent;
use crate::BlobError;
use crate::measure::{copy_measured, measure};

/// A folder may vanish under a put, when a delete finds it empty: so often it is made again.
const FOLDER_TRIES: usize = 8;

/// A name in the staging folder, which goes whatever becomes of the put.
pub(super) struct Staged(PathBuf);

impl Staged {
    pub(super) const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                // A published blob stands: this is a second name of it.
                tracing::warn!(%error, "a file stays in the staging folder until the next start");
            }
            _ => {}
        }
    }
}

/// Brings the file at `from` to `staged`: by a second name, or by a copy where that cannot be had, as from
/// another file system. What is copied is measured again; a second name needs no more than its length, since
/// the bytes are those that were hashed when they were written.
pub(super) fn stage(file: &StoredFile, from: &Path, staged: &Staged) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if !found.is_file() || found.len() != file.bytes {
        return Err(not_as_measured());
    }
    if fs::hard_link(from, staged.path()).is_ok() {
        return Ok(());
    }
    let mut to = File::create_new(staged.path())?;
    let (bytes, sha256) = copy_measured(&mut File::open(from)?, &mut to)?;
    if (bytes, &sha256) != (file.bytes, &file.sha256) {
        return Err(not_as_measured());
    }
    Ok(())
}

fn not_as_measured() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "the file is not the one that was measured",
    )
}

/// Publishes a staged file as `objects/key`: synced, linked, folders synced.
pub(super) fn publish(objects: &Path, file: &StoredFile, staged: &Staged) -> Result<(), BlobError> {
    // The bytes before the name: a name that survives a crash never names a torn file.
    File::open(staged.path())?.sync_all()?;
    kinora_crash::point("blobs.synced");
    let path = objects.join(&file.key);
    let is_new = match link(staged.path(), &path).map_err(|error| (error.kind(), error)) {
        Ok(()) => true,
        // An earlier put whose answer was lost, or one at the same time.
        Err((ErrorKind::AlreadyExists, _)) if has(&path, file)? => false,
        Err((ErrorKind::AlreadyExists | ErrorKind::NotADirectory, _)) => {
            return Err(BlobError::Exists(file.key.clone()));
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
    Ok(())
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

/// Length and SHA-256 of the file at `path`; `None` where there is none.
pub(super) fn checksum(path: &Path) -> io::Result<Option<(u64, String)>> {
    let mut file = match File::open(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    measure(&mut file).map(Some)
}

/// Whether the file at `path` has the bytes of `wanted`, which are then synced.
fn has(path: &Path, wanted: &StoredFile) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if is_absent(&error) => return Ok(false),
        file => file?,
    };
    let data = file.metadata()?;
    if !data.is_file() || data.len() != wanted.bytes || measure(&mut file)?.1 != wanted.sha256 {
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
