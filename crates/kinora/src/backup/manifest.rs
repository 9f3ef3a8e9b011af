//! `backup.json`: the contents of a backup, and the data to verify it. It is written last, so a
//! folder without it is no backup.

use std::path::{Path, PathBuf};

use kinora_blobs::measure_file;
use kinora_contract::{StoredFile, TaskId};
use kinora_store::BackupCounts;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::ResultsMode;
use crate::failure::Failure;
use crate::manifest_file::{ManifestFile, report_json};
use crate::output::count;

/// The version of this format.
pub(crate) const FORMAT: u32 = 1;
const FILE: ManifestFile = ManifestFile {
    name: "backup.json",
    format: FORMAT,
    whole: "backup that `kinora backup` has finished",
    newer: "restore it with the program that made it, or a newer one",
};

/// The contents of a backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupManifest {
    pub(crate) format: u32,
    /// Version of the program that made the backup.
    pub(crate) kinora: String,
    /// Start of the backup, in Unix seconds.
    pub(crate) made_at: u64,
    /// Schema version of the database.
    pub(crate) schema: u32,
    pub(crate) tasks: TaskCounts,
    pub(crate) keys: u64,
    pub(crate) database: FileDigest,
    /// Present if the database has no key, as in earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signing_key: Option<FileDigest>,
    pub(crate) results: BackupResults,
    /// Files of drafts and unfinished tasks, whose sizes and hashes the database does not have.
    pub(crate) references: Vec<StoredFile>,
}

/// A file of the backup itself.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileDigest {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Numbers of tasks by state.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskCounts {
    pub(crate) unfinished: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) expired: u64,
}

/// The files of tasks in a backup. The database has the lengths and hashes of results.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupResults {
    pub(crate) mode: ResultsMode,
    /// Original location of the results.
    pub(crate) from: PathBuf,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Tasks that were deleted or expired during the backup; some of their files may be absent.
    pub(crate) gone: Vec<TaskId>,
    /// Keys of uploaded files that were deleted or expired during the backup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone_uploads: Vec<String>,
    /// Number of tasks whose rows cannot be read, and whose files are not in the backup.
    pub(crate) unreadable: u64,
}

impl FileDigest {
    /// Reads and measures the file at `path`.
    pub(crate) fn measure(path: &Path) -> Result<Self, Failure> {
        let (bytes, sha256) =
            measure_file(path).map_err(|error| Failure::at(path, "cannot be read back", error))?;
        Ok(Self { bytes, sha256 })
    }
}

impl TaskCounts {
    pub(crate) const fn from_counts(counts: &BackupCounts) -> Self {
        Self {
            unfinished: counts.unfinished,
            completed: counts.completed,
            failed: counts.failed,
            expired: counts.expired,
        }
    }

    pub(crate) const fn total(&self) -> u64 {
        self.unfinished + self.completed + self.failed + self.expired
    }
}

impl BackupManifest {
    /// Writes the manifest into `folder`, synced.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        FILE.write(self, folder)
    }

    /// Reads the manifest of the backup in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        FILE.read(folder)
    }

    /// Formats the manifest as JSON, with the number of references instead of their list.
    pub(super) fn json(&self, to: &Path, notes: &[String]) -> String {
        // The references may be 10,000 lines that only a restore needs; a script gets their number.
        let mut value = report_json(self, to, notes);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("references".to_owned(), json!(self.references.len()));
        }
        format!("{value:#}\n")
    }

    /// Describes the backup in a sentence for people.
    pub(super) fn summary(&self, to: &Path, notes: &[String]) -> String {
        let files = match self.results.mode {
            ResultsMode::Reference => {
                format!("no results (they stay in {})", self.results.from.display())
            }
            mode => format!(
                "{} of results and references ({} MiB, by {})",
                count(self.results.files, "file"),
                self.results.bytes >> 20,
                mode.name()
            ),
        };
        let mut text: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
        text.push_str(&format!(
            "Backed up {} ({} unfinished), {}, the signing key and {files} to {}; verified.\n",
            count(self.tasks.total(), "task"),
            self.tasks.unfinished,
            count(self.keys, "key"),
            to.display(),
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> BackupManifest {
        let part = || FileDigest {
            bytes: 4096,
            sha256: "ab".repeat(32),
        };
        BackupManifest {
            format: FORMAT,
            kinora: "0.1.0".to_owned(),
            made_at: 1_800_000_000,
            schema: 8,
            tasks: TaskCounts {
                unfinished: 2,
                completed: 3,
                failed: 1,
                expired: 4,
            },
            keys: 1,
            database: part(),
            signing_key: Some(part()),
            results: BackupResults {
                mode: ResultsMode::Link,
                from: "/srv/results".into(),
                files: 9,
                bytes: 5 << 20,
                gone: Vec::new(),
                gone_uploads: Vec::new(),
                unreadable: 0,
            },
            references: Vec::new(),
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        manifest().write(folder.path()).unwrap();
        assert_eq!(BackupManifest::read(folder.path()).unwrap(), manifest());
    }

    #[test]
    fn the_closing_line_says_what_is_backed_up() {
        let notes = ["2 tasks were deleted".to_owned()];
        let text = manifest().summary(Path::new("/backups/a"), &notes);
        for part in [
            "note: 2 tasks were deleted\n",
            "10 tasks (2 unfinished)",
            "9 files",
            "5 MiB, by link",
            "/backups/a",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let value: serde_json::Value =
            serde_json::from_str(&manifest().json(Path::new("/backups/a"), &notes)).unwrap();
        assert_eq!(value["path"], "/backups/a");
        assert_eq!(value["tasks"]["completed"], 3);
    }
}
