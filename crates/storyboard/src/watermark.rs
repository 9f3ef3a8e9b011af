//! An operator's mark for the frames of any engine, set in the faces of the captions. It is drawn once for frames of a
//! size; whoever has the frames lays it over them.

use kinora_contract::Size;

use super::caption::{Page, unset};

/// White letters with a dark outline, which read on any background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The column of its first pixel.
    pub left: usize,
    /// The row of its first pixel.
    pub top: usize,
    /// Pixels of a row.
    pub width: usize,
    /// `[height][width][2] u8`: grey, premultiplied, and opacity.
    pub pixels: Vec<[u8; 2]>,
}

/// The mark `text` in the upper right corner of frames of size `frame`; `None` where these have no room for it, or no
/// built-in font has its characters.
pub fn watermark(text: &str, frame: Size) -> Option<Watermark> {
    let page = Page::watermark(text, frame)?;
    let (left, top, width, pixels) = page.parts();
    Some(Watermark {
        left,
        top,
        width,
        pixels: pixels
            .map(|pixel| pixel.map(|value| ((u32::from(value) * 255 + 16_384) >> 15) as u8))
            .collect(),
    })
}

/// The characters of `text` that no built-in font has, and that a mark leaves out: each once, in order.
pub fn not_in_watermark(text: &str) -> Vec<char> {
    unset(text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_inside_every_frame_and_has_ink() {
        for (width, height) in [
            (2520, 1080),
            (1280, 720),
            (480, 854),
            (256, 256),
            (1080, 1920),
        ] {
            for text in ["AI", "Made with AI by Example", &"W".repeat(40)] {
                let mark = watermark(text, Size::new(width, height)).unwrap();
                let rows = mark.pixels.len() / mark.width;
                assert_eq!(mark.pixels.len() % mark.width, 0);
                assert!(mark.left + mark.width <= width as usize, "{text}");
                assert!(mark.left > width as usize / 20 && mark.top + rows < height as usize / 2);
                let brightest = mark.pixels.iter().map(|[grey, _]| *grey).max();
                assert!(brightest > Some(200), "{text}: {brightest:?}");
                assert!(mark.pixels.iter().all(|[grey, alpha]| grey <= alpha));
            }
        }
        assert_eq!(watermark(" ", Size::new(480, 480)), None);
        assert_eq!(not_in_watermark("AI \u{13000}"), ['\u{13000}']);
    }
}
