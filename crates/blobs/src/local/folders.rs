//! The two folders of a store, and the probe that puts a small file through every step of a put. A
//! folder that is removed while the service runs, by a cleaner of temporary files for example, is
//! created again: its blobs are lost, but new ones can be stored. Several processes may open the
//! same store: they share the blobs, and each has its own staging folder.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kinora_system::scratch::ScratchFolder;

use super::publish::{StagedFile, sync_folder};

/// The paths and locks of a store.
#[derive(Debug)]
pub(super) struct StoreFolders {
    /// The published files.
    pub objects: PathBuf,
    /// Held during a probe, because all probes of a process use the same file name.
    pub probing: Mutex<()>,
    /// `None` for a store opened only to read, list and delete.
    opened: Option<OpenFolders>,
}

#[derive(Debug)]
struct OpenFolders {
    /// The folder for files being put.
    staging: ScratchFolder,
    /// The number of the next staged file.
    next: AtomicU64,
    /// Device of the root at the opening; it differs while the volume is not mounted.
    device: u64,
    /// Shared by all processes that have the store open. Earlier versions lock it exclusively, and
    /// would empty the staging folder under this one.
    _lock: File,
}

impl StoreFolders {
    /// The folders in `root`, whether they exist or not.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            objects: root.join("objects"),
            probing: Mutex::default(),
            opened: None,
        }
    }

    /// Creates the folders in `root`, and removes staged files of dead processes.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let mut folders = Self::new(root);
        kinora_system::durable::make_folder(&folders.objects)?;
        // A lock on the folder itself: it needs no file of its own, and disappears with the
        // process however that dies.
        let lock = File::open(root)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock_shared() {
            return Err(io::Error::other(
                "an earlier version of the service is using these results",
            ));
        }
        let staging = root.join("staging");
        remove_loose_files(&staging)?;
        folders.opened = Some(OpenFolders {
            staging: ScratchFolder::create(&staging)?,
            next: AtomicU64::new(0),
            device: lock.metadata()?.dev(),
            _lock: lock,
        });
        // Makes the names of both folders durable before the first blob relies on them.
        sync_folder(root)?;
        Ok(folders)
    }

    /// Checks that the volume on which the store was opened is mounted. Without it no blob is known
    /// to be absent, and storing is unsafe: a remount would hide the folders.
    pub(super) fn check_mounted(&self) -> io::Result<()> {
        let Some(opened) = &self.opened else {
            return Ok(());
        };
        let mut nearest = self.objects.ancestors();
        // After an unmount the mount point is an empty folder of the disk below, so a missing
        // blob proves nothing: compare the device of the nearest existing folder with the one at
        // the opening.
        match nearest.find_map(|folder| fs::metadata(folder).ok()) {
            Some(found) if found.dev() == opened.device => Ok(()),
            _ => Err(io::Error::other(
                "the volume of the result store is not mounted",
            )),
        }
    }

    /// A new path in the staging folder. Restores missing folders.
    pub(super) fn stage(&self) -> io::Result<StagedFile> {
        let opened = self.make_missing()?;
        let number = opened.next.fetch_add(1, Ordering::Relaxed);
        Ok(StagedFile::new(
            opened.staging.path().join(number.to_string()),
        ))
    }

    /// The staging folder, and its name among those of other processes.
    fn staging(&self) -> io::Result<(&Path, &str)> {
        let opened = self.make_missing()?;
        Ok((opened.staging.path(), opened.staging.name()))
    }

    fn make_missing(&self) -> io::Result<&OpenFolders> {
        let opened = self.opened.as_ref();
        let opened =
            opened.ok_or_else(|| io::Error::other("the blob store is open for reading only"))?;
        self.check_mounted()?;
        // A cleaner of temporary files may have removed the folder. Only after the check above:
        // otherwise the store would be created on the wrong disk, and hidden again by the next
        // mount.
        if !self.objects.try_exists()? {
            kinora_system::durable::make_folder(&self.objects)?;
            log_missing(&self.objects);
        }
        if opened.staging.restore()? {
            log_missing(opened.staging.path());
        }
        Ok(opened)
    }
}

fn log_missing(folder: &Path) {
    tracing::error!(folder = %folder.display(), "result store folder missing; created it again");
}

/// Earlier versions staged in the folder itself.
fn remove_loose_files(staging: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(staging) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let is_lock = path.to_string_lossy().ends_with(".lock");
        if !is_lock && path.is_file() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Followed by the name of the process's staging folder, so processes do not collide.
const PREFIX: &str = ".probe-";
/// The name in the staging folder; earlier versions used it in both folders.
const NAME: &str = ".probe";
/// Smaller than the smallest results, so a probe never fails where a result would fit.
const BYTES: usize = 64 * 1024;

/// Puts a small file, reads it back and removes it. Restores missing folders.
pub(super) fn probe(folders: &StoreFolders) -> io::Result<()> {
    let _alone = folders
        .probing
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let (staging, owner) = folders.staging()?;
    let staged = staging.join(NAME);
    let named = folders.objects.join(format!("{PREFIX}{owner}"));
    // An earlier probe may have failed to remove its files.
    remove(&staged)?;
    remove(&named)?;
    // Remove both names whatever happened, and report the first error.
    let put = put(&staged, &named, &folders.objects);
    let removed = remove(&named).and(remove(&staged));
    put.and(removed)
}

/// Removes probe files of crashed processes, and leaves those of live ones.
pub(super) fn remove_leftovers(folders: &StoreFolders) {
    if let Err(error) = try_remove_leftovers(folders) {
        tracing::debug!(%error, "leftover probe file not removed");
    }
}

fn try_remove_leftovers(folders: &StoreFolders) -> io::Result<()> {
    let staging = folders.staging()?.0;
    let shared = staging.parent().unwrap_or(staging);
    for entry in fs::read_dir(&folders.objects)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_left = match name.strip_prefix(PREFIX) {
            // Another live process may be in the middle of its probe.
            Some(owner) => !kinora_system::scratch::is_occupied(shared, owner),
            None => name == NAME,
        };
        if is_left {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn put(staged: &Path, named: &Path, objects: &Path) -> io::Result<()> {
    // 251 is prime, so a shifted or repeated block does not read back as equal.
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let mut file = File::create_new(staged)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::hard_link(staged, named)?;
    sync_folder(objects)?;
    if fs::read(named)? == bytes {
        Ok(())
    } else {
        Err(io::Error::other(
            "the file system returned other bytes than were written",
        ))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
