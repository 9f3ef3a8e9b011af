//! Words over the picture: the shot's text as a caption, the mark that labels the picture an animatic, and an operator's
//! watermark for frames of any engine. It lays out each page of text once, and per frame only fades it. It does not
//! interpret the words.

pub(crate) mod faces;
mod fonts;
mod lines;
mod shaping;
mod text_page;

pub(crate) use text_page::TextPage;

use kinora_contract::Size;

use crate::raster::canvas::Canvas;
use crate::raster::colour::smooth;
use crate::scene::stage_size;
use lines::{TextPages, TextRoom};
use text_page::{CaptionAnchor, TextBlock};

/// Minimum time of a page of text, seconds.
const PAGE_S_MIN: f32 = 1.7;
const FADE_S: f32 = 0.35;
/// Maximum number of lines on a page.
const LINES_MAX: usize = 3;

/// The characters of `text` that captions leave out because no font has them: each once, in order. With `system`
/// this includes system fonts, otherwise only built-in ones.
pub(crate) fn unset_characters(text: &str, system: bool) -> Vec<char> {
    fonts::separate_unset(text, system).unset
}

/// A line of text as coverage: its width and height in pixels, and `[height][width]`, 0.0 to 1.0; an em is
/// `size` pixels. Characters that no built-in font has are left out.
pub(crate) fn text_coverage(text: &str, size: f32) -> Option<(usize, usize, Vec<f32>)> {
    let text = fonts::separate_unset(text, false).text;
    let all = 0..text.len();
    let line = shaping::Paragraph::new(text, false).line(&all);
    let height = (size * 1.4).ceil() as usize;
    let width = (line.width * size).ceil() as usize;
    let mask =
        text_page::CoverageMask::from_lines(&[(&line, 0.0, size * 1.05)], size, (width, height))?;
    Some((mask.width, height, mask.cover))
}

/// A caption's text, its time, and the areas that it must avoid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptionText<'a> {
    pub(crate) text: &'a str,
    /// First frame, and the frame after the last.
    pub(crate) span: (u32, u32),
    /// Boxes that it must not cover, such as faces: left, top, right and bottom as shares of the frame.
    pub(crate) avoid: &'a [[f32; 4]],
    /// The row below the mark, if there is one.
    pub(crate) below: usize,
    /// Whether system fonts may fill gaps.
    pub(crate) system_fonts: bool,
}

/// The caption of one shot.
#[derive(Debug)]
pub(crate) struct Caption {
    pages: Vec<TextPage>,
    start: u32,
    frames: u32,
    fps: u32,
}

impl Caption {
    /// The caption of `words` in frames of `size`. All its pages have one position: at the bottom, unless they would
    /// cover more of the boxes to avoid there than at the top.
    pub(crate) fn new(words: &CaptionText<'_>, size: Size, fps: u32) -> Self {
        let (start, end) = words.span;
        // Lines are broken on the stage, so that every resolution breaks them alike.
        let (stage, pixels) = stage_size(size);
        let letters = text_page::text_size(stage, pixels);
        let frames = end.saturating_sub(start);
        let room = TextRoom {
            width: text_page::line_width(stage) / letters,
            lines: LINES_MAX,
            pages: ((frames as f32 / fps as f32 / PAGE_S_MIN) as usize).max(1),
        };
        let laid = TextPages::new(words.text, room, words.system_fonts);
        let blocks: Vec<TextBlock> = laid
            .pages
            .iter()
            .map(|page| TextBlock::new(&laid, page, letters * pixels))
            .collect();
        // One place for all pages of a caption: it must not jump in the middle of a sentence.
        let upper = CaptionAnchor::Upper(words.below);
        let [covered_above, covered_below] = [upper, CaptionAnchor::Lower].map(|place| {
            let boxes = blocks.iter().map(|block| block.shares(place, size));
            boxes
                .flat_map(|one| words.avoid.iter().map(move |other| overlap(one, *other)))
                .fold(0.0, f32::max)
        });
        let fits = blocks.iter().all(|block| block.fits(upper, size));
        let place = if fits && covered_above < covered_below {
            upper
        } else {
            CaptionAnchor::Lower
        };
        Self {
            pages: blocks
                .into_iter()
                .filter_map(|block| block.caption(place, size))
                .collect(),
            start,
            frames,
            fps,
        }
    }

