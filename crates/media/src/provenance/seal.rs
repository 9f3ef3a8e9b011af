//! What binds the statement of a file's origin to its bytes: a signature, which this crate neither makes nor checks.

use std::fmt;
use std::path::Path;

use super::Provenance;
use crate::MediaError;

/// Seals films. Shared by all threads of a process.
pub trait Sealer: Send + Sync + fmt::Debug {
    /// Seals the complete MP4 at `path` with what `provenance` says: the file is replaced by a longer one, with the
    /// same pictures and sound. If it cannot be sealed, it stays as it is.
    ///
    /// # Errors
    /// Errors of reading and writing, and of the signature itself.
    fn seal(&self, path: &Path, provenance: &Provenance) -> Result<Sealed, MediaError>;
}

/// What became of a film that was to be sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sealed {
    /// It is sealed.
    Done,
    /// It is as it was; why.
    Not(String),
}
