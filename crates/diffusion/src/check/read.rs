//! Reads the header of a weight file of either format: a bounded number of bytes, and no lengths that the
//! file contradicts.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use super::header::{Header, HeaderError};
use super::{gguf, safetensors};

/// Reads the header of the file at `path`; also returns the file's length.
pub(super) fn header(path: &Path) -> Result<(Header, u64), HeaderError> {
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
pub(super) fn parse(reader: impl Read, bytes: u64, magic: [u8; 4]) -> Result<Header, HeaderError> {
    if magic == *gguf::MAGIC {
        gguf::parse(reader)
    } else {
        safetensors::parse(reader, bytes)
    }
}
