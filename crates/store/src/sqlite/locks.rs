//! The locks by which one process serves a store at a time.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::schema::{make_folder, unavailable};
use crate::OpenError;

/// Locks the store against a second serving process for as long as the returned files are open. The
/// kernel releases the locks when the process ends, in whatever way.
pub(super) fn lock(path: &Path) -> Result<StoreLocks, OpenError> {
    make_folder(path)?;
    // Two locks: the one on the database keeps a second process out even if somebody removes the
    // `.lock` file, and the `.lock` file serves where the database does not exist yet or cannot be
    // locked beside SQLite's own locks.
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let beside = File::create(PathBuf::from(name)).map_err(unavailable)?;
    try_lock(&beside, path)?;
    Ok(StoreLocks {
        database: lock_database(path)?,
        beside,
    })
}

/// Locks the database itself, if it exists. Never creates it: SQLite removes the log beside an empty
/// database.
fn lock_database(path: &Path) -> Result<Option<File>, OpenError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(unavailable)?,
    };
    if locks_are_apart(&file) {
        try_lock(&file, path)?;
    }
    Ok(Some(file))
}

/// Whether a lock on the database leaves SQLite's locks alone. On local file systems of Linux, locks of
/// `flock(2)` (ours) and of `fcntl(2)` (SQLite's) do not see each other. Over a network the kernel maps
/// one to the other, so ours would lock out SQLite itself.
#[cfg(target_os = "linux")]
fn locks_are_apart(file: &File) -> bool {
    // NFS, SMB, CIFS, SMB2, 9P and Ceph, by the magic numbers of `statfs(2)`.
    const OVER_A_NETWORK: [u64; 6] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x00c3_6400,
    ];
    // The kernel's type of this field differs between machines; the numbers fit into 32 bits.
    rustix::fs::fstatfs(file)
        .is_ok_and(|found| !OVER_A_NETWORK.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
fn locks_are_apart(_file: &File) -> bool {
    false
}

/// Locks of a serving process. The database is locked too, so that nobody who removes the file beside
/// it lets a second process in.
#[derive(Debug)]
pub(super) struct StoreLocks {
    /// Must be closed after every connection: closing any descriptor of a file drops the locks that SQLite
    /// has on it (<https://sqlite.org/howtocorrupt.html>, 2.2).
    database: Option<File>,
    beside: File,
}

impl StoreLocks {
    /// The open database, locked now if it was made since.
    pub(super) fn open_database(&mut self, path: &Path) -> Result<&File, OpenError> {
        let locked = match self.database.take() {
            None => lock_database(path)?,
            locked => locked,
        };
        let locked = locked.ok_or_else(|| OpenError::Missing(path.to_owned()))?;
        Ok(&*self.database.insert(locked))
    }
}

/// Unlocks explicitly instead of leaving it to the close. A child process that is starting has copies of
/// all open files until its `exec`: after a close alone the store would stay locked until then, and this
/// process could not open it again.
impl Drop for StoreLocks {
    fn drop(&mut self) {
        for file in [Some(&self.beside), self.database.as_ref()]
            .into_iter()
            .flatten()
        {
            if let Err(error) = file.unlock() {
                tracing::warn!(%error, "store not unlocked before it is closed");
            }
        }
    }
}

fn try_lock(file: &File, path: &Path) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(unavailable(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::schema::open_writer;
    use super::*;
    use crate::SqliteOptions;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_database_is_locked_although_the_file_beside_it_is_removed_and_never_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut locks = lock(&path).unwrap();
        assert!(locks.open_database(&path).is_err() && !path.exists());
        drop(open_writer(&path, &SqliteOptions::default()).unwrap());
        locks.open_database(&path).unwrap();
        fs::remove_file(folder.path().join("store.db.lock")).unwrap();
        let second = lock(&path);
        assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
        drop(locks);
        lock(&path).unwrap();
    }

    #[test]
    fn a_closed_store_is_unlocked_although_a_starting_child_has_its_files_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(open_writer(&path, &SqliteOptions::default()).unwrap());
        let locks = lock(&path).unwrap();
        // As `fork` does: other descriptors of the same open files.
        let _child =
            [&locks.beside, locks.database.as_ref().unwrap()].map(|file| file.try_clone().unwrap());
        let second = lock(&path);
        assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
        drop(locks);
        lock(&path).unwrap();
    }
}
