//! A folder of programs. It counts as ready once it has its marker, which is written last, so that an interrupted
//! preparation is never mistaken for a complete one. Two processes never prepare the same folder at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use kinora_system::durable;

use crate::environment::kind::EnvironmentError;

const MARKER: &str = "ready";

/// A folder below the folder of all engines, locked until it is dropped.
#[derive(Debug)]
pub(super) struct EngineFolder {
    pub(super) path: PathBuf,
    _lock: File,
}

impl EngineFolder {
    /// The folder `name` below `engines`; made if it does not exist.
    pub(super) fn open(engines: &Path, name: &str) -> Result<Self, EnvironmentError> {
        let path = engines.join(name);
        durable::make_folder(&path).map_err(EnvironmentError::at(&path))?;
        let lock_path = engines.join(format!(".{name}.lock"));
        let lock = File::create(&lock_path).map_err(EnvironmentError::at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(EnvironmentError(format!(
                "{}: another command prepares it. Wait until that has ended, and run this one again.",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(EnvironmentError::at(&lock_path)(error)),
        }
    }

    /// The text of the marker, if the folder is ready.
    pub(super) fn marker(&self) -> Option<String> {
        fs::read_to_string(self.path.join(MARKER)).ok()
    }

    /// Removes the marker.
    pub(super) fn unmark(&self) -> Result<(), EnvironmentError> {
        remove(&self.path.join(MARKER))
    }

    /// Writes the marker: all that was written before it is complete.
    pub(super) fn mark(&self, text: &str) -> Result<(), EnvironmentError> {
        let path = self.path.join(MARKER);
        write(&path, text).map_err(EnvironmentError::at(&path))
    }
}

/// The environments below `engines`, also unfinished ones. A folder that somebody else made there has no lock.
pub fn environments(engines: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(engines).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let made = folders.filter(|entry| {
        let name = entry.file_name();
        engines.join(format!(".{}.lock", name.display())).is_file()
    });
    made.map(|entry| entry.path()).collect()
}

/// Removes an environment.
///
/// # Errors
/// What the system says.
pub fn remove_environment(folder: &Path) -> io::Result<()> {
    // First the marker: an interruption must not leave a part that counts as ready.
    match fs::remove_file(folder.join(MARKER)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::remove_dir_all(folder),
    }
}

/// Writes a file that outlives a power cut.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    durable::sync_name(path)
}

/// Removes a file, or a folder with all that is in it, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), EnvironmentError> {
    let removed = fs::symlink_metadata(path).and_then(|found| {
        if found.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    });
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(EnvironmentError::at(path)),
    }
}

/// Bytes of all files below `folder`. Files that disappear meanwhile do not count.
pub(super) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_prepared_by_one_at_a_time_and_ready_once_marked() {
        let engines = tempfile::tempdir().unwrap();
        let folder = EngineFolder::open(engines.path(), "a").unwrap();
        assert_eq!(folder.marker(), None);
        let refused = EngineFolder::open(engines.path(), "a").unwrap_err();
        assert!(refused.to_string().contains("Wait until"), "{refused}");
        EngineFolder::open(engines.path(), "b").unwrap();
        folder.mark("bin/x").unwrap();
        drop(folder);
        let folder = EngineFolder::open(engines.path(), "a").unwrap();
        assert_eq!(folder.marker().as_deref(), Some("bin/x"));
        assert_eq!(size(&folder.path), 5);
        folder.unmark().unwrap();
        folder.unmark().unwrap();
        assert_eq!(folder.marker(), None);
    }

    #[test]
    fn environments_are_told_from_the_folders_of_others() {
        let engines = tempfile::tempdir().unwrap();
        let folder = EngineFolder::open(engines.path(), "a").unwrap();
        folder.mark("").unwrap();
        EngineFolder::open(engines.path(), "unfinished").unwrap();
        fs::create_dir(engines.path().join("sd-server-mine")).unwrap();
        let mut found = environments(engines.path());
        found.sort();
        assert_eq!(
            found,
            ["a", "unfinished"].map(|name| engines.path().join(name))
        );
        found
            .iter()
            .for_each(|path| remove_environment(path).unwrap());
        assert_eq!(environments(engines.path()), [""; 0].map(PathBuf::from));
    }
}
