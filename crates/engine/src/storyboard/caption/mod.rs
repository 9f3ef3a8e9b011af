//! Words over the picture: the shot's text as a caption and the slate that names this an
//! animatic. Text is laid out once per shot; only its fading is paid per frame.

mod layout;
mod page;

pub(super) use page::Page;

use super::FPS;
use super::canvas::Canvas;

/// Shortest time that a page of text stays, seconds.
const PAGE_S_MIN: f32 = 1.7;
const FADE_S: f32 = 0.35;
/// Most lines on a page.
const LINES_MAX: usize = 3;

/// The caption of one shot.
#[derive(Debug)]
pub(super) struct Caption {
    pages: Vec<Page>,
    start: u32,
    frames: u32,
}

impl Caption {
    /// The caption for `text` in a shot of frames `start..end`, in frames of the given size.
    pub(super) fn new(text: &str, start: u32, end: u32, width: usize, height: usize) -> Self {
        let size = page::text_size(width, height);
        let lines = layout::wrap(text, size, page::line_width(width));
        let frames = end - start;
        let room = ((frames as f32 / FPS as f32 / PAGE_S_MIN) as usize).max(1);
        let pages = layout::paginate(lines, LINES_MAX, room);
        let draw = |lines: &Vec<String>| Page::caption(lines, size, width, height);
        Self {
            pages: pages.iter().filter_map(draw).collect(),
            start,
            frames,
        }
    }

    /// Draws what is to be read at `frame` of the clip.
    pub(super) fn lay(&self, frame: u32, canvas: &mut Canvas) {
        let (Some(at), count) = (frame.checked_sub(self.start), self.pages.len() as u32) else {
            return;
        };
        if count == 0 || at >= self.frames {
            return;
        }
        let index = (u64::from(at) * u64::from(count) / u64::from(self.frames)) as u32;
        let first = (self.frames * index).div_ceil(count);
        let last = (self.frames * (index + 1)).div_ceil(count);
        let seconds = |frames: u32| frames as f32 / FPS as f32;
        let shown = seconds(at - first).min(seconds(last - 1 - at)) / FADE_S;
        // The first frame already shows the text a little: a poster made of it should.
        let alpha = super::colour::smooth(-0.35, 1.0, shown);
        if let Some(page) = self.pages.get(index as usize) {
            page.lay(canvas, alpha);
        }
    }
}
