//! A text as glyphs: runs of one font, one script and one direction, shaped by HarfRust and put in visual order by
//! the Unicode bidirectional algorithm (UAX #9). Lengths are in ems; lines are broken elsewhere.

use std::ops::Range;
use std::ptr;

use harfrust::{
    Buffer, BufferFlags, Direction, Font, GlyphId, Language, Script, ShapeOptions, ShaperFont,
    shape, unicode,
};
use unicode_bidi::{BidiInfo, Level};

use super::fonts::{FontChoice, font_parts, is_silent};

/// A placed glyph: its font and pen position in ems from the left end of the line's baseline, `y` upwards.
#[derive(Clone, Copy)]
pub(super) struct PlacedGlyph {
    pub(super) font: &'static Font,
    pub(super) id: GlyphId,
    pub(super) x: f32,
    pub(super) y: f32,
}

/// The glyphs of a line and its width in ems.
#[derive(Clone, Default)]
pub(super) struct GlyphLine {
    pub(super) glyphs: Vec<PlacedGlyph>,
    pub(super) width: f32,
}

/// A stretch of text in one font, one direction and one script.
struct GlyphRun {
    range: Range<usize>,
    level: Level,
    font: &'static Font,
    script: Script,
}

/// A text of one paragraph, shaped as one line.
pub(super) struct Paragraph {
    pub(super) text: String,
    runs: Vec<GlyphRun>,
    language: Option<Language>,
    /// Width in ems of all glyphs before each byte, in reading order.
    before: Vec<f32>,
}

/// The script of a run that holds both, or `None` if they need separate runs. Chinese characters and kana share runs;
/// marks take the script around them.
fn shared_script(before: Script, after: Script) -> Option<Script> {
    const LOOSE: [Script; 3] = [Script::COMMON, Script::INHERITED, Script::UNKNOWN];
    const WIDE: [Script; 3] = [Script::HAN, Script::HIRAGANA, Script::KATAKANA];
    let are_wide = WIDE.contains(&before) && WIDE.contains(&after);
    if LOOSE.contains(&after) || before == after || are_wide {
        Some(before)
    } else {
        LOOSE.contains(&before).then_some(after)
    }
}

fn runs(text: &str, fonts: FontChoice) -> Vec<GlyphRun> {
    let levels = BidiInfo::new(text, None).levels;
    let mut runs: Vec<GlyphRun> = Vec::new();
    let mut start = 0;
    for part in font_parts(text, fonts) {
        let range = start..start + part.len();
        start = range.end;
        let level = levels.get(range.start).copied().unwrap_or(Level::ltr());
        let script = part.chars().map(|c| unicode::script(u32::from(c)));
        let script = script
            .reduce(|a, b| shared_script(a, b).unwrap_or(a))
            .unwrap_or(Script::COMMON);
        let last = runs.last_mut();
        // Spaces and what is not drawn stay in the font of what stands before them.
        let silent = part.chars().all(is_silent);
        let before = last
            .as_ref()
            .map(|run| run.font)
            .filter(|font| font.charmap().map_unicode(' ').is_some());
        let font = if silent {
            before.or_else(|| fonts.font_of("x"))
        } else {
            fonts.font_of(part)
        };
        let Some(font) = font else {
            continue;
        };
        match last
            .filter(|run| run.level == level && ptr::eq(run.font, font))
            .and_then(|run| Some((shared_script(run.script, script)?, run)))
        {
            Some((script, run)) => {
                run.range.end = range.end;
                run.script = script;
            }
            None => runs.push(GlyphRun {
                range,
                level,
                font,
                script,
            }),
        }
    }
    runs
}

impl Paragraph {
    /// Shapes `text`, which has no line breaks and only characters that some font has.
    pub(super) fn new(text: String, system: bool) -> Self {
        let runs = runs(&text, FontChoice::new(&text, system));
        let language = text
            .chars()
            .map(|c| unicode::script(u32::from(c)))
            .any(|script| [Script::HIRAGANA, Script::KATAKANA].contains(&script))
            .then(|| Language::new("ja"));
        let mut made = Self {
            before: vec![0.0; text.len() + 1],
            language: language.flatten(),
            text,
            runs,
        };
        // Widths by byte, once for the whole paragraph: breaking it asks for hundreds of ranges,
        // which it would be slow to shape one by one.
        for run in &made.runs {
            let (start, per_em) = (run.range.start, f32::from(run.font.units_per_em().max(1)));
            let buffer = made.shape(run, run.range.clone());
            let glyphs = buffer.glyph_infos().iter().zip(buffer.glyph_positions());
            for (glyph, position) in glyphs {
                if let Some(spot) = made.before.get_mut(start + glyph.cluster as usize + 1) {
                    *spot += position.x_advance as f32 / per_em;
                }
            }
        }
        let mut sum = 0.0;
        for spot in &mut made.before {
            sum += *spot;
            *spot = sum;
        }
        made
    }

    /// Width in ems of a part of the text, as shaped within the whole.
    pub(super) fn width(&self, range: &Range<usize>) -> f32 {
        let [start, end] =
            [range.start, range.end].map(|byte| self.before.get(byte).copied().unwrap_or(0.0));
        end - start
    }

    /// The glyphs of the part `range` as a line of its own.
    pub(super) fn line(&self, range: &Range<usize>) -> GlyphLine {
        let parts: Vec<(&GlyphRun, Range<usize>)> = self
            .runs
            .iter()
            .map(|run| {
                (
                    run,
                    run.range.start.max(range.start)..run.range.end.min(range.end),
                )
            })
            .filter(|(_, part)| !part.is_empty())
            .collect();
        let levels: Vec<Level> = parts.iter().map(|(run, _)| run.level).collect();
        let mut line = GlyphLine::default();
        // Only widths were kept: the few lines that are shown are shaped again, in visual order.
        for index in BidiInfo::reorder_visual(&levels) {
            let Some((run, part)) = parts.get(index) else {
                continue;
            };
            let per_em = f32::from(run.font.units_per_em().max(1));
            let buffer = self.shape(run, part.clone());
            for (glyph, position) in buffer.glyph_infos().iter().zip(buffer.glyph_positions()) {
                line.glyphs.push(PlacedGlyph {
                    font: run.font,
                    id: GlyphId::new(glyph.glyph_id),
                    x: line.width + position.x_offset as f32 / per_em,
                    y: position.y_offset as f32 / per_em,
                });
                line.width += position.x_advance as f32 / per_em;
            }
        }
        line
    }

    /// Shapes `part` of a run, joined to the text around it if the script joins letters. Clusters are byte offsets
    /// from the start of the part.
    fn shape(&self, run: &GlyphRun, part: Range<usize>) -> Buffer {
        let mut buffer = Buffer::new();
        buffer.set_flags(
            BufferFlags::REMOVE_DEFAULT_IGNORABLES | BufferFlags::DO_NOT_INSERT_DOTTED_CIRCLE,
        );
        buffer.set_pre_context(self.text.get(..part.start).unwrap_or_default());
        buffer.set_post_context(self.text.get(part.end..).unwrap_or_default());
        buffer.push_str(self.text.get(part).unwrap_or_default());
        buffer.set_direction(if run.level.is_rtl() {
            Direction::RightToLeft
        } else {
            Direction::LeftToRight
        });
        buffer.set_script(Some(run.script));
        buffer.set_language(self.language.clone());
        // A buffer that cannot be shaped holds characters, not glyphs: it must not be drawn.
        if shape(&ShaperFont::new(run.font), &mut buffer, ShapeOptions::new()).is_err() {
            buffer.clear();
        }
        buffer
    }
}