    /// Draws the text of `frame` of the clip, with opacity `ink` from 0.0 to 1.0.
    pub(crate) fn draw(&self, frame: u32, ink: f32, canvas: &mut Canvas) {
        let (Some(at), count) = (frame.checked_sub(self.start), self.pages.len() as u32) else {
            return;
        };
        if count == 0 || at >= self.frames {
            return;
        }
        // Pages share the frames evenly. `first` and `last` are the inverse of this division,
        // rounded up, so that every frame is on exactly one page.
        let index = (u64::from(at) * u64::from(count) / u64::from(self.frames)) as u32;
        let first = (self.frames * index).div_ceil(count);
        let last = (self.frames * (index + 1)).div_ceil(count);
        let fps = self.fps as f32;
        let since_s = (at - first) as f32 / fps;
        let left_s = (last - 1 - at) as f32 / fps;
        let shown = since_s.min(left_s) / FADE_S;
        // The first frame already shows the text a little: a poster made of it should.
        let alpha = smooth(-0.35, 1.0, shown);
        if let Some(page) = self.pages.get(index as usize) {
            page.draw(canvas, alpha * ink);
        }
    }
}

/// Area of the overlap of two boxes, as a share of the frame.
fn overlap(one: [f32; 4], other: [f32; 4]) -> f32 {
    let across = one[2].min(other[2]) - one[0].max(other[0]);
    let down = one[3].min(other[3]) - one[1].max(other[1]);
    across.max(0.0) * down.max(0.0)
}

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
    let page = TextPage::watermark(text, frame)?;
    let (left, top, width, pixels) = page.grey_rows();
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
    unset_characters(text, false)
}

#[cfg(test)]
mod tests {
    use kinora_contract::{AspectRatio, Resolution};

    use super::*;

    const LONG: &str = "The quick brown fox (ÅÇ) jumps over the lazy dog, while the sun goes down slowly behind the blue \
        hills and ginger cats gaze at a quiet sea that glows.";

    fn grey(size: Size) -> Canvas {
        let mut canvas = Canvas::new(size.width as usize, size.height as usize);
        canvas.pixels.fill(16_000);
        canvas
    }

