//! The writer's watch over its open files. It refuses commits once a file at one of their paths was
//! removed or replaced, since SQLite would go on writing to the old file without an error; it saves
//! the data that it can, tells the operator, and bounds the log by the free disk space.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rusqlite::Connection;

use super::checkpoint;
use super::checkpoint::CheckpointRequests;
use super::schema::CHECKPOINT_PAGES;

/// The open files of a store.
#[derive(Debug)]
pub(super) struct StoreFiles {
    pub(super) log: CheckpointRequests,
    watch: FileWatch,
    /// A path to the open database that works even after its name was removed.
    open_database: PathBuf,
    /// Number of pages after which the writer itself runs a checkpoint.
    checkpoint_pages: u32,
    /// Whether a checkpoint succeeded since files were missing.
    is_saved: bool,
    /// Number of such attempts.
    tries: u32,
    /// Whether the missing files were logged.
    is_reported: bool,
}

/// Number of checkpoint attempts before the operator learns of missing files: a reader may block
/// them for a moment.
const TRIES: u32 = 8;
/// Minimum pages (1 MiB) for a checkpoint, however little space there is.
const CHECKPOINT_PAGES_MIN: u32 = 256;
const PAGE_BYTES: u64 = 4096;

impl StoreFiles {
    /// The files of the database at `path`, which a connection has open.
    pub(super) fn open(
        path: &Path,
        database: &File,
        log: CheckpointRequests,
    ) -> std::io::Result<Self> {
        let fd = database.as_raw_fd();
        Ok(Self {
            log,
            watch: FileWatch::open(path)?,
            // On Linux this path opens the file itself, even after its last name was removed: the
            // only way to copy a removed database out of the running process.
            open_database: format!("/proc/{}/fd/{fd}", std::process::id()).into(),
            checkpoint_pages: CHECKPOINT_PAGES,
            is_saved: false,
            tries: 0,
            is_reported: false,
        })
    }

    /// Why nothing may be committed at this time of the store's steady clock.
    pub(super) fn refusal(&mut self, conn: &Connection, now: Duration) -> Option<String> {
        if self.watch.check(now) {
            if self.watch.status().is_log_large {
                self.log.request_space();
            }
            self.limit_log(conn);
            self.report_missing(conn);
        }
        let gone = &self.watch.status().missing;
        (!gone.is_empty()).then(|| {
            format!(
                "{} removed or replaced while the store is served",
                gone.join(", ")
            )
        })
    }

    /// Limits the log to a part of the remaining space: restarted within it, the log cannot fill
    /// the disk however many changes come, as long as no reader blocks it.
    fn limit_log(&mut self, conn: &Connection) {
        let pages = checkpoint_pages(self.watch.status().space_bytes);
        if pages == self.checkpoint_pages {
            return;
        }
        match conn.pragma_update(None, "wal_autocheckpoint", pages) {
            Ok(()) => self.checkpoint_pages = pages,
            Err(error) => tracing::debug!(%error, "log size not limited yet"),
        }
    }

    /// Logs missing files once, with advice. First copies the log into the database, so that only the
    /// database can be missing.
    fn report_missing(&mut self, conn: &Connection) {
        let seen = self.watch.status();
        if seen.missing.is_empty() {
            if self.is_reported {
                tracing::info!("store files are back; accepting changes again");
            }
            (self.is_saved, self.tries, self.is_reported) = (false, 0, false);
            return;
        }
        // The log belongs to the removed files as well. With its contents in the database, one file
        // is enough to save everything, and if that one is still in place nothing is lost.
        if !self.is_saved {
            self.is_saved = checkpoint::run_checkpoint(conn);
            self.tries += 1;
        }
        if self.is_reported || !self.is_saved && self.tries < TRIES {
            return;
        }
        self.is_reported = true;
        let advice = self.advice();
        tracing::error!(
            files = seen.missing.join(", "),
            saved = self.is_saved,
            "files of the store were removed or replaced while it is served; changes are refused: {advice}"
        );
    }

    fn advice(&self) -> String {
        if self.watch.status().database_gone {
            return format!(
                "copy {} before you stop the service, for it is the database; then stop the service, put the copy \
                 in the place of the database, remove what lies beside it as -wal and -shm, and start again",
                self.open_database.display()
            );
        }
        if self.is_saved {
            return "restart the service; the database contains everything that was stored"
                .to_owned();
        }
        "stop the commands that read the store, then restart the service".to_owned()
    }

    /// Runs the last checkpoint: the database alone then contains the whole store, and no log remains
    /// that could contain removed texts.
    pub(super) fn run_last_checkpoint(&self, conn: &Connection) {
        if !checkpoint::run_checkpoint(conn) {
            tracing::warn!(
                "final checkpoint of the store failed: a copy of the database needs its -wal file too"
            );
        }
    }
}

/// Number of log pages for a checkpoint, given the space for database and log together.
fn checkpoint_pages(room_bytes: Option<u64>) -> u32 {
    let Some(room_bytes) = room_bytes else {
        return CHECKPOINT_PAGES;
    };
    // A quarter of the space for the log leaves the database room to grow by as much, twice over.
    // Example: 46 MiB left allow 2,944 pages, rounded down to 2,048 (8 MiB).
    let pages = u32::try_from(room_bytes / 4 / PAGE_BYTES).unwrap_or(u32::MAX);
    if pages >= CHECKPOINT_PAGES {
        return CHECKPOINT_PAGES;
    }
    // A power of two, so that it rarely changes with the space.
    (1_u32 << pages.max(1).ilog2()).max(CHECKPOINT_PAGES_MIN)
}

