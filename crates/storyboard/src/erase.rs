//! Takes the captions of this engine off a source that it made but cannot make again, so that
//! new letters stand on no old ones. It fills in from above and below; it guesses no shapes.

use std::sync::Arc;

use kinora_contract::VideoSpec;

use super::canvas::{Canvas, FULL};
use super::caption::{Caption, Words};
use super::script::{merged, shots};
use kinora_engine::Clip;

/// The least light of a letter, on black.
const LETTER_MIN: u16 = FULL / 40;
/// How far the dark rim of letters reaches, in shares of the frame's shorter side.
const RIM: f32 = 0.008;

/// The captions that a source shows.
#[derive(Debug)]
pub(crate) struct OldLetters(Vec<Caption>);

impl OldLetters {
    /// Those of the videos that `script` made one after the other; each may still be seen.
    pub(crate) fn of(script: &[Arc<VideoSpec>], clip: Clip, system_fonts: bool) -> Self {
        let lines = script.iter().flat_map(|link| {
            let avoid = link.negative_prompt.as_deref().unwrap_or_default();
            merged(shots(&link.prompt, avoid, &[clip.frames], clip.fps))
        });
        Self(
            lines
                .map(|line| {
                    let words = Words {
                        text: &line.text,
                        span: (line.start, line.end),
                        avoid: &[],
                        below: 0,
                        system_fonts,
                    };
                    Caption::new(&words, clip.size, clip.fps)
                })
                .collect(),
        )
    }

    /// Takes those of `frame` off `canvas`; `mask` is working memory.
    pub(crate) fn erase(&self, frame: u32, canvas: &mut Canvas, mask: &mut Canvas) {
        if self.0.is_empty() {
            return;
        }
        mask.pixels.fill(0);
        for caption in &self.0 {
            caption.lay(frame, 1.0, mask);
        }
        let (width, height) = (canvas.width, canvas.height);
        let covered = covered(mask, (width.min(height) as f32 * RIM).ceil() as usize);
        let Some(first) = covered.iter().position(|is| *is) else {
            return;
        };
        for x in 0..width {
            let mut y = first / width;
            while y < height {
                let run = (y..height).take_while(|y| covered[y * width + x]).count();
                if run > 0 {
                    fill(canvas, x, y, run);
                }
                y += run + 1;
            }
        }
    }
}

/// Whether a letter or its rim covers each pixel.
fn covered(mask: &Canvas, rim: usize) -> Vec<bool> {
    let (width, height) = (mask.width, mask.height);
    let mut covered = vec![false; width * height];
    for (at, pixel) in mask.pixels.as_chunks::<4>().0.iter().enumerate() {
        if pixel[0] < LETTER_MIN {
            continue;
        }
        let (x, y) = (at % width, at / width);
        for row in y.saturating_sub(rim)..=(y + rim).min(height - 1) {
            let (from, to) = (x.saturating_sub(rim), (x + rim).min(width - 1));
            covered[row * width + from..=row * width + to].fill(true);
        }
    }
    covered
}

/// Fills `run` pixels of column `x` from row `y` on between the ones above and below.
fn fill(canvas: &mut Canvas, x: usize, y: usize, run: usize) {
    let (width, height) = (canvas.width, canvas.height);
    let pixel = |y: usize| {
        let at = (y * width + x) * 4;
        [0, 1, 2].map(|lane| f32::from(canvas.pixels[at + lane]))
    };
    let ends = (
        y.checked_sub(1).map(pixel),
        (y + run < height).then(|| pixel(y + run)),
    );
    let (above, below) = match ends {
        (Some(above), Some(below)) => (above, below),
        (Some(one), None) | (None, Some(one)) => (one, one),
        (None, None) => return,
    };
    for step in 0..run {
        let share = (step + 1) as f32 / (run + 1) as f32;
        let at = ((y + step) * width + x) * 4;
        for lane in 0..3 {
            let value = above[lane] + (below[lane] - above[lane]) * share;
            canvas.pixels[at + lane] = value as u16;
        }
    }
}
