//! The writer's view of its files: it refuses to commit when they are not those at their paths any more, saves
//! what it can, and says which of them the checkpointer has to look after.

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
    /// Where the open database can be read although its name is gone.
    open_database: PathBuf,
    /// Pages after which the writer carries over the log itself.
    checkpoint_pages: u32,
    /// Whether the log was carried over since files were missed.
    saved: bool,
    /// How often that was tried.
    tries: u32,
    /// Whether the missing files were logged.
    told: bool,
}

/// Attempts to carry the log over before the operator learns of missing files: a reader may be in the way for a
/// moment.
const TRIES: u32 = 8;
/// Minimum pages (1 MiB) at which the log is carried over, however little room there is.
const CHECKPOINT_PAGES_MIN: u32 = 256;
const PAGE_BYTES: u64 = 4096;

impl Files {
    /// The files of the database at `path`, which a connection has opened.
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
                "{} removed or replaced while the store serves",
                gone.join(", ")
            )
        })
    }

    /// Keeps the log to a part of the room that is left: begun anew within it, it cannot fill the disk however
    /// many changes come, as long as no reader holds it up.
    fn bound_log(&mut self, conn: &Connection) {
        let pages = checkpoint_pages(self.presence.seen().room_bytes);
        if pages == self.checkpoint_pages {
            return;
        }
        match conn.pragma_update(None, "wal_autocheckpoint", pages) {
            Ok(()) => self.checkpoint_pages = pages,
            Err(error) => tracing::debug!(%error, "log not bounded yet"),
        }
    }

    /// Tells the operator once; what the log holds is brought into the database first, so that only the
    /// database can be missed.
    fn tell(&mut self, conn: &Connection) {
        let seen = self.presence.seen();
        if seen.gone.is_empty() {
            if self.told {
                tracing::info!("the files of the store are back; changes are taken again");
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
            "files of the store were removed or replaced while it serves, so that no change is taken: {advice}"
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
            return "restart the service; all that was stored is in the database".to_owned();
        }
        "stop the commands that read the store, then restart the service".to_owned()
    }

    /// At the end: the database alone is the whole store, and no log is left in which removed texts could be found.
    pub(super) fn carry_over_last(&self, conn: &Connection) {
        if !carrying::carry_over(conn) {
            tracing::warn!(
                "the store's log was not carried over at the end: a copy of the database needs its -wal file too"
            );
        }
    }
}

/// Pages of the log after which it is carried over, where database and log have this room together.
fn checkpoint_pages(room_bytes: Option<u64>) -> u32 {
    let Some(room_bytes) = room_bytes else {
        return CHECKPOINT_PAGES;
    };
    let pages = u32::try_from(room_bytes / 4 / PAGE_BYTES).unwrap_or(u32::MAX);
    if pages >= CHECKPOINT_PAGES {
        return CHECKPOINT_PAGES;
    }
    // A power of two, so that it seldom changes while the room does.
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
