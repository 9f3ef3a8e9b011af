//! The last backup, for `kinora doctor`: a small file in the data folder.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// In the data folder.
pub(crate) const FILE: &str = "last-backup.json";

/// The record of backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The last complete one.
    pub(crate) whole: Option<Made>,
    /// One that was started and has not ended.
    pub(crate) begun: Option<Made>,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// Its start, in Unix seconds.
    pub(crate) at: u64,
    pub(crate) to: PathBuf,
}

impl Record {
    /// Reads the record; `None` if it is missing or unreadable.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn write(&self, data: &Path) -> io::Result<()> {
        let path = data.join(FILE);
        let staged = data.join(format!("{FILE}.{}", std::process::id()));
        fs::write(&staged, format!("{}\n", serde_json::to_string(self)?))?;
        // Lets the service's user read it even if another user made the backup; only root can give
        // it away.
        if let Ok(owner) = fs::metadata(data) {
            let _ = std::os::unix::fs::chown(&staged, Some(owner.uid()), Some(owner.gid()));
        }
        fs::rename(&staged, &path)
    }
}

/// The record of a backup in progress. If the data folder is not writable, there is no record, but
/// the backup proceeds.
#[derive(Debug)]
pub(super) struct Last<'a> {
    data: &'a Path,
    record: Record,
}

impl<'a> Last<'a> {
    /// Records that a backup has started.
    pub(super) fn begin(data: &'a Path, to: &Path, at: u64) -> Self {
        let mut record = Record::read(data).unwrap_or_default();
        record.begun = Some(Made {
            at,
            to: to.to_owned(),
        });
        let _ = record.write(data);
        Self { data, record }
    }

    /// Records that the backup is complete.
    pub(super) fn end(mut self) {
        self.record.whole = self.record.begun.take();
        let _ = self.record.write(self.data);
    }
}
