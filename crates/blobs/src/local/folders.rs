//! The two folders of a store. One that somebody removed under a running service, such as a cleaner of
//! temporary files, is made again: its blobs are gone, but new ones can be stored. Several processes may
//! have the same store open: they share the blobs, and each stages in a folder of its own.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kinora_scratch::Scratch;

use super::publish::{Staged, sync_folder};

/// Where a store keeps its files.
#[derive(Debug)]
pub(super) struct Folders {
    /// The published files.
    pub(super) objects: PathBuf,
    /// Held by the probe at work: its file has one name.
    pub(super) probing: Mutex<()>,
    /// None for a store that is only read, listed and deleted from.
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    /// The files that are being put.
    staging: Scratch,
    /// Numbers them.
    next: AtomicU64,
    /// Another one is there when the volume of the results is not mounted any more.
    device: u64,
    /// Shared by all that have the store open. Earlier versions hold it alone, and would empty the staging
    /// folder under this one.
    _lock: File,
}

impl Folders {
    /// Where they are in `root`, whether they are there or not.
    pub(super) fn at(root: &Path) -> Self {
        Self {
            objects: root.join("objects"),
            probing: Mutex::default(),
            opened: None,
        }
    }

    /// Makes the folders in `root`, and removes files that processes which are gone have left there.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let mut folders = Self::at(root);
        kinora_durable::make_folder(&folders.objects)?;
        let lock = File::open(root)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock_shared() {
            return Err(io::Error::other(
                "a service of an earlier version uses these results",
            ));
        }
        let staging = root.join("staging");
        remove_loose_files(&staging)?;
        folders.opened = Some(Opened {
            staging: Scratch::make(&staging)?,
            next: AtomicU64::new(0),
            device: lock.metadata()?.dev(),
            _lock: lock,
        });
        sync_folder(root)?;
        Ok(folders)
    }

    /// Whether the volume is there on which the store was opened. Without it nothing is known to be absent, and
    /// nothing may be stored: the folders of a mount point are hidden once it is mounted again.
    pub(super) fn check_mounted(&self) -> io::Result<()> {
        let Some(opened) = &self.opened else {
            return Ok(());
        };
        let mut nearest = self.objects.ancestors();
        match nearest.find_map(|folder| fs::metadata(folder).ok()) {
            Some(found) if found.dev() == opened.device => Ok(()),
            _ => Err(io::Error::other("the volume of the results is not mounted")),
        }
    }

    /// A new name in the staging folder. Folders that are gone are made again.
    pub(super) fn stage(&self) -> io::Result<Staged> {
        let opened = self.make_missing()?;
        let number = opened.next.fetch_add(1, Ordering::Relaxed);
        Ok(Staged::at(opened.staging.path().join(number.to_string())))
    }

    /// The staging folder, and its name among those of other processes.
    pub(super) fn staging(&self) -> io::Result<(&Path, &str)> {
        let opened = self.make_missing()?;
        Ok((opened.staging.path(), opened.staging.name()))
    }

    fn make_missing(&self) -> io::Result<&Opened> {
        let opened = self.opened.as_ref();
        let opened = opened.ok_or_else(|| io::Error::other("opened for reading alone"))?;
        self.check_mounted()?;
        if !self.objects.try_exists()? {
            kinora_durable::make_folder(&self.objects)?;
            log_missing(&self.objects);
        }
        if opened.staging.restore()? {
            log_missing(opened.staging.path());
        }
        Ok(opened)
    }
}

fn log_missing(folder: &Path) {
    tracing::error!(folder = %folder.display(), "missing folder of the result store made again");
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
