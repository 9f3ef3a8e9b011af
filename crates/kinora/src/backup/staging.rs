//! The folder in which a backup or an export is made: beside its destination, with a recognisable
//! temporary name. The next backup removes an interrupted one's; an export resumes it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder in progress.
#[derive(Debug)]
pub(crate) struct StagingFolder {
    path: PathBuf,
    to: PathBuf,
    /// Locked, so that other backups do not treat it as interrupted.
    folder: File,
    /// Whether to remove it when it is dropped.
    is_transient: bool,
}

impl StagingFolder {
    /// Creates the folder `TO.partial`, which is removed unless it is published.
    pub(super) fn create(to: &Path) -> Result<Self, Failure> {
        Self::open_at(to, create_empty, true)
    }

    /// Creates the folder `TO.partial`, or uses the existing one; it stays until it is published.
    pub(crate) fn resume(to: &Path) -> Result<Self, Failure> {
        Self::open_at(to, create_locked, false)
    }

    fn open_at(
        to: &Path,
        claim: impl Fn(&Path) -> io::Result<File>,
        is_transient: bool,
    ) -> Result<Self, Failure> {
        let to = std::path::absolute(to).map_err(|error| {
            Failure::because(format!("{} is not a valid path", to.display()), error)
        })?;
        let shown = to.display();
        match fs::read_dir(&to).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                return Err(Failure::new(format!(
                    "{shown} is not empty. Name a new folder, for example with the date in it."
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::because(format!("{shown} cannot be used"), error)),
        }
        // A sibling of the destination, and not the system's temporary folder: hard links to
        // results and the rename at the end need one file system.
        let mut path = to.clone().into_os_string();
        path.push(".partial");
        let path = PathBuf::from(path);
        // The lock is on the open folder, so the system releases it when the process dies. A folder
        // that can be locked is therefore left over, never in use.
        let folder = claim(&path).map_err(|error| Failure::at(&path, "cannot be made", error))?;
        Ok(Self {
            path,
            to,
            folder,
            is_transient,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The destination.
    pub(super) fn to(&self) -> &Path {
        &self.to
    }

    /// Syncs the contents of the folder, and renames it to its destination.
    pub(crate) fn publish(mut self) -> Result<PathBuf, Failure> {
        self.move_into_place()
            .map_err(|error| Failure::at(&self.to, "cannot be made", error))?;
        self.is_transient = false;
        Ok(self.to.clone())
    }

    fn move_into_place(&self) -> io::Result<()> {
        // The order makes the rename a commit. Contents first: after a power loss the final name
        // must not stand for a folder with holes. Then the rename, and at last the parent folder,
        // which holds the name itself.
        sync_all_under(&self.folder)?;
        fs::rename(&self.path, &self.to)?;
        File::open(self.to.parent().unwrap_or(&self.to))?.sync_all()
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        if self.is_transient {
            // If the removal fails, the next backup repeats it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Recreates the folder, unless a running backup or restore holds it. The lock lasts as long as the
/// file is open.
pub(crate) fn create_empty(path: &Path) -> io::Result<File> {
    if let Ok(left) = File::open(path) {
        lock_folder(&left)?;
        // Files of an interrupted backup may be cut off in the middle, so none is reused.
        fs::remove_dir_all(path)?;
    }
    create_locked(path)
}

/// Creates the folder if it is missing, and locks it as long as the file is open.
fn create_locked(path: &Path) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made?,
    }
    let folder = File::open(path)?;
    lock_folder(&folder)?;
    Ok(folder)
}

/// Locks a folder against another backup or restore.
pub(crate) fn lock_folder(folder: &File) -> io::Result<()> {
    folder.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::other("another backup, restore or export is using it")
        }
        TryLockError::Error(error) => error,
    })
}

/// Syncs the file system that `folder` lies on: one call for all its files and folders.
pub(crate) fn sync_all_under(folder: &File) -> io::Result<()> {
    // One system call instead of one for each of what may be 100,000 files. It also writes what
    // other programs have changed on the same file system, which costs time and nothing else.
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(folder)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    folder.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_gets_its_name_when_it_is_whole_and_leaves_nothing_before() {
        let root = tempfile::tempdir().unwrap();
        let to = root.path().join("backup");
        let left = root.path().join("backup.partial");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("kinora.db"), "of an interrupted one").unwrap();
        let staging = StagingFolder::create(&to).unwrap();
        assert!(!staging.path().join("kinora.db").exists());
        let other = StagingFolder::create(&to).unwrap_err().to_string();
        assert!(other.contains("another backup"), "{other}");
        drop(staging);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        let staging = StagingFolder::create(&to).unwrap();
        fs::write(staging.path().join("file"), "whole").unwrap();
        assert_eq!(staging.publish().unwrap(), to);
        let mode = fs::metadata(&to).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!left.exists());
        let again = StagingFolder::create(&to).unwrap_err().to_string();
        assert!(again.contains("not empty"), "{again}");
    }
}
