//! The header of a weight file: its format, and the names and shapes of its tensors.

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
