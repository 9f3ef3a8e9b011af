//! Finds faults in a model's files before loading them, from their headers alone, with the
//! library's own criteria. Reads a bounded number of bytes and trusts no length that the file
//! contradicts. It does not check the weights themselves.

mod gguf;
mod header;
mod role_check;
mod safetensors;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

pub use header::{FileProblem, WeightFormat};
use header::{HeaderError, WeightHeader};

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

/// The result of checking one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file's role.
    pub role: Role,
    /// Its path, as in the settings.
    pub path: PathBuf,
    /// Its length in bytes; 0 if it cannot be opened.
    pub bytes: u64,
    /// Its format, if its header was readable.
    pub format: Option<WeightFormat>,
    /// The number of tensors.
    pub tensors: usize,
    /// Description of the weights, derived from names and shapes.
    pub contents: Option<String>,
    /// The faults found.
    pub problems: Vec<FileProblem>,
}

impl ModelReport {
    /// Whether no faults were found.
    pub fn is_good(&self) -> bool {
        self.missing.is_empty() && self.files.iter().all(|file| file.problems.is_empty())
    }

    /// The total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

const GIB: f64 = (1_u64 << 30) as f64;

impl fmt::Display for ModelReport {
    /// A line per file and per fault, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            write!(f, "{}: {}", file.role, file.path.display())?;
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
            writeln!(f, "{role}: not given, but {reason}")?;
        }
        Ok(())
    }
}

/// Opens every file in `settings`, reads its header, and reports the faults.
pub fn check(settings: &Settings) -> ModelReport {
    let mut files = Vec::new();
    let mut headers = Vec::new();
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
                if header.data_end > bytes {
                    report.problems.push(FileProblem::Truncated {
                        needed: header.data_end,
                        present: bytes,
                    });
                }
                headers.push((role, header));
            }
            Err(error) => report.problems.push(problem_from(error)),
        }
        files.push(report);
    }
    for (role, header) in &headers {
        let judgement = role_check::check_file(*role, header, settings);
        if let Some(file) = files.iter_mut().find(|file| file.role == *role) {
            file.contents = judgement.contents;
            file.problems.extend(judgement.problems);
        }
    }
    ModelReport {
        missing: role_check::missing_files(settings, &headers),
        files,
    }
}

/// Reads the header of the file at `path`; also returns the file's length.
fn read_header(path: &Path) -> Result<(WeightHeader, u64), HeaderError> {
    let mut file = File::open(path).map_err(HeaderError::Io)?;
    let metadata = file.metadata().map_err(HeaderError::Io)?;
    // A pipe or a device might never end.
    if !metadata.is_file() {
        return Err(HeaderError::UnknownFormat);
    }
    let bytes = metadata.len();
    let mut magic = [0; 4];
    let begun = file.read_exact(&mut magic);
    if begun.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
        return Err(HeaderError::UnknownFormat);
    }
    file.rewind()?;
    parse(BufReader::new(file), bytes, magic).map(|header| (header, bytes))
}

/// Parses the header at the start of `reader`; the file has `bytes` bytes and begins with `magic`.
fn parse(reader: impl Read, bytes: u64, magic: [u8; 4]) -> Result<WeightHeader, HeaderError> {
    if magic == *gguf::MAGIC {
        gguf::parse(reader)
    } else {
        safetensors::parse(reader, bytes)
    }
}

fn problem_from(error: HeaderError) -> FileProblem {
    match error {
        HeaderError::Io(error) if error.kind() == io::ErrorKind::NotFound => FileProblem::Missing,
        HeaderError::Io(error) => FileProblem::Unreadable(error.to_string()),
        HeaderError::UnknownFormat => FileProblem::UnknownFormat,
        HeaderError::Broken(why) => FileProblem::BrokenHeader(why),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
