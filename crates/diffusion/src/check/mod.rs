//! What is wrong with a model's files, before anything is loaded: read from their headers alone,
//! within bounds, by what the library would look for. It refuses to judge the weights themselves.

mod gguf;
mod header;
mod judge;
mod safetensors;
#[cfg(test)]
mod sample;

use std::fmt;
use std::path::PathBuf;

pub use header::Format;
use header::HeaderError;

use crate::family::Role;
use crate::settings::Settings;

/// What was found out about a model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One entry per file given, in the order of the settings.
    pub files: Vec<FileReport>,
    /// Files that the model needs and that were not given, with the reason.
    pub missing: Vec<(Role, &'static str)>,
}

/// What was found out about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// What it is for.
    pub role: Role,
    /// Where it lies, as it was set.
    pub path: PathBuf,
    /// Its length; 0 when it cannot be opened.
    pub bytes: u64,
    /// Its format, when its header could be read.
    pub format: Option<Format>,
    /// How many tensors it holds.
    pub tensors: usize,
    /// What the weights are, as far as their names and shapes tell.
    pub contents: Option<String>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is there and cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Neither GGUF nor safetensors.
    #[error("is neither GGUF nor safetensors")]
    UnknownFormat,
    /// The header cannot be understood.
    #[error("its header is broken: {0}")]
    BrokenHeader(String),
    /// The header says more bytes than are there.
    #[error("is cut short: {needed} bytes are announced, {present} are there")]
    Truncated {
        /// What the header says.
        needed: u64,
        /// What is there.
        present: u64,
    },
    /// What the role lives by is not in it.
    #[error("has no tensor {0}")]
    NoTensor(String),
    /// It holds a model that does not fit its role or the settings.
    #[error("{0}")]
    Misfit(String),
}

impl Report {
    /// Whether nothing was found wrong.
    pub fn is_good(&self) -> bool {
        self.missing.is_empty() && self.files.iter().all(|file| file.problems.is_empty())
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

const GIB: f64 = (1_u64 << 30) as f64;

impl fmt::Display for Report {
    /// A line for each file and each problem, for people.
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

/// Opens every file that `settings` name, reads its header, and says what is wrong.
pub fn check(settings: &Settings) -> Report {
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
        match header::read(path) {
            Ok((header, bytes)) => {
                report.bytes = bytes;
                report.format = Some(header.format);
                report.tensors = header.tensors.len();
                if header.data_end > bytes {
                    report.problems.push(Problem::Truncated {
                        needed: header.data_end,
                        present: bytes,
                    });
                }
                headers.push((role, header));
            }
            Err(error) => report.problems.push(of(error)),
        }
        files.push(report);
    }
    for (role, header) in &headers {
        let judgement = judge::file(*role, header, settings);
        if let Some(file) = files.iter_mut().find(|file| file.role == *role) {
            file.contents = judgement.contents;
            file.problems.extend(judgement.problems);
        }
    }
    Report {
        missing: judge::missing(settings, &headers),
        files,
    }
}

fn of(error: HeaderError) -> Problem {
    match error {
        HeaderError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => Problem::Missing,
        HeaderError::Io(error) => Problem::Unreadable(error.to_string()),
        HeaderError::UnknownFormat => Problem::UnknownFormat,
        HeaderError::Broken(why) => Problem::BrokenHeader(why),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
