//! The last backup, as `kinora doctor` tells of it: a small file in the data folder.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// In the data folder.
pub(crate) const FILE: &str = "last-backup.json";

/// What is known of backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The last that was made to its end.
    pub(crate) whole: Option<Made>,
    /// One that was begun and has not ended.
    pub(crate) begun: Option<Made>,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// When it was begun, in Unix seconds.
    pub(crate) at: u64,
    pub(crate) to: PathBuf,
}

impl Record {
    /// Reads the record; `None` where there is none that can be read.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn write(&self, data: &Path) -> io::Result<()> {
        let path = data.join(FILE);
        let staged = data.join(format!("{FILE}.{}", std::process::id()));
        fs::write(&staged, format!("{}\n", serde_json::to_string(self)?))?;
        // For the service's user to read although another has made the backup; only root can give it away.
        if let Ok(owner) = fs::metadata(data) {
            let _ = std::os::unix::fs::chown(&staged, Some(owner.uid()), Some(owner.gid()));
        }
        fs::rename(&staged, &path)
    }
}

/// The record of a backup in the making. A data folder that cannot be written to keeps none: that is no
/// reason to make no backup.
#[derive(Debug)]
pub(super) struct Last<'a> {
    data: &'a Path,
    record: Record,
}

impl<'a> Last<'a> {
    /// Notes that a backup is begun.
    pub(super) fn begin(data: &'a Path, to: &Path, at: u64) -> Self {
        let mut record = Record::read(data).unwrap_or_default();
        record.begun = Some(Made {
            at,
            to: to.to_owned(),
        });
        let _ = record.write(data);
        Self { data, record }
    }

    /// Notes that it is whole.
    pub(super) fn end(mut self) {
        self.record.whole = self.record.begun.take();
        let _ = self.record.write(self.data);
    }
}
