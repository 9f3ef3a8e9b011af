//! A folder for one owner's unfinished files, inside a folder that several owners may share. Each
//! owner holds a lock while it lives; a new owner removes the folders whose lock is free. Nothing
//! in them survives a restart.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Extension of an owner's lock file, next to its folder.
const LOCK_EXTENSION: &str = "lock";
/// Lock held briefly while creating or removing folders, so no process sees a folder without its lock.
const FOLDERS_LOCK: &str = ".lock";
/// Length of an owner's name: 64 random bits in hexadecimal. Files with other names are never
/// touched.
const NAME_DIGITS: usize = 16;
/// The size of a small result, so a probe fails when a result would.
const PROBE_BYTES: usize = 64 * 1024;

/// A file in a scratch folder. Dropping this removes it, so failed or unneeded work leaves nothing
/// behind, wherever it ended.
#[derive(Debug)]
pub struct ScratchFile {
    path: PathBuf,
    /// The folder exists as long as it has files.
    _scratch: Arc<ScratchFolder>,
}

impl ScratchFile {
    /// The file `name`, which need not exist yet.
    pub fn new(scratch: &Arc<ScratchFolder>, name: &str) -> Self {
        Self {
            path: scratch.path().join(name),
            _scratch: scratch.clone(),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "scratch file not removed; the next start removes it");
            }
            _ => {}
        }
    }
}

/// A folder for unfinished files. Dropping it removes the folder.
#[derive(Debug)]
pub struct ScratchFolder {
    parent: PathBuf,
    name: String,
    path: PathBuf,
    /// The owner's lock; `None` before the folder is created.
    lock: Mutex<Option<File>>,
}

impl ScratchFolder {
    /// Creates a folder in `parent`, which is created if missing, and removes the folders of dead
    /// owners. Only the user of this process can open it.
    ///
    /// # Errors
    /// If the folder or its lock cannot be created. Old folders that cannot be removed are logged.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let mut random = [0; NAME_DIGITS / 2];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let scratch = Self {
            parent: parent.to_owned(),
            path: parent.join(&name),
            name,
            lock: Mutex::new(None),
        };
        // Held until the end of this function: between the creation of a lock file and its
        // locking, another process would take the new owner for dead.
        let _folders = scratch.lock_folders()?;
        for owner in owners(parent)? {
            if let Err(error) = remove_abandoned(parent, &owner) {
                tracing::warn!(%error, owner, "scratch folder of an earlier process not removed");
            }
        }
        scratch.occupy()?;
        Ok(scratch)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the folder in its parent: different for every owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the folder again if it was removed, and returns whether it was.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn restore(&self) -> io::Result<bool> {
        if self.path.is_dir() && is_occupied(&self.parent, &self.name) {
            return Ok(false);
        }
        let _folders = self.lock_folders()?;
        self.occupy()?;
        Ok(true)
    }

    /// Checks whether files can be written: restores the folder if necessary, then writes, syncs
    /// and removes a small file.
    ///
    /// # Errors
    /// If any of these steps fails.
    pub fn probe(&self) -> io::Result<()> {
        if self.restore()? {
            tracing::error!(folder = %self.path.display(), "scratch folder missing; created it again");
        }
        let path = self.path.join(".probe");
        let written = write_synced(&path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => written.and(Err(error)),
            _ => written,
        }
    }

    /// Locks the right to create and remove folders; callers hold it briefly.
    fn lock_folders(&self) -> io::Result<File> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.parent)?;
        lock(&self.parent.join(FOLDERS_LOCK))
    }

    /// Locks the owner's file, then creates the folder: a folder without a lock would never be
    /// removed.
    fn occupy(&self) -> io::Result<()> {
        let mut held = self.owner_lock();
        if held.is_none() || !is_occupied(&self.parent, &self.name) {
            *held = Some(lock(&lock_of(&self.parent, &self.name))?);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
    }

    fn owner_lock(&self) -> MutexGuard<'_, Option<File>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if self.owner_lock().is_none() {
            return;
        }
        if let Err(error) = remove(&self.parent, &self.name) {
            tracing::warn!(%error, folder = %self.path.display(), "scratch folder not removed; the next start removes it");
        }
    }
}

/// Whether `parent` has a lock file of this owner, which is alive or has left its folder behind.
pub fn is_occupied(parent: &Path, name: &str) -> bool {
    lock_of(parent, name).exists()
}

fn lock_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(name).with_extension(LOCK_EXTENSION)
}

/// The owners with a lock file in `parent`, alive or not.
fn owners(parent: &Path) -> io::Result<Vec<String>> {
    let mut owners = Vec::new();
    for entry in fs::read_dir(parent)? {
        let name = entry?.file_name();
        let Some((owner, LOCK_EXTENSION)) = name.to_str().and_then(|name| name.split_once('.'))
        else {
            continue;
        };
        if owner.len() == NAME_DIGITS
            && owner
                .bytes()
                .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
        {
            owners.push(owner.to_owned());
        }
    }
    Ok(owners)
}

