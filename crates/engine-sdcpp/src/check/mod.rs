//! Finds faults in a model's files before loading them, from their headers alone, with the
//! library's own criteria. Reads a bounded number of bytes and trusts no length that the file
//! contradicts. It does not check the weights themselves.

mod gguf;
mod header;
mod role_check;
mod safetensors;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use header::WeightHeader;
pub use header::{FileProblem, FileReport, WeightFormat};

use crate::family::Role;
use crate::settings::Settings;

/// The result of checking a model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelReport {
    /// One entry per given file, in the order of the settings.
    pub files: Vec<FileReport>,
    /// Required files that were not given, with the reason.
    pub missing: Vec<(Role, &'static str)>,
}

impl ModelReport {
    /// Whether no faults were found.
    pub fn is_good(&self) -> bool {
        self.missing.is_empty() && self.files.iter().all(|file| file.problems.is_empty())
    }
}

const GIB: f64 = (1_u64 << 30) as f64;

impl fmt::Display for ModelReport {
    /// A line per file and per fault, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            write!(f, "{}: {}", file.role.name(), file.path.display())?;
            if let Some(format) = file.format {
                let size = file.bytes as f64 / GIB;
                write!(f, " ({format}, {size:.2} GiB, {} tensors", file.tensors)?;
                if let Some(contents) = &file.contents {
                    write!(f, ", {contents}")?;
                }
                write!(f, ")")?;
            }
            writeln!(f)?;
            for problem in &file.problems {
                writeln!(f, "  wrong: {problem}")?;
            }
        }
        for (role, reason) in &self.missing {
            writeln!(f, "{}: not given, but {reason}", role.name())?;
        }
        Ok(())
    }
}

/// Opens every file in `settings`, reads its header, and reports the faults.
pub fn check(settings: &Settings) -> ModelReport {
    let (mut files, mut headers) = (Vec::new(), Vec::new());
    for (role, path) in settings.files() {
        let mut report = FileReport {
            role,
            path: path.to_owned(),
            bytes: 0,
            format: None,
            tensors: 0,
            contents: None,
            problems: Vec::new(),
        };
        match read_header(path) {
            Ok((header, bytes)) => {
                report.bytes = bytes;
                report.format = Some(header.format);
                report.tensors = header.tensors.len();
                let needed = header.data_end;
                if needed > bytes {
                    report.misfit(format!(
                        "is cut short: its header declares {needed} bytes, the file has {bytes}"
                    ));
                }
                role_check::check_file(&mut report, &header, settings);
                headers.push((role, header));
            }
            Err(problem) => report.problems.push(problem),
        }
        files.push(report);
    }
    ModelReport {
        missing: role_check::missing_files(settings, &headers),
        files,
    }
}

/// Reads the header of the file at `path`; also returns the file's length.
fn read_header(path: &Path) -> Result<(WeightHeader, u64), FileProblem> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // A pipe or a device might never end.
    if !metadata.is_file() {
        return Err(FileProblem::unknown_format());
    }
    let bytes = metadata.len();
    parse(BufReader::new(file), bytes).map(|header| (header, bytes))
}

/// Parses the header at the start of `reader`; the file has `bytes` bytes.
fn parse(mut reader: impl BufRead, bytes: u64) -> Result<WeightHeader, FileProblem> {
    if reader.fill_buf()?.starts_with(gguf::MAGIC) {
        gguf::parse(reader)
    } else {
        safetensors::parse(reader, bytes)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
