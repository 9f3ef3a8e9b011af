//! Memory for the samples of one picture, mapped for it alone. It may be 144 MB, and an allocator
//! would keep it for a while after it is freed: the next picture would come on top.

use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Zeroed bytes that return to the system when dropped.
pub(crate) struct Canvas {
    mapped: MmapMut,
    bytes: usize,
}

impl Canvas {
    /// # Errors
    /// If the system grants no memory.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        // Empty mappings do not exist.
        let mapped = MmapMut::map_anon(bytes.max(1))?;
        Ok(Self { mapped, bytes })
    }

    /// Keeps the first `bytes` bytes. The memory of the others stays until this is dropped.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.bytes = bytes.min(self.bytes);
    }
}

impl Deref for Canvas {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.mapped[..self.bytes]
    }
}

impl DerefMut for Canvas {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.mapped[..self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canvas_is_zeroed_written_and_cut() {
        let mut canvas = Canvas::zeroed(5).unwrap();
        assert_eq!(*canvas, [0; 5]);
        canvas[4] = 7;
        assert_eq!(*canvas, [0, 0, 0, 0, 7]);
        canvas.truncate(2);
        assert_eq!(*canvas, [0, 0]);
        canvas.truncate(9);
        assert_eq!(canvas.len(), 2);
        assert!(Canvas::zeroed(0).unwrap().is_empty());
    }
}
