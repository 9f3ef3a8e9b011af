//! Checks that the files that this process has open are still those at their paths. If a file is
//! removed or replaced, all later changes are lost with it, and SQLite keeps writing to it without
//! an error. So the writer checks before it commits, and refuses.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum age of a check at a commit.
const FRESH: Duration = Duration::from_millis(250);
/// A log smaller than this is not worth a checkpoint for its space.
const LOG_BYTES_MIN: u64 = 256 << 10;

/// The files of an open store.
#[derive(Debug)]
pub(super) struct Presence {
    database: Opened,
    log: Opened,
    others: Vec<Opened>,
    /// Time of the last check, by the store's steady clock.
    looked: Option<Duration>,
    seen: Seen,
}

/// A path, and the device and inode that were opened there.
#[derive(Debug)]
struct Opened {
    path: PathBuf,
    id: (u64, u64),
}

/// Result of the last check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Names of the files that are missing or replaced.
    pub(super) gone: Vec<String>,
    /// Whether the database itself is among them.
    pub(super) database_gone: bool,
    /// Free bytes plus those of the log; `None` if the file system does not report them.
    pub(super) room_bytes: Option<u64>,
    /// Whether the log takes half or more of the remaining space: the database may need as much to
    /// absorb it.
    pub(super) crowded: bool,
}

impl Presence {
    /// The files of the database at `path`, whose log and index must exist.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let beside = |path: &Path, suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            Opened::at(name.into())
        };
        // SQLite follows a link to the database, and keeps its own files beside the target.
        let real = fs::canonicalize(path)?;
        Ok(Self {
            database: Opened::at(path.to_owned())?,
            log: beside(&real, "-wal")?,
            others: vec![beside(&real, "-shm")?, beside(path, ".lock")?],
            looked: None,
            seen: Seen::default(),
        })
    }

    /// Checks, unless the last check is fresh at `now`; returns whether it did.
    pub(super) fn look(&mut self, now: Duration) -> bool {
        let is_fresh = |looked| now.saturating_sub(looked) < FRESH;
        let fresh = self.looked.is_some_and(is_fresh);
        if !fresh {
            self.seen = self.see();
            self.looked = Some(now);
        }
        !fresh
    }

    /// Result of the last check.
    pub(super) const fn seen(&self) -> &Seen {
        &self.seen
    }

    fn see(&self) -> Seen {
        let all = [&self.database, &self.log].into_iter().chain(&self.others);
        let gone = all.filter(|file| file.metadata().is_none());
        let name = |file: &Opened| file.path.file_name().map(|name| name.display().to_string());
        let log_bytes = self.log.metadata().map_or(0, |found| found.len());
        let free_bytes = self.free_bytes();
        Seen {
            gone: gone.filter_map(name).collect(),
            database_gone: self.database.metadata().is_none(),
            room_bytes: free_bytes.map(|free| free.saturating_add(log_bytes)),
            crowded: log_bytes >= LOG_BYTES_MIN
                && free_bytes.is_some_and(|free| log_bytes >= free / 2),
        }
    }

    /// A file system that does not report free space still reports when it is full.
    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.database.path).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize.max(1)))
    }
}

impl Opened {
    fn at(path: PathBuf) -> io::Result<Self> {
        let id = id(&fs::metadata(&path)?);
        Ok(Self { path, id })
    }

    /// Metadata of the file at the path, if it is the one that was opened.
    fn metadata(&self) -> Option<Metadata> {
        fs::metadata(&self.path)
            .ok()
            .filter(|found| id(found) == self.id)
    }
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_removed_replaced_or_behind_a_link_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.db");
        let link = folder.path().join("link.db");
        for name in ["real.db", "real.db-wal", "real.db-shm", "link.db.lock"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let presence = Presence::of(&link).unwrap();
        let seen = presence.see();
        assert!(seen.gone.is_empty() && !seen.database_gone && !seen.crowded);
        assert!(seen.room_bytes.is_some());
        // Kept open under another name, as a process keeps it: its number is not given to the next file.
        fs::rename(&real, folder.path().join("away.db")).unwrap();
        fs::remove_file(folder.path().join("real.db-wal")).unwrap();
        let seen = presence.see();
        assert_eq!(seen.gone, ["link.db", "real.db-wal"]);
        assert!(seen.database_gone);
        fs::write(&real, "another").unwrap();
        assert!(presence.see().database_gone);
    }

    #[test]
    fn a_look_is_fresh_for_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.db");
        for name in [
            "kinora.db",
            "kinora.db-wal",
            "kinora.db-shm",
            "kinora.db.lock",
        ] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let mut presence = Presence::of(&path).unwrap();
        let begun = Duration::from_secs(7);
        assert!(presence.look(begun));
        fs::remove_file(&path).unwrap();
        let almost = begun + FRESH - Duration::from_millis(1);
        assert!(!presence.look(almost) && !presence.seen().database_gone);
        assert!(presence.look(begun + FRESH) && presence.seen().database_gone);
    }
}
