//! The header of a weight file: its format, and the names and shapes of its tensors. Also the report
//! on a file with its faults.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::family::Role;

/// Far more than any known model has (the largest have several thousand).
pub(super) const TENSORS_MAX: usize = 1 << 16;

/// A format of weight files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightFormat {
    /// <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>
    Gguf,
    /// <https://github.com/huggingface/safetensors#format>
    Safetensors,
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gguf => "GGUF",
            Self::Safetensors => "safetensors",
        })
    }
}

/// The content of a weight file according to its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightHeader {
    pub format: WeightFormat,
    pub tensors: Vec<TensorInfo>,
    /// The end of the last tensor, from the beginning of the file.
    pub data_end: u64,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorInfo {
    pub name: String,
    /// Outermost dimension first, as in PyTorch.
    pub shape: Vec<u64>,
}

impl TensorInfo {
    pub(super) fn elements(&self) -> u64 {
        self.shape
            .iter()
            .fold(1_u64, |all, side| all.saturating_mul(*side))
    }
}

/// A fault of a file: the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileProblem(String);

impl FileProblem {
    pub(super) fn unknown_format() -> Self {
        Self("is neither GGUF nor safetensors".to_owned())
    }

    pub(super) fn broken_header(why: impl fmt::Display) -> Self {
        Self(format!("its header is broken: {why}"))
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self("there is no such file".to_owned()),
            io::ErrorKind::UnexpectedEof => Self::broken_header("it is truncated"),
            _ => Self(format!("cannot be read: {error}")),
        }
    }
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

impl FileReport {
    /// Records that the file does not fit its role or the settings.
    pub(super) fn misfit(&mut self, why: impl Into<String>) {
        self.problems.push(FileProblem(why.into()));
    }

    /// Records that a tensor is missing that the role requires.
    pub(super) fn lacks(&mut self, tensor: &str) {
        self.misfit(format!("has no tensor {tensor}"));
    }
}
