//! The writer's view of its files: it refuses to commit when they are not those at their paths any more, saves
//! what it can, and says which of them the checkpointer has to look after.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::checkpoint::{self, Log};
use super::presence::Presence;
use super::schema::Locks;

/// The open files of a store.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) log: Log,
    presence: Presence,
    /// Where the open database can be read although its name is gone.
    open_database: PathBuf,
    /// Whether the log was carried over since files were missed.
    saved: bool,
    /// Whether the operator was told what is missing.
    told: bool,
}

impl Files {
    /// The files of the database at `path`, which a connection has opened.
    pub(super) fn of(path: &Path, locks: &Locks, log: Log) -> std::io::Result<Self> {
        let fd = locks.database.as_raw_fd();
        Ok(Self {
            log,
            presence: Presence::of(path)?,
            open_database: format!("/proc/{}/fd/{fd}", std::process::id()).into(),
            saved: false,
            told: false,
        })
    }

    /// Why nothing may be committed now.
    pub(super) fn refusal(&mut self, conn: &Connection) -> Option<String> {
        if self.presence.look() {
            if self.presence.seen().crowded {
                self.log.make_room();
            }
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

    /// Tells the operator once; what the log holds is brought into the database first, so that only the
    /// database can be missed.
    fn tell(&mut self, conn: &Connection) {
        let seen = self.presence.seen();
        if seen.gone.is_empty() {
            if self.told {
                tracing::info!("the files of the store are back; changes are taken again");
            }
            (self.saved, self.told) = (false, false);
            return;
        }
        if !self.saved {
            self.saved = checkpoint::carry_over(conn);
        }
        if self.told {
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
        if !checkpoint::carry_over(conn) {
            tracing::warn!(
                "the store's log was not carried over at the end: a copy of the database needs its -wal file too"
            );
        }
    }
}
