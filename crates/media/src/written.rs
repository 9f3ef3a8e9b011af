//! A file's length and SHA-256, computed while writing it, so nobody has to read it again.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

/// The size and hash of a completely written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The length.
    pub bytes: u64,
    /// The SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// Hashes the bytes it passes on.
pub(crate) struct HashingWriter<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            bytes: 0,
        }
    }

    /// The size and hash of the bytes written.
    pub(crate) fn finish(self) -> WrittenFile {
        let digest = self.hash.finalize();
        WrittenFile {
            bytes: self.bytes,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The inner writer may accept only a part.
        let taken = self.inner.write(bytes)?;
        self.hash.update(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts three bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_the_bytes_that_were_taken_are_hashed() {
        let mut writer = HashingWriter::new(Slow(Vec::new()));
        writer
            .write_all(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
            .unwrap();
        let written = writer.finish();
        assert_eq!(written.bytes, 56);
        // FIPS 180-2, appendix B.2.
        let wanted = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(written.sha256, wanted);
    }
}