fn remove_abandoned(parent: &Path, owner: &str) -> io::Result<()> {
    let path = lock_of(parent, owner);
    // See `lock` for why there are two ways.
    for file in [File::open(&path), File::options().write(true).open(&path)] {
        let file = match file {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        match file.try_lock() {
            Ok(()) => return remove(parent, owner),
            Err(TryLockError::WouldBlock) => return Ok(()),
            // This kind of open file cannot be locked on this file system; try the other one.
            Err(TryLockError::Error(_)) => {}
        }
    }
    Err(io::Error::other("its lock cannot be tested"))
}

/// Removes the folder, then its lock file: without the file, no later owner would remove the
/// folder.
fn remove(parent: &Path, owner: &str) -> io::Result<()> {
    let gone = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    gone(fs::remove_dir_all(parent.join(owner)))?;
    gone(fs::remove_file(lock_of(parent, owner)))
}

/// Creates a lock file if necessary, and waits for its lock.
fn lock(path: &Path) -> io::Result<File> {
    let for_writing = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    // A file open for writing would keep an operator from remounting the volume read-only. But NFS
    // grants exclusive locks only to files open for writing.
    let for_reading = File::open(path)?;
    if for_reading.lock().is_ok() {
        return Ok(for_reading);
    }
    for_writing.lock()?;
    Ok(for_writing)
}

fn write_synced(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[0; PROBE_BYTES])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What a killed process leaves behind: its folder, and a free lock.
    fn abandoned(parent: &Path) -> String {
        let scratch = ScratchFolder::create(parent).unwrap();
        fs::write(scratch.path().join("half"), "half").unwrap();
        *scratch.owner_lock() = None;
        scratch.name().to_owned()
    }

    #[test]
    fn owners_leave_each_other_alone_and_remove_what_the_dead_left() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("work");
        let dead = abandoned(&parent);
        let first = ScratchFolder::create(&parent).unwrap();
        assert!(!parent.join(&dead).exists() && !is_occupied(&parent, &dead));
        fs::write(first.path().join("frames"), "frames").unwrap();
        let second = ScratchFolder::create(&parent).unwrap();
        assert_eq!(names(first.path()), ["frames"]);
        drop(second);
        assert_eq!(names(first.path()), ["frames"]);
        let mode = fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(first);
        assert_eq!(names(&parent), [FOLDERS_LOCK]);
    }

    #[test]
    fn files_of_others_are_never_touched() {
        let root = tempfile::tempdir().unwrap();
        for other in ["notes", "notes.lock", "ABCDEFABCDEFABCD.lock", "0123.lock"] {
            fs::write(root.path().join(other), "").unwrap();
        }
        // Without a lock file this is not an owner's folder.
        fs::create_dir(root.path().join("0123456789abcdef")).unwrap();
        let before = names(root.path());
        let scratch = ScratchFolder::create(root.path()).unwrap();
        drop(scratch);
        let mut after = names(root.path());
        after.retain(|name| name != FOLDERS_LOCK);
        assert_eq!(after, before);
    }

    #[test]
    fn a_folder_that_is_removed_is_made_again_and_locked_again() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("work");
        let scratch = ScratchFolder::create(&parent).unwrap();
        assert!(!scratch.restore().unwrap());
        let own = scratch.path().to_owned();
        let lock = lock_of(&parent, scratch.name());
        let remove_lock = || fs::remove_file(&lock).unwrap();
        let remove_own = || fs::remove_dir_all(&own).unwrap();
        let remove_all = || fs::remove_dir_all(&parent).unwrap();
        for remove in [&remove_own as &dyn Fn(), &remove_lock, &remove_all] {
            remove();
            assert!(scratch.restore().unwrap());
            fs::write(own.join("frames"), "frames").unwrap();
            drop(ScratchFolder::create(&parent).unwrap());
            assert_eq!(names(&own), ["frames"]);
        }
        remove_all();
        scratch.probe().unwrap();
        assert_eq!(names(&own), [""; 0]);
        remove_all();
        fs::write(&parent, "no folder").unwrap();
        scratch.probe().unwrap_err();
    }

    #[test]
    fn many_begin_at_once() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let scratch = ScratchFolder::create(root.path()).unwrap();
                        let file = scratch.path().join("frames");
                        fs::write(&file, "frames").unwrap();
                        drop(ScratchFolder::create(root.path()).unwrap());
                        assert!(file.exists());
                    }
                });
            }
        });
        assert_eq!(names(root.path()), [FOLDERS_LOCK]);
    }
}
