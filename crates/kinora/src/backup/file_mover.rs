//! Transfers files from one results folder to another: links them if possible, otherwise copies
//! them, and compares them with the expected sizes and hashes.

use std::io::ErrorKind;

use kinora_blobs::BlobError;
use kinora_blobs::folder::{BlobFolder, TransferMethod};
use kinora_contract::StoredFile;

use crate::failure::Failure;

/// Transfers files, and counts them.
#[derive(Debug)]
pub(crate) struct FileMover {
    from: BlobFolder,
    to: BlobFolder,
    how: TransferMethod,
    /// Whether to read linked files as well.
    hashes_all: bool,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Why files are copied instead of linked.
    pub(crate) fallback: Option<String>,
}

impl FileMover {
    pub(crate) fn new(
        from: BlobFolder,
        to: BlobFolder,
        how: TransferMethod,
        hashes_all: bool,
    ) -> Self {
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

    /// Transfers a file that must match `expected`; returns whether it exists.
    pub(crate) fn transfer_known(&mut self, expected: &StoredFile) -> Result<bool, Failure> {
        let key = &expected.key;
        if !self.transfer(key)? {
            return Ok(false);
        }
        // The length costs one system call and finds files that were cut off. The hash costs a full
        // read. A linked file is the original under a second name, so reading it back would check
        // the disk and not the copy: only --verify asks for that.
        let bytes = self.to.bytes(key).map_err(|error| failed(key, &error))?;
        if bytes != Some(expected.bytes) {
            return Err(Failure::new(format!(
                "The file {key} is damaged: it has {} bytes instead of {}.",
                bytes.unwrap_or_default(),
                expected.bytes
            )));
        }
        if (self.hashes_all || self.how == TransferMethod::Copy) && self.measure(key)? != *expected
        {
            return Err(Failure::new(format!(
                "The file {key} is damaged: its SHA-256 differs from the store's."
            )));
        }
        self.count(expected.bytes);
        Ok(true)
    }

    /// Transfers a file with unknown contents; returns its measures, or `None` if it is absent.
    pub(crate) fn transfer_unknown(&mut self, key: &str) -> Result<Option<StoredFile>, Failure> {
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
            Err(error) if self.how == TransferMethod::Link && needs_a_copy(&error) => {
                // The usual reasons (another file system, no hard links) hold for every file of
                // these two folders, so the rest is copied without trying to link each.
                self.how = TransferMethod::Copy;
                self.fallback = Some(error.to_string());
                self.transfer(key)
            }
            Err(error) => Err(failed(key, &error)),
        }
    }
}

/// Whether a file cannot be linked but may be copied: it is on another file system, on one without
/// links, or has too many links, or the kernel forbids links to files of others.
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
