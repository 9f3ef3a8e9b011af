//! Reads a reference file into memory, and contains panics of third-party decoders. The size limit
//! applies to the bytes read, whatever length the file reports.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::{DecodeCause, DecodeError};

/// Reads the file at `path`, at most `bytes_max` bytes.
///
/// # Errors
/// [`DecodeError::FileTooLarge`] beyond the limit, [`DecodeError::Io`] if it cannot be read.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, DecodeError> {
    let file = File::open(path)?;
    let expected = file.metadata()?.len();
    if expected > bytes_max {
        return Err(DecodeError::FileTooLarge { bytes_max });
    }
    // The length is a hint: the file may grow while it is read, so one byte more than allowed is
    // read to notice.
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(DecodeError::FileTooLarge { bytes_max });
    }
    Ok(bytes)
}

/// Runs a third-party decoder. A panic counts as an error of the file; nothing that the decoder
/// held is used afterwards.
pub(crate) fn catch_panic<T>(
    decode: impl FnOnce() -> Result<T, DecodeCause>,
) -> Result<T, DecodeCause> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err("the decoder panicked".into()))
}
