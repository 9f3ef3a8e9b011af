//! The length and SHA-256 of files and bytes, as stored: lower-case hexadecimal.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use kinora_contract::StoredFile;
use sha2::{Digest, Sha256};

/// Buffer size for hashing.
const HASH_BYTES: usize = 256 * 1024;

/// The length and SHA-256 of the file at `path`, which is read completely.
///
/// # Errors
/// If the file cannot be read.
pub fn measure_file(path: &Path) -> io::Result<(u64, String)> {
    measure(&mut File::open(path)?)
}

/// Describes `bytes` as the file of this key.
pub fn measure_bytes(key: &str, bytes: &[u8]) -> StoredFile {
    StoredFile {
        key: key.to_owned(),
        bytes: bytes.len() as u64,
        sha256: hexadecimal(Sha256::new().chain_update(bytes)),
    }
}

/// The length and SHA-256 of the rest of `from`.
pub(crate) fn measure(from: &mut File) -> io::Result<(u64, String)> {
    copy_measured(from, &mut io::sink())
}

/// Copies the rest of `from`, and measures it.
pub(crate) fn copy_measured(from: &mut File, to: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    let mut buffer = vec![0_u8; HASH_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((bytes, hexadecimal(hash))),
            Ok(count) => {
                hash.update(&buffer[..count]);
                to.write_all(&buffer[..count])?;
                bytes += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hexadecimal(hash: Sha256) -> String {
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
