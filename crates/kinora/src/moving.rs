//! `kinora export` and `kinora import`: move a service to a task store and result store of any
//! kind, through a folder. It has one file per table, one row per line, so that none must fit into
//! memory as a whole, and `export.json` with its contents, which is written last.

pub(crate) mod export;
pub(crate) mod import;

use std::collections::BTreeMap;
use std::fs::File;
use std::future::Future;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use kinora_contract::StoredFile;
use kinora_store::{CopiedRow, CopiedTable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::backup::manifest::{FileDigest, TaskCounts};
use crate::cli::MovedResults;
use crate::failure::Failure;
use crate::manifest_file::{ManifestFile, open_plain, report_json};
use crate::output::count;

/// Maximum number of concurrent transfers of files: a remote store answers each with a delay.
const TRANSFERS_MAX: usize = 8;

/// Transfers in progress.
#[derive(Debug)]
struct FileTransfers<T>(JoinSet<Result<T, Failure>>);

impl<T: Send + 'static> FileTransfers<T> {
    fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Starts a transfer. If there are enough already, waits for another one first, and returns its
    /// result.
    async fn start(
        &mut self,
        transfer: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        // The caller waits here, and not inside the transfers. So it reads rows only as fast as
        // their files are copied, and an export of a million tasks never holds more than eight of
        // them in memory.
        let ended = if self.0.len() < TRANSFERS_MAX {
            None
        } else {
            self.next().await?
        };
        self.0.spawn(transfer);
        Ok(ended)
    }

    /// The result of a transfer in progress; `None` if there are no more.
    async fn next(&mut self) -> Result<Option<T>, Failure> {
        match self.0.join_next().await {
            None => Ok(None),
            Some(Ok(ended)) => ended.map(Some),
            Some(Err(error)) => Err(Failure::because("A file could not be transferred", error)),
        }
    }
}

/// The version of this format.
const FORMAT: u32 = 4;
const FILE: ManifestFile = ManifestFile {
    name: "export.json",
    format: FORMAT,
    whole: "export that `kinora export` has finished",
    newer: "import it with the version that made it, or a newer one",
};
/// The list of files of tasks and uploads.
const FILES: &str = "files.jsonl";

/// The contents of an export.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportManifest {
    format: u32,
    /// Random for each export: an import resumes only with the same one.
    id: String,
    /// Version of the program that made the export.
    kinora: String,
    /// Start of the export, in Unix seconds.
    made_at: u64,
    tasks: TaskCounts,
    /// Number of API keys.
    keys: u64,
    /// Number of tasks that could not be read, and are omitted.
    unreadable: u64,
    results: ExportedResults,
    /// The files of the export itself, by name.
    parts: BTreeMap<String, FileDigest>,
}

/// The files of tasks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportedResults {
    mode: MovedResults,
    /// Their original location, for people.
    from: String,
    files: u64,
    bytes: u64,
    /// Number of results that were missing, and are omitted.
    missing: u64,
}

/// The name of a table's file.
fn file_name(table: &CopiedTable) -> String {
    format!("{}.jsonl", table.name)
}

impl ExportManifest {
    /// Writes the manifest into `folder`, synced.
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        FILE.write(self, folder)
    }

    /// Reads the manifest of the export in `folder`.
    fn read(folder: &Path) -> Result<Self, Failure> {
        // Plain JSON first. Another format may have other fields, and `deny_unknown_fields` would
        // complain about those instead of naming the version.
        let manifest: Value = FILE.read(folder)?;
        let shown = folder.join(FILE.name).display().to_string();
        if manifest["format"] != FORMAT {
            return Err(Failure::new(format!(
                "{shown} has format {}, but this program imports {FORMAT}: import it with the version that made it.",
                manifest["format"]
            )));
        }
        serde_json::from_value(manifest)
            .map_err(|error| Failure::because(format!("{shown} is damaged"), error))
    }

    /// Compares the file with this name with its recorded measures.
    fn verify(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        let path = folder.join(name);
        let unreadable = |error| Failure::at(&path, "cannot be read", error);
        let length = open_plain(&path)
            .and_then(|file| file.metadata())
            .map_err(unreadable)?
            .len();
        // A wrong length is known before all is read.
        let part = self.parts.get(name).filter(|part| part.bytes == length);
        match part {
            Some(part) if FileDigest::measure(&path)?.sha256 == part.sha256 => Ok(()),
            _ => Err(Failure::new(format!(
                "The export is damaged: the length or SHA-256 of {} differs from export.json.",
                path.display()
            ))),
        }
    }

    /// Formats the manifest as JSON, with the folder and notes for the operator.
    fn json(&self, folder: &Path, notes: &[String]) -> String {
        format!("{:#}\n", report_json(self, folder, notes))
    }

    /// Describes the contents in a sentence for people.
    fn contents(&self) -> String {
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
            count(self.tasks.total(), "task"),
            self.tasks.unfinished,
            count(self.keys, "key"),
        )
    }
}

/// A file being written. It replaces an existing one.
#[derive(Debug)]
struct TableWriter {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
}