    /// Left, top, right and bottom of what was laid over grey, pixels.
    fn touched(canvas: &Canvas) -> Option<[usize; 4]> {
        let pixels = canvas.pixels.chunks_exact(4).enumerate();
        let changed = pixels.filter(|(_, pixel)| pixel[..3] != [16_000; 3]);
        let places = changed.map(|(at, _)| (at % canvas.width, at / canvas.width));
        places.fold(None, |found, (x, y)| {
            let [left, top, right, bottom] = found.unwrap_or([x, y, x + 1, y + 1]);
            Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)])
        })
    }

    fn sizes() -> impl Iterator<Item = Size> {
        let listed = Resolution::ALL
            .into_iter()
            .flat_map(|one| AspectRatio::ALL.map(|ratio| one.size(ratio)));
        listed.chain([
            Size::new(320, 180),
            Size::new(480, 1120),
            Size::new(1080, 2520),
        ])
    }

    fn caption(text: &str, avoid: &[[f32; 4]], size: Size) -> Caption {
        let words = CaptionText {
            text,
            span: (0, 96),
            avoid,
            below: 0,
            system_fonts: false,
        };
        Caption::new(&words, size, 24)
    }

    #[test]
    fn captions_and_marks_stay_in_the_title_safe_area_at_every_size() {
        let zalgo = "Z\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}g\u{323}\u{323}\u{323}\u{323} ".repeat(40);
        for size in sizes() {
            let mut laid = Vec::new();
            for (text, avoid) in [
                (LONG, [0.0; 4]),
                (&zalgo, [0.0; 4]),
                (LONG, [0.0, 0.7, 1.0, 1.0]),
            ] {
                let caption = caption(text, &[avoid], size);
                assert!(!caption.pages.is_empty(), "{size}");
                for page in caption.pages {
                    let mut canvas = grey(size);
                    page.draw(&mut canvas, 1.0);
                    laid.push((text, touched(&canvas).unwrap()));
                }
            }
            for text in ["KINORA STORYBOARD · seed 4294967295", LONG] {
                let mut canvas = grey(size);
                TextPage::mark(text, size, false)
                    .unwrap()
                    .draw(&mut canvas, 1.0);
                laid.push((text, touched(&canvas).unwrap()));
            }
            let (width, height) = (size.width as f32, size.height as f32);
            for (text, [left, top, right, bottom]) in laid {
                let inside = left as f32 >= width * 0.05
                    && right as f32 <= width * 0.95
                    && top as f32 >= height * 0.05
                    && bottom as f32 <= height * 0.95;
                assert!(inside, "{size}: {left} {top} {right} {bottom} of {text}");
            }
        }
    }

    #[test]
    fn a_caption_above_stands_clear_of_the_mark() {
        for size in sizes() {
            for mark in ["KINORA STORYBOARD · seed 4294967295", LONG] {
                let mark = TextPage::mark(mark, size, false).unwrap();
                for text in ["A woman smiles", LONG] {
                    let words = CaptionText {
                        text,
                        span: (0, 96),
                        avoid: &[[0.0, 0.7, 1.0, 1.0]],
                        below: mark.bottom(),
                        system_fonts: false,
                    };
                    let pages = Caption::new(&words, size, 24).pages;
                    assert!(!pages.is_empty(), "{size}");
                    for page in pages {
                        assert!(page.top() >= mark.bottom(), "{size}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn letters_are_large_enough_to_read_at_480p_and_the_mark_is_small_but_legible() {
        for ratio in AspectRatio::ALL {
            let size = Resolution::P480.size(ratio);
            let (stage, pixels) = stage_size(size);
            let em = text_page::text_size(stage, pixels) * pixels;
            // A line of 5 to 8 percent of the short side, as broadcasters set subtitles.
            let line = em * 1.3 / size.width.min(size.height) as f32;
            assert!((0.05..0.08).contains(&line), "{size}: {line}");
            let mut canvas = grey(size);
            TextPage::mark("KINORA", size, false)
                .unwrap()
                .draw(&mut canvas, 1.0);
            let [_, top, _, bottom] = touched(&canvas).unwrap();
            assert!(
                (9..30).contains(&(bottom - top)),
                "{size}: {}",
                bottom - top
            );
        }
    }

    #[test]
    fn a_caption_steps_aside_for_a_face_below_and_only_for_one_below() {
        let size = Size::new(640, 360);
        let top = |avoid: &[[f32; 4]]| caption("A woman smiles", avoid, size).pages[0].top();
        let lower = top(&[]);
        assert!(lower > 260);
        assert_eq!(top(&[[0.4, 0.1, 0.6, 0.5]]), lower);
        let upper = top(&[[0.4, 0.6, 0.6, 1.0]]);
        assert!(upper < 90, "{upper}");
        assert_eq!(top(&[[0.4, 0.0, 0.6, 1.0]]), lower, "nowhere is free");
    }

    #[test]
    fn every_resolution_breaks_a_caption_alike() {
        let pages = |one: Resolution| caption(LONG, &[], one.size(AspectRatio::R16x9)).pages.len();
        assert_eq!(pages(Resolution::P480), pages(Resolution::P1080));
    }

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
