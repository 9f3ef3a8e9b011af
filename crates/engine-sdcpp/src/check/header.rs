//! The header of a weight file: its format, and the names and shapes of its tensors. Also the faults
//! of a file.

use std::fmt;
use std::io;

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

/// Why a header cannot be read.
#[derive(Debug)]
pub(super) enum HeaderError {
    Io(io::Error),
    UnknownFormat,
    Broken(String),
}

impl From<io::Error> for HeaderError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("it is truncated".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The file does not exist.
    #[error("there is no such file")]
    Missing,
    /// The file exists but cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Neither GGUF nor safetensors.
    #[error("is neither GGUF nor safetensors")]
    UnknownFormat,
    /// The header is invalid.
    #[error("its header is broken: {0}")]
    BrokenHeader(String),
    /// The file is shorter than its header says.
    #[error("is cut short: its header declares {needed} bytes, the file has {present}")]
    Truncated {
        /// The length according to the header.
        needed: u64,
        /// The actual length.
        present: u64,
    },
    /// A tensor that the role requires is missing.
    #[error("has no tensor {0}")]
    NoTensor(String),
    /// The model does not fit its role or the settings.
    #[error("{0}")]
    Misfit(String),
}
