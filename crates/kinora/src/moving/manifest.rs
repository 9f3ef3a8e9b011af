//! `export.json`: the contents of an export, and the data to verify it. It is written last.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::parts::Lines;
use crate::backup::manifest::Tasks;
use crate::cli::MovedResults;
use crate::count::count;
use crate::failure::Failure;
use crate::manifest_file::{ManifestFile, told};

/// The version of this format.
pub(super) const FORMAT: u32 = 1;
const FILE: ManifestFile = ManifestFile {
    name: "export.json",
    format: FORMAT,
    whole: "export that `kinora export` has finished",
    newer: "import it with the version that made it, or a newer one",
};

/// The contents of an export.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Random for each export: an import resumes only with the same one.
    pub(super) id: String,
    /// Version of the program that made the export.
    pub(super) kinora: String,
    /// Start of the export, in Unix seconds.
    pub(super) made_at: u64,
    pub(super) tasks: Tasks,
    /// Number of tasks that could not be read, and are omitted.
    pub(super) unreadable: u64,
    pub(super) results: Results,
    pub(super) parts: Parts,
}

/// The files of tasks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Results {
    pub(super) mode: MovedResults,
    /// Their original location, for people.
    pub(super) from: String,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Number of results that were missing, and are omitted.
    pub(super) missing: u64,
}

/// The files of the export itself.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    pub(super) store: Lines,
    pub(super) tasks: Lines,
    pub(super) keys: Lines,
    pub(super) chores: Lines,
    pub(super) files: Lines,
}

impl Manifest {
    /// Writes the manifest into `folder`, synced.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        FILE.write(self, folder)
    }

    /// Reads the manifest of the export in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        FILE.read(folder)
    }

    /// For programs, with the folder and notes for the operator.
    pub(super) fn json(&self, folder: &Path, notes: &[String]) -> String {
        format!("{:#}\n", told(self, folder, notes))
    }

    /// The contents, for people.
    pub(super) fn contents(&self) -> String {
        let files = match self.results.mode {
            MovedResults::Reference => {
                format!("no results (they stay in {})", self.results.from)
            }
            MovedResults::Copy => format!(
                "{} of results and references ({} MiB)",
                count(self.results.files, "file"),
                self.results.bytes >> 20
            ),
        };
        format!(
            "{} ({} unfinished), {}, the signing key and {files}",
            count(self.tasks.all(), "task"),
            self.tasks.unfinished,
            count(self.parts.keys.lines, "key"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let lines = || Lines {
            lines: 2,
            bytes: 40,
            sha256: "ab".repeat(32),
        };
        Manifest {
            format: FORMAT,
            id: "00".to_owned(),
            kinora: "0.1.0".to_owned(),
            made_at: 1_800_000_000,
            tasks: Tasks {
                unfinished: 2,
                completed: 3,
                failed: 1,
                expired: 4,
            },
            unreadable: 0,
            results: Results {
                mode: MovedResults::Copy,
                from: "/srv/results".to_owned(),
                files: 9,
                bytes: 5 << 20,
                missing: 0,
            },
            parts: Parts {
                store: lines(),
                tasks: lines(),
                keys: lines(),
                chores: lines(),
                files: lines(),
            },
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        manifest().write(folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest());
    }

    #[test]
    fn its_contents_are_told() {
        let text = manifest().contents();
        for part in [
            "10 tasks (2 unfinished)",
            "2 keys",
            "9 files of results",
            "5 MiB",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let value: serde_json::Value =
            serde_json::from_str(&manifest().json(Path::new("/e"), &[])).unwrap();
        assert_eq!(
            (&value["path"], &value["tasks"]["completed"]),
            (&"/e".into(), &3.into())
        );
    }
}
