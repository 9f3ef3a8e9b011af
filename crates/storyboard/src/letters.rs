//! The letters of one clip: the captions of its lines and its mark, each made at its first use. It paints no pictures
//! and looks for no faces.

use kinora_contract::VideoSpec;
use kinora_engine::Clip;

use super::canvas::Canvas;
use super::caption::{Caption, Page, Words};
use super::options::Options;
use super::script::Shot;
use super::slot::{Slot, held, release, slots};

/// Captions and mark of a clip, as far as its options want them.
#[derive(Debug)]
pub(crate) struct Letters<'a> {
    options: &'a Options,
    clip: Clip,
    /// One for each line.
    captions: Vec<Slot<Caption>>,
    mark: Option<Page>,
}

impl<'a> Letters<'a> {
    /// The letters of a clip of so many `lines`.
    pub(crate) fn new(spec: &VideoSpec, options: &'a Options, clip: Clip, lines: usize) -> Self {
        let draft = if spec.draft { "DRAFT · " } else { "" };
        let mark = || {
            let text = options.mark_text.replace("{seed}", &spec.seed.to_string());
            Page::mark(&format!("{draft}{text}"), clip.size, options.system_fonts)
        };
        Self {
            options,
            clip,
            captions: slots(lines),
            mark: options.mark.then(mark).flatten(),
        }
    }

    /// Lays the caption of `frame` over the picture. `avoid` gives the boxes that the caption of a line must not
    /// cover: left, top, right and bottom as shares of the frame.
    pub(crate) fn lay_captions(
        &self,
        lines: &[Shot],
        frame: u32,
        ink: f32,
        canvas: &mut Canvas,
        avoid: impl Fn(&Shot) -> Vec<[f32; 4]>,
    ) {
        if !self.options.caption {
            return;
        }
        for (line, caption) in lines.iter().zip(&self.captions) {
            if (line.start..line.end).contains(&frame) {
                held(caption, || self.caption(line, &avoid(line))).lay(frame, ink, canvas);
            }
        }
    }

    fn caption(&self, line: &Shot, avoid: &[[f32; 4]]) -> Caption {
        let words = Words {
            text: &line.text,
            span: (line.start, line.end),
            avoid,
            below: self.mark.as_ref().map_or(0, Page::bottom),
            system_fonts: self.options.system_fonts,
        };
        Caption::new(&words, self.clip.size, self.clip.fps)
    }

    /// Lays the mark over a picture, which must be a painted one.
    pub(crate) fn lay_mark(&self, ink: f32, canvas: &mut Canvas) {
        if let Some(mark) = &self.mark {
            mark.lay(canvas, ink);
        }
    }

    /// Lets go of the captions that no frame from `frame` on needs.
    pub(crate) fn strike(&self, lines: &[Shot], frame: u32) {
        for (line, caption) in lines.iter().zip(&self.captions) {
            if line.end <= frame {
                release(caption);
            }
        }
    }
}
