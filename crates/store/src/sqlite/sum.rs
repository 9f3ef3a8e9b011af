//! Checksums of rows and of the high-water mark. They tell bits that a disk has flipped, not forgery.

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): each step is reversible, so that
/// a single change is always seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum(u64);

impl Sum {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes, which end where the next field begins.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.number(bytes.len() as u64)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
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

    pub(super) const fn end(self) -> u64 {
        self.0
    }
}
