//! The two folders of a store. One that somebody removed under a running service, such as a cleaner of
//! temporary files, is made again: its blobs are gone, but what comes next can be stored.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::publish::sync_folder;

/// Where a store keeps its files.
#[derive(Debug)]
pub(super) struct Folders {
    /// What is published.
    pub(super) objects: PathBuf,
    /// What is being written.
    pub(super) staging: PathBuf,
    /// Held by the probe at work: its file has one name.
    pub(super) probing: Mutex<()>,
    /// What was opened; nothing for one that is only looked at.
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    /// Another one is there when the volume of the results is not mounted any more.
    device: u64,
    /// A second process would empty the staging folder under this one.
    _lock: File,
}

impl Folders {
    /// Where they are in `root`, whether they are there or not.
    pub(super) fn at(root: &Path) -> Self {
        Self {
            objects: root.join("objects"),
            staging: root.join("staging"),
            probing: Mutex::default(),
            opened: None,
        }
    }

    /// Makes the folders in `root`, and empties the staging folder.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let mut folders = Self::at(root);
        kinora_durable::make_folder(&folders.objects)?;
        let lock = File::open(root)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(io::Error::other("another service uses these results"));
        }
        folders.opened = Some(Opened {
            device: lock.metadata()?.dev(),
            _lock: lock,
        });
        match fs::remove_dir_all(&folders.staging) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(&folders.staging)?,
        }
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

    /// Makes folders again that are gone.
    pub(super) fn make_missing(&self) -> io::Result<()> {
        self.check_mounted()?;
        for folder in [&self.objects, &self.staging] {
            if !folder.try_exists()? {
                kinora_durable::make_folder(folder)?;
                tracing::error!(folder = %folder.display(), "missing folder of the result store made again");
            }
        }
        Ok(())
    }
}
