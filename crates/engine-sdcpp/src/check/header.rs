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

/// A fault of a file: the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileProblem(pub(super) String);

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
