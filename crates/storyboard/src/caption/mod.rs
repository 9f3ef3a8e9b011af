//! Words over the picture: the shot's text as a caption and the slate that names this an
//! animatic. Text is laid out once per shot; only its fading is paid per frame.

mod layout;
mod page;

pub(super) use page::Page;

use kinora_contract::Size;

use super::canvas::Canvas;
use super::scene::stage_of;

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
    fps: u32,
}

impl Caption {
    /// The caption for `text` over the frames `start..end`, in frames of `size`.
    pub(super) fn new(text: &str, (start, end): (u32, u32), size: Size, fps: u32) -> Self {
        // Lines are broken on the stage, so that every resolution breaks them alike.
        let (stage, pixels) = stage_of(size);
        let letters = page::text_size(stage, pixels);
        let lines = layout::wrap(text, letters, page::line_width(stage));
        let frames = end - start;
        let room = ((frames as f32 / fps as f32 / PAGE_S_MIN) as usize).max(1);
        let pages = layout::paginate(lines, LINES_MAX, room);
        let (width, height) = (size.width as usize, size.height as usize);
        let draw = |lines: &Vec<String>| Page::caption(lines, letters * pixels, width, height);
        Self {
            pages: pages.iter().filter_map(draw).collect(),
            start,
            frames,
            fps,
        }
    }

    /// Draws what is to be read at `frame` of the clip, with `ink` from 0.0 to 1.0.
    pub(super) fn lay(&self, frame: u32, ink: f32, canvas: &mut Canvas) {
        let (Some(at), count) = (frame.checked_sub(self.start), self.pages.len() as u32) else {
            return;
        };
        if count == 0 || at >= self.frames {
            return;
        }
        let index = (u64::from(at) * u64::from(count) / u64::from(self.frames)) as u32;
        let first = (self.frames * index).div_ceil(count);
        let last = (self.frames * (index + 1)).div_ceil(count);
        let seconds = |frames: u32| frames as f32 / self.fps as f32;
        let shown = seconds(at - first).min(seconds(last - 1 - at)) / FADE_S;
        // The first frame already shows the text a little: a poster made of it should.
        let alpha = super::colour::smooth(-0.35, 1.0, shown);
        if let Some(page) = self.pages.get(index as usize) {
            page.lay(canvas, alpha * ink);
        }
    }
}
