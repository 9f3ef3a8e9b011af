//! Files from one folder of results into another: linked where that works, copied elsewhere, and compared
//! with what they should be.

use std::io::ErrorKind;

use kinora_blobs::BlobError;
use kinora_blobs::folder::{Folder, Transfer};
use kinora_contract::StoredFile;

use crate::failure::Failure;

/// Moves files, and counts them.
#[derive(Debug)]
pub(crate) struct Mover {
    from: Folder,
    to: Folder,
    how: Transfer,
    /// Whether files that were linked are read as well.
    hashes_all: bool,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Why files are copied that were to be linked.
    pub(crate) fallback: Option<String>,
}

impl Mover {
    pub(crate) fn new(from: Folder, to: Folder, how: Transfer, hashes_all: bool) -> Self {
        Self {
            from,
            to,
            how,
            hashes_all,
            files: 0,
            bytes: 0,
            fallback: None,
        }
    }

    /// Moves a file that must be as `expected`; returns whether it was there.
    pub(crate) fn give(&mut self, expected: &StoredFile) -> Result<bool, Failure> {
        let key = &expected.key;
        if !self.transfer(key)? {
            return Ok(false);
        }
        let bytes = self.to.bytes(key).map_err(|error| failed(key, &error))?;
        if bytes != Some(expected.bytes) {
            return Err(Failure::new(format!(
                "The file {key} is damaged: it has {} bytes, where the store says {}.",
                bytes.unwrap_or_default(),
                expected.bytes
            )));
        }
        if (self.hashes_all || self.how == Transfer::Copy) && self.measure(key)? != *expected {
            return Err(Failure::new(format!(
                "The file {key} is damaged: its SHA-256 is not the one that the store has."
            )));
        }
        self.count(expected.bytes);
        Ok(true)
    }

    /// Moves a file of which nothing is known; returns what it is, or `None` where it was absent.
    pub(crate) fn take(&mut self, key: &str) -> Result<Option<StoredFile>, Failure> {
        if !self.transfer(key)? {
            return Ok(None);
        }
        let found = self.measure(key)?;
        self.count(found.bytes);
        Ok(Some(found))
    }

    const fn count(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    fn measure(&self, key: &str) -> Result<StoredFile, Failure> {
        self.to.measure(key).map_err(|error| failed(key, &error))
    }

    fn transfer(&mut self, key: &str) -> Result<bool, Failure> {
        match self.from.transfer(key, &self.to, self.how) {
            Ok(()) => Ok(true),
            Err(BlobError::NotFound(_)) => Ok(false),
            Err(error) if self.how == Transfer::Link && needs_a_copy(&error) => {
                self.how = Transfer::Copy;
                self.fallback = Some(error.to_string());
                self.transfer(key)
            }
            Err(error) => Err(failed(key, &error)),
        }
    }
}

/// Whether a file cannot be linked, although it may be copied: another file system, one without links, one
/// whose links are full, or a kernel that lets nobody link what belongs to others.
fn needs_a_copy(error: &BlobError) -> bool {
    let BlobError::Unavailable(error) = error else {
        return false;
    };
    matches!(
        error.kind(),
        ErrorKind::CrossesDevices
            | ErrorKind::Unsupported
            | ErrorKind::TooManyLinks
            | ErrorKind::PermissionDenied
    )
}

fn failed(key: &str, error: &BlobError) -> Failure {
    Failure::because(
        format!("The file {key} could not be backed up or restored"),
        error,
    )
}
