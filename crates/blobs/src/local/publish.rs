//! Publishes and removes files, with the order of syncs that makes "published" mean "on disk".
//! Everything here blocks: call it through [`blocking`].

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kinora_contract::StoredFile;
pub(super) use kinora_system::durable::sync_folder;
use kinora_system::pool::BlockingPool;

use crate::BlobError;
use crate::measure::{copy_measured, measure};

/// Attempts to create a folder, which may vanish during a put if a delete finds it empty.
const FOLDER_TRIES: usize = 8;

/// A path in the staging folder; removed on drop, whether or not the put succeeds.
pub(super) struct StagedFile(PathBuf);

impl StagedFile {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                // The published blob is safe: this is a second name for it.
                tracing::warn!(%error, "staged file not removed; the next start removes it");
            }
            _ => {}
        }
    }
}

/// Brings the file at `from` to `staged`: by a hard link, or by a copy if linking fails, as between
/// file systems. Copies are measured again; for a link the length suffices, since the bytes were
/// hashed when they were written.
pub(super) fn stage(file: &StoredFile, from: &Path, staged: &StagedFile) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if !found.is_file() || found.len() != file.bytes {
        return Err(not_as_measured());
    }
    // A link takes no space and no time, and the staged name keeps the bytes if the owner
    // removes its file meanwhile.
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
        "the file changed after it was measured",
    )
}

/// Publishes a staged file as `objects/key`: synced, linked, folders synced.
pub(super) fn publish(
    objects: &Path,
    file: &StoredFile,
    staged: &StagedFile,
) -> Result<(), BlobError> {
    // The order that makes a blob appear whole or not at all: sync the bytes, link the name, sync the
    // folders. A name that survives a power cut then never points to a torn file, and a caller that
    // gets `Ok` knows that both are on disk. Example of the reverse order: with the link first, a crash
    // between the two leaves a video of zeros under a key that no put will ever replace.
    File::open(staged.path())?.sync_all()?;
    kinora_system::crash::point("blobs.synced");
    let path = objects.join(&file.key);
    let is_new = match link(staged.path(), &path).map_err(|error| (error.kind(), error)) {
        Ok(()) => true,
        // An earlier put whose answer was lost, or a concurrent one.
        Err((ErrorKind::AlreadyExists, _)) if has_bytes_of(&path, file)? => false,
        Err((ErrorKind::AlreadyExists | ErrorKind::NotADirectory, _)) => {
            return Err(BlobError::Exists(file.key.clone()));
        }
        Err((_, error)) => return Err(error.into()),
    };
    kinora_system::crash::point("blobs.linked");
    if let Err(error) = sync_upwards(objects, &path) {
        // The caller will be told that the put failed, so the name must not stay. A name that
        // was there before belongs to an earlier put.
        if is_new {
            let _ = fs::remove_file(&path);
        }
        return Err(error.into());
    }
    Ok(())
}

/// Removes a blob and the folders that this leaves empty.
pub(super) fn remove(objects: &Path, path: &Path) -> Result<(), BlobError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        // A folder is not a blob.
        Err(error) if is_absent(&error) || path.is_dir() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    // Best effort, from the inside out: stops at the first folder that is not empty, or that a
    // concurrent put has just filled.
    for folder in path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != objects)
    {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    // Sync the nearest folder that still exists, which holds the entry that was removed last.
    for folder in path.ancestors().skip(1) {
        match sync_folder(folder) {
            Err(error) if is_absent(&error) => {}
            synced => return Ok(synced?),
        }
    }
    Ok(())
}

/// The length and SHA-256 of the file at `path`; `None` if it does not exist.
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

/// Whether the file at `path` has the bytes of `wanted`; if so, syncs it.
fn has_bytes_of(path: &Path, wanted: &StoredFile) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if is_absent(&error) => return Ok(false),
        file => file?,
    };
    let data = file.metadata()?;
    if !data.is_file() || data.len() != wanted.bytes || measure(&mut file)?.1 != wanted.sha256 {
        return Ok(false);
    }
    // The earlier put may have died between its link and its sync.
    file.sync_all()?;
    Ok(true)
}

/// Links the file to a second name; unlike a rename, this never replaces.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    let mut last = ErrorKind::NotFound.into();
    for _ in 0..FOLDER_TRIES {
        // A concurrent delete may remove the folder between its creation and the link.
        let made = fs::create_dir_all(folder);
        // A delete that removes the folder meanwhile causes the same error as a file in its place, which causes it every time.
        let is_taken = matches!(&made, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        match made.and_then(|()| fs::hard_link(from, to)) {
            Err(error) if (is_taken || error.kind() == ErrorKind::NotFound) && from.exists() => {
                last = error;
            }
            done => return done,
        }
    }
    Err(last)
}

/// Syncs every folder from the file's up to `objects`, since a concurrent put may have just created
/// one and not synced it yet.
fn sync_upwards(objects: &Path, path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1) {
        sync_folder(folder)?;
        if folder == objects {
            break;
        }
    }
    Ok(())
}

/// Whether there is no such file, including when a parent of the key is itself a blob.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Runs `work` on a thread of `pool`.
pub(super) async fn blocking<T: Send + 'static>(
    pool: &BlockingPool,
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    let done = pool.run(work).await;
    done.unwrap_or_else(|stopped| Err(BlobError::Unavailable(stopped)))
}