impl TableWriter {
    fn create(path: PathBuf) -> Result<Self, Failure> {
        let file = File::create(&path).map_err(|error| write_failure(&path, error))?;
        Ok(Self {
            file: BufWriter::new(file),
            lines: 0,
            path,
        })
    }

    fn add(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.file, "{line}").map_err(|error| write_failure(&self.path, error))?;
        self.lines += 1;
        Ok(())
    }

    /// Measures the file by reading it.
    fn end(mut self) -> Result<FileDigest, Failure> {
        // Read back from the file, and not hashed while writing: the measure in the manifest then
        // describes what the disk returned, not what was meant to be on it.
        let flushed = self.file.flush();
        flushed.map_err(|error| write_failure(&self.path, error))?;
        FileDigest::measure(&self.path)
    }
}

fn write_failure(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::at(path, "cannot be written", error)
}

/// Reads the rows of a table one by one.
fn read_rows(
    folder: &Path,
    table: &'static CopiedTable,
) -> Result<impl Iterator<Item = Result<CopiedRow, Failure>> + use<>, Failure> {
    read_lines(&folder.join(file_name(table)), |line| table.parse(line))
}

/// Reads the list of files.
fn read_files(
    folder: &Path,
) -> Result<impl Iterator<Item = Result<StoredFile, Failure>> + use<>, Failure> {
    read_lines(&folder.join(FILES), |line| {
        serde_json::from_str(line).map_err(|error| error.to_string())
    })
}

/// Reads the lines of a file one by one, each by `parse`.
fn read_lines<T, P: Fn(&str) -> Result<T, String>>(
    path: &Path,
    parse: P,
) -> Result<impl Iterator<Item = Result<T, Failure>> + use<T, P>, Failure> {
    let shown = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| Failure::because(format!("{shown} cannot be read"), error))?;
    // Numbered from 1, as editors number lines, for the error message.
    let lines = BufReader::new(file).lines().zip(1..);
    Ok(lines.map(move |(line, number)| {
        let line = line.map_err(|error| error.to_string());
        line.and_then(|line| parse(&line)).map_err(|error| {
            let place = format!("The export is damaged: line {number} of {shown}");
            Failure::because(place, error)
        })
    }))
}

#[cfg(test)]
mod tests {
    use kinora_store::COPIED_TABLES;

    use super::*;

    fn manifest(folder: &Path) -> ExportManifest {
        let mut writer = TableWriter::create(folder.join("api_keys.jsonl")).unwrap();
        writer.add("{\"one\": 1}").unwrap();
        writer.add("{}").unwrap();
        ExportManifest {
            format: FORMAT,
            id: "00".to_owned(),
            kinora: "0.1.0".to_owned(),
            made_at: 1_800_000_000,
            tasks: TaskCounts {
                unfinished: 2,
                completed: 3,
                failed: 1,
                expired: 4,
            },
            keys: 2,
            unreadable: 0,
            results: ExportedResults {
                mode: MovedResults::Copy,
                from: "/srv/results".to_owned(),
                files: 9,
                bytes: 5 << 20,
                missing: 0,
            },
            parts: [("api_keys.jsonl".to_owned(), writer.end().unwrap())].into(),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_one_of_another_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = manifest(folder.path());
        manifest.write(folder.path()).unwrap();
        assert_eq!(ExportManifest::read(folder.path()).unwrap(), manifest);
        for (format, word) in [(3, "the version that made it"), (5, "a newer one")] {
            manifest.format = format;
            manifest.write(folder.path()).unwrap();
            let refused = ExportManifest::read(folder.path()).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn its_contents_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = manifest(folder.path());
        let text = manifest.contents();
        for part in [
            "10 tasks (2 unfinished)",
            "2 keys",
            "9 files of results",
            "5 MiB",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let value: Value = serde_json::from_str(&manifest.json(Path::new("/e"), &[])).unwrap();
        assert_eq!(
            (&value["path"], &value["tasks"]["completed"]),
            (&"/e".into(), &3.into())
        );
    }

    #[test]
    fn lines_are_read_as_they_were_written_and_a_change_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (name, path) = ("api_keys.jsonl", folder.path().join("api_keys.jsonl"));
        let manifest = manifest(folder.path());
        manifest.verify(folder.path(), name).unwrap();
        let lines = || read_lines(&path, |line| Ok(line.to_owned())).unwrap();
        let found: Vec<String> = lines().map(Result::unwrap).collect();
        assert_eq!(found, ["{\"one\": 1}", "{}"]);
        std::fs::write(&path, "{\"one\": 1}\n{").unwrap();
        let damaged = manifest.verify(folder.path(), name).unwrap_err();
        assert!(damaged.to_string().contains("damaged"), "{damaged}");
        let api_keys = COPIED_TABLES.iter().find(|table| table.name == "api_keys");
        let mut rows = read_rows(folder.path(), api_keys.unwrap()).unwrap();
        let torn = rows.nth(1).unwrap().unwrap_err().to_string();
        assert!(torn.contains("line 2"), "{torn}");
    }
}
