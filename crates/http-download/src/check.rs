//! The SHA-256 of a file on disk, read again after the last byte: this also covers the bytes that
//! an earlier process left.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::DownloadError;

/// Buffer size for hashing.
const HASH_BYTES: usize = 1 << 20;

/// Fails unless the file at `path` has this SHA-256.
pub(crate) async fn sha256(path: &Path, expected: &str) -> Result<(), DownloadError> {
    let own = path.to_owned();
    let hashed = tokio::task::spawn_blocking(move || hash(&own)).await;
    let found = hashed
        .map_err(io::Error::other)
        .flatten()
        .map_err(|source| DownloadError::File {
            path: path.to_owned(),
            source,
        })?;
    if found != expected {
        return Err(DownloadError::Hash {
            found,
            expected: expected.to_owned(),
        });
    }
    Ok(())
}

fn hash(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0_u8; HASH_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digest = hash.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_hash_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(&path).unwrap(), expected);
    }
}
