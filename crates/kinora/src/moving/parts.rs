//! The files of an export: one JSON object per line, so that none must fit into memory as a whole.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backup::manifest::Part;
use crate::failure::Failure;
use crate::plain_file;

/// Names of the files.
pub(super) const STORE: &str = "store.json";
pub(super) const TASKS: &str = "tasks.jsonl";
pub(super) const KEYS: &str = "keys.jsonl";
pub(super) const CHORES: &str = "chores.jsonl";
pub(super) const FILES: &str = "files.jsonl";

/// Size and hash of a file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    pub(super) lines: u64,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Lines {
    /// Refuses a file that differs from its measures.
    pub(super) fn verify(&self, path: &Path) -> Result<(), Failure> {
        let unreadable =
            |error| Failure::because(format!("{} cannot be read", path.display()), error);
        let length = plain_file::open(path)
            .and_then(|file| file.metadata())
            .map_err(unreadable)?
            .len();
        // A wrong length is known before all is read.
        if length == self.bytes && Part::of(path)?.sha256 == self.sha256 {
            return Ok(());
        }
        Err(Failure::new(format!(
            "The export is damaged: the length or SHA-256 of {} differs from export.json.",
            path.display()
        )))
    }
}

/// A file being written. It replaces an existing one.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
}

impl Writer {
    pub(super) fn create(path: PathBuf) -> Result<Self, Failure> {
        let file = File::create(&path).map_err(|error| unwritable(&path, error))?;
        Ok(Self {
            file: BufWriter::new(file),
            lines: 0,
            path,
        })
    }

    pub(super) fn add(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value);
        let line = line.map_err(|error| unwritable(&self.path, error))?;
        let written = writeln!(self.file, "{line}");
        written.map_err(|error| unwritable(&self.path, error))?;
        self.lines += 1;
        Ok(())
    }

    /// Measures the file by reading it.
    pub(super) fn end(mut self) -> Result<Lines, Failure> {
        let flushed = self.file.flush();
        flushed.map_err(|error| unwritable(&self.path, error))?;
        let Part { bytes, sha256 } = Part::of(&self.path)?;
        Ok(Lines {
            lines: self.lines,
            bytes,
            sha256,
        })
    }
}

/// Writes all `values`.
pub(super) fn write<T: Serialize>(path: PathBuf, values: &[T]) -> Result<Lines, Failure> {
    let mut writer = Writer::create(path)?;
    values.iter().try_for_each(|value| writer.add(value))?;
    writer.end()
}

/// Reads the lines of a file one by one.
pub(super) fn read<T: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<T, Failure>> + use<T>, Failure> {
    let shown = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| Failure::because(format!("{shown} cannot be read"), error))?;
    let lines = BufReader::new(file).lines().enumerate();
    Ok(lines.map(move |(number, line)| {
        let value = line.map(|line| serde_json::from_str(&line));
        let wrong = |error: &dyn std::fmt::Display| {
            let place = format!("The export is damaged: line {} of {shown}", number + 1);
            Failure::because(place, error)
        };
        value
            .map_err(|error| wrong(&error))?
            .map_err(|error| wrong(&error))
    }))
}

fn unwritable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::because(format!("{} cannot be written", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written_and_a_change_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TASKS);
        let lines = write(path.clone(), &["one", "two\n"]).unwrap();
        assert_eq!(lines.lines, 2);
        lines.verify(&path).unwrap();
        let found: Vec<String> = read(&path).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, ["one", "two\n"]);
        std::fs::write(&path, "\"one\"\n\"tw").unwrap();
        assert!(
            lines
                .verify(&path)
                .unwrap_err()
                .to_string()
                .contains("damaged")
        );
        let found: Vec<Result<String, Failure>> = read(&path).unwrap().collect();
        let torn = found[1].as_ref().unwrap_err().to_string();
        assert!(torn.contains("line 2"), "{torn}");
    }
}
