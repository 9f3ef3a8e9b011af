//! The two folders of a store. One that somebody removed under a running service, such as a cleaner of
//! temporary files, is made again: its blobs are gone, but what comes next can be stored.

use std::fs;
use std::io::{self, ErrorKind};
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
}

impl Folders {
    /// Where they are in `root`, whether they are there or not.
    pub(super) fn at(root: &Path) -> Self {
        Self {
            objects: root.join("objects"),
            staging: root.join("staging"),
            probing: Mutex::default(),
        }
    }

    /// Makes the folders in `root`, and empties the staging folder.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let folders = Self::at(root);
        kinora_durable::make_folder(&folders.objects)?;
        match fs::remove_dir_all(&folders.staging) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(&folders.staging)?,
        }
        sync_folder(root)?;
        Ok(folders)
    }

    /// Makes folders again that are gone.
    pub(super) fn make_missing(&self) -> io::Result<()> {
        for folder in [&self.objects, &self.staging] {
            if !folder.try_exists()? {
                kinora_durable::make_folder(folder)?;
                tracing::error!(folder = %folder.display(), "missing folder of the result store made again");
            }
        }
        Ok(())
    }
}