/// Maximum age of a check at a commit.
const FRESH: Duration = Duration::from_millis(250);
/// A log smaller than this is not worth a checkpoint for its space.
const LOG_BYTES_MIN: u64 = 256 << 10;

/// The files of an open store.
#[derive(Debug)]
struct FileWatch {
    database: OpenedFile,
    log: OpenedFile,
    others: Vec<OpenedFile>,
    /// Time of the last check, by the store's steady clock.
    checked_at: Option<Duration>,
    status: FileStatus,
}

/// A path, and the device and inode that were opened there.
#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    id: (u64, u64),
}

/// Result of a check of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileStatus {
    /// Names of the files that are missing or replaced.
    missing: Vec<String>,
    /// Whether the database itself is among them.
    database_gone: bool,
    /// Free bytes plus those of the log; `None` if the file system does not report them.
    space_bytes: Option<u64>,
    /// Whether the log takes half or more of the remaining space: the database may need as much to
    /// absorb it.
    is_log_large: bool,
}

impl FileWatch {
    /// The files of the database at `path`, whose log and index must exist.
    fn open(path: &Path) -> io::Result<Self> {
        // SQLite follows a link to the database, and keeps its own files beside the target.
        let real = fs::canonicalize(path)?;
        Ok(Self {
            database: OpenedFile::at(path.to_owned())?,
            log: OpenedFile::beside(&real, "-wal")?,
            others: vec![
                OpenedFile::beside(&real, "-shm")?,
                OpenedFile::beside(path, ".lock")?,
            ],
            checked_at: None,
            status: FileStatus::default(),
        })
    }

    /// Checks, unless the last check is fresh at `now`; returns whether it did.
    fn check(&mut self, now: Duration) -> bool {
        // Several system calls are too many for each commit of a busy store. Changes of a quarter of a
        // second may go into a removed file, and the checkpoint below still saves them.
        let fresh = self
            .checked_at
            .is_some_and(|looked| now.saturating_sub(looked) < FRESH);
        if !fresh {
            self.status = self.read_status();
            self.checked_at = Some(now);
        }
        !fresh
    }

    /// Result of the last check.
    const fn status(&self) -> &FileStatus {
        &self.status
    }

    fn read_status(&self) -> FileStatus {
        let all = [&self.database, &self.log].into_iter().chain(&self.others);
        let gone = all.filter(|file| file.metadata().is_none());
        let names = gone.filter_map(|file| file.path.file_name());
        let log_bytes = self.log.metadata().map_or(0, |found| found.len());
        let free_bytes = self.free_bytes();
        FileStatus {
            missing: names.map(|name| name.display().to_string()).collect(),
            database_gone: self.database.metadata().is_none(),
            space_bytes: free_bytes.map(|free| free.saturating_add(log_bytes)),
            is_log_large: log_bytes >= LOG_BYTES_MIN
                && free_bytes.is_some_and(|free| log_bytes >= free / 2),
        }
    }

    /// A file system that does not report free space still reports when it is full.
    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.database.path).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize.max(1)))
    }
}

impl OpenedFile {
    /// The file whose name is that of `path` with this suffix.
    fn beside(path: &Path, suffix: &str) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Self::at(name.into())
    }

    fn at(path: PathBuf) -> io::Result<Self> {
        let id = file_id(&fs::metadata(&path)?);
        Ok(Self { path, id })
    }

    /// Metadata of the file at the path, if it is the one that was opened.
    fn metadata(&self) -> Option<Metadata> {
        fs::metadata(&self.path)
            .ok()
            .filter(|found| file_id(found) == self.id)
    }
}

fn file_id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_by_the_room_that_is_left() {
        for (room_bytes, pages) in [
            (None, CHECKPOINT_PAGES),
            (Some(u64::MAX), CHECKPOINT_PAGES),
            (Some(1 << 30), CHECKPOINT_PAGES),
            // 11.5 MiB are 2,944 pages.
            (Some(46 << 20), 2_048),
            (Some(0), CHECKPOINT_PAGES_MIN),
        ] {
            assert_eq!(checkpoint_pages(room_bytes), pages, "{room_bytes:?}");
        }
    }

    #[test]
    fn files_that_are_removed_replaced_or_behind_a_link_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.db");
        let link = folder.path().join("link.db");
        for name in ["real.db", "real.db-wal", "real.db-shm", "link.db.lock"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let presence = FileWatch::open(&link).unwrap();
        let seen = presence.read_status();
        assert!(seen.missing.is_empty() && !seen.database_gone && !seen.is_log_large);
        assert!(seen.space_bytes.is_some());
        // Kept open under another name, as a process keeps it: its number is not given to the next file.
        fs::rename(&real, folder.path().join("away.db")).unwrap();
        fs::remove_file(folder.path().join("real.db-wal")).unwrap();
        let seen = presence.read_status();
        assert_eq!(seen.missing, ["link.db", "real.db-wal"]);
        assert!(seen.database_gone);
        fs::write(&real, "another").unwrap();
        assert!(presence.read_status().database_gone);
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
        let mut presence = FileWatch::open(&path).unwrap();
        let begun = Duration::from_secs(7);
        assert!(presence.check(begun));
        fs::remove_file(&path).unwrap();
        let almost = begun + FRESH - Duration::from_millis(1);
        assert!(!presence.check(almost) && !presence.status().database_gone);
        assert!(presence.check(begun + FRESH) && presence.status().database_gone);
    }
}
