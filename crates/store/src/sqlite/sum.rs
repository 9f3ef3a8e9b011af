//! Checksums of rows and of the high-water mark. They detect bits flipped by a disk, not forgery.

/// The summed bytes of an ordinary task.
const BYTES: usize = 512;

/// CRC-32 (IEEE 802.3): it sees each change of up to 32 bits that lie side by side. The fields are gathered and summed
/// at once: one by one, short ones take several times as long.
#[derive(Clone, Debug)]
pub(super) struct Sum(Vec<u8>);

impl Sum {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(BYTES))
    }

    /// Adds bytes and the boundary to the next field.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.number(bytes.len() as u64)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
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
        crc32fast::hash(&self.0)
    }
}
