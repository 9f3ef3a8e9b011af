//! The operator's mark on recorded frames: drawn once per clip, and blended into each frame.

use std::fmt;
use std::sync::Arc;

use kinora_contract::Size;

/// Draws the mark for frames of a given size; `None` if it does not fit.
#[derive(Clone)]
pub struct Marker(Arc<dyn Fn(Size) -> Option<Mark> + Send + Sync>);

impl Marker {
    /// Creates a marker that uses `draw`.
    pub fn new(draw: impl Fn(Size) -> Option<Mark> + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    pub(crate) fn mark(&self, size: Size) -> Option<Mark> {
        (self.0)(size)
    }
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Marker")
    }
}

/// A drawn mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The column of its first pixel.
    pub left: usize,
    /// The row of its first pixel.
    pub top: usize,
    /// Pixels of a row.
    pub width: usize,
    /// `[height][width][2] u8`: grey, premultiplied, and opacity.
    pub pixels: Vec<[u8; 2]>,
}

/// Marks frames of one size.
pub(crate) struct Marked {
    mark: Mark,
    /// Pixels of a frame's row.
    frame_width: usize,
    /// The last frame, marked.
    frame: Vec<u8>,
}

impl Marked {
    pub(crate) fn new(mark: Mark, size: Size) -> Self {
        Self {
            mark,
            frame_width: size.width as usize,
            frame: Vec::new(),
        }
    }

    /// `rgb [height][width][3] u8` with the mark, clipped to the frame.
    pub(crate) fn on(&mut self, rgb: &[u8]) -> &[u8] {
        let Self {
            mark,
            frame_width,
            frame,
        } = self;
        frame.clear();
        frame.extend_from_slice(rgb);
        let rows = frame.chunks_exact_mut((*frame_width * 3).max(1));
        let marked_rows = mark.pixels.chunks_exact(mark.width.max(1));
        for (row, marks) in rows.skip(mark.top).zip(marked_rows) {
            let pixels = row.as_chunks_mut::<3>().0;
            for (pixel, [grey, alpha]) in pixels.iter_mut().skip(mark.left).zip(marks) {
                for value in pixel {
                    *value = over(*value, *grey, *alpha);
                }
            }
        }
        frame
    }
}

/// `grey`, premultiplied, with opacity `alpha` over `below`.
fn over(below: u8, grey: u8, alpha: u8) -> u8 {
    let shown = (u32::from(below) * u32::from(255 - alpha) + 127) / 255;
    // Cannot exceed 255: `grey` is at most `alpha`.
    (shown + u32::from(grey)).min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marks_pixels_change_and_no_frame_keeps_an_earlier_one() {
        let mark = Mark {
            left: 1,
            top: 1,
            width: 2,
            pixels: vec![[255, 255], [0, 0], [0, 255], [64, 128]],
        };
        let mut marked = Marked::new(mark, Size::new(4, 3));
        let mut expected = [100; 4 * 3 * 3];
        expected[15..18].fill(255);
        expected[27..30].fill(0);
        expected[30..33].fill(114);
        assert_eq!(marked.on(&[100; 36]), expected);
        assert_eq!(marked.on(&[0; 36])[..15], [0; 15]);
    }

    #[test]
    fn a_mark_outside_the_frame_is_left_out() {
        let mark = Mark {
            left: 3,
            top: 2,
            width: 9,
            pixels: vec![[255, 255]; 90],
        };
        let mut marked = Marked::new(mark, Size::new(4, 3));
        let frame = marked.on(&[7; 36]);
        assert_eq!(frame[..33], [7; 33]);
        assert_eq!(frame[33..], [255; 3]);
    }
}
