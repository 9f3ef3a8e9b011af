//! The writer's view of its files: it refuses to commit if the files at their paths have changed,
//! saves the data that it can, and tells the checkpointer which files need attention.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::carrying;
use super::checkpoint::Log;
use super::presence::Presence;
use super::schema::CHECKPOINT_PAGES;

/// The open files of a store.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) log: Log,
    presence: Presence,
    /// A path to the open database even after its name is gone.
    open_database: PathBuf,
    /// Number of pages after which the writer itself runs a checkpoint.
    checkpoint_pages: u32,
    /// Whether a checkpoint succeeded since files were missing.
    saved: bool,
    /// Number of tries.
    tries: u32,
    /// Whether the missing files were logged.
    told: bool,
}

/// Number of checkpoint attempts before the operator learns of missing files: a reader may block
/// them for a moment.
const TRIES: u32 = 8;
/// Minimum pages (1 MiB) for a checkpoint, however little space there is.
const CHECKPOINT_PAGES_MIN: u32 = 256;
const PAGE_BYTES: u64 = 4096;

impl Files {
    /// The files of the database at `path`, which a connection has open.
    pub(super) fn of(path: &Path, database: &File, log: Log) -> std::io::Result<Self> {
        let fd = database.as_raw_fd();
        Ok(Self {
            log,
            presence: Presence::of(path)?,
            open_database: format!("/proc/{}/fd/{fd}", std::process::id()).into(),
            checkpoint_pages: CHECKPOINT_PAGES,
            saved: false,
            tries: 0,
            told: false,
        })
    }

    /// Why nothing may be committed at this time of the store's steady clock.
    pub(super) fn refusal(&mut self, conn: &Connection, now: Duration) -> Option<String> {
        if self.presence.look(now) {
            if self.presence.seen().crowded {
                self.log.make_room();
            }
            self.bound_log(conn);
            self.tell(conn);
        }
        let gone = &self.presence.seen().gone;
        (!gone.is_empty()).then(|| {
            format!(
                "{} removed or replaced while the store is served",
                gone.join(", ")
            )
        })
    }

    /// Limits the log to a part of the remaining space: restarted within it, the log cannot fill
    /// the disk however many changes come, as long as no reader blocks it.
    fn bound_log(&mut self, conn: &Connection) {
        let pages = checkpoint_pages(self.presence.seen().room_bytes);
        if pages == self.checkpoint_pages {
            return;
        }
        match conn.pragma_update(None, "wal_autocheckpoint", pages) {
            Ok(()) => self.checkpoint_pages = pages,
            Err(error) => tracing::debug!(%error, "log size not limited yet"),
        }
    }

    /// Tells the operator once; copies the log into the database first, so that only the database
    /// can be missing.
    fn tell(&mut self, conn: &Connection) {
        let seen = self.presence.seen();
        if seen.gone.is_empty() {
            if self.told {
                tracing::info!("store files are back; accepting changes again");
            }
            (self.saved, self.tries, self.told) = (false, 0, false);
            return;
        }
        if !self.saved {
            self.saved = carrying::carry_over(conn);
            self.tries += 1;
        }
        if self.told || !self.saved && self.tries < TRIES {
            return;
        }
        self.told = true;
        let advice = self.advice();
        tracing::error!(
            files = seen.gone.join(", "),
            saved = self.saved,
            "files of the store were removed or replaced while it is served; changes are refused: {advice}"
        );
    }

    fn advice(&self) -> String {
        if self.presence.seen().database_gone {
            return format!(
                "copy {} before you stop the service, for it is the database; then stop the service, put the copy \
                 in the place of the database, remove what lies beside it as -wal and -shm, and start again",
                self.open_database.display()
            );
        }
        if self.saved {
            return "restart the service; the database contains everything that was stored"
                .to_owned();
        }
        "stop the commands that read the store, then restart the service".to_owned()
    }

    /// At the end: leaves the whole store in the database, and no log that could contain removed
    /// texts.
    pub(super) fn carry_over_last(&self, conn: &Connection) {
        if !carrying::carry_over(conn) {
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
    let pages = u32::try_from(room_bytes / 4 / PAGE_BYTES).unwrap_or(u32::MAX);
    if pages >= CHECKPOINT_PAGES {
        return CHECKPOINT_PAGES;
    }
    // A power of two, so that it rarely changes with the space.
    (1_u32 << pages.max(1).ilog2()).max(CHECKPOINT_PAGES_MIN)
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
}
