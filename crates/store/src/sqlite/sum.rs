//! Checksums of rows and of the high-water mark. They detect bits flipped by a disk, not forgery.

use crc32fast::Hasher;

/// CRC-32 (IEEE 802.3): detects any change within 32 adjacent bits.
#[derive(Clone, Debug)]
pub(super) struct Sum(Hasher);

impl Sum {
    pub(super) fn new() -> Self {
        Self(Hasher::new())
    }

    /// Adds bytes and the boundary to the next field.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self.number(bytes.len() as u64)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    /// Adds a number that may be absent.
    pub(super) fn maybe(self, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    /// Adds a text that may be absent.
    pub(super) fn maybe_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    pub(super) fn end(self) -> u32 {
        self.0.finalize()
    }
}
