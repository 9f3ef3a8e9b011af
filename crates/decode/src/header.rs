//! The part of an image that every format reads before its pixels, and the memory that decoding may take.

use kinora_contract::limits::REFERENCE_DECODE_BYTES_MAX;

use crate::orientation::Orientation;

/// Maximum memory for reading one image, its file included.
pub(crate) const MEMORY_BYTES_MAX: u64 = REFERENCE_DECODE_BYTES_MAX;

/// Size and orientation in an image's headers.
pub(crate) struct Header {
    /// Pixels, as stored.
    pub(crate) width: u32,
    /// Pixels, as stored.
    pub(crate) height: u32,
    /// How to turn the stored image upright.
    pub(crate) orientation: Orientation,
}

impl Header {
    /// `(width, height)` in pixels, upright.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        if self.orientation.transposed {
            (self.height, self.width)
        } else {
            (self.width, self.height)
        }
    }
}
