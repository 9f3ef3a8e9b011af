//! Text into lines and pages: fonts by character, breaks at spaces (between characters in
//! scripts without spaces). Characters that no font knows are dropped.

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont};

use super::super::lexicon::is_cjk;

static LATIN: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
static WIDE: &[u8] = include_bytes!("../../fonts/DroidSansFallbackFull.ttf");

/// The fonts in the order in which they are asked for a character.
pub(super) fn fonts() -> &'static [FontRef<'static>] {
    static FONTS: OnceLock<Vec<FontRef<'static>>> = OnceLock::new();
    FONTS.get_or_init(|| {
        [LATIN, WIDE]
            .iter()
            .filter_map(|data| FontRef::try_from_slice(data).ok())
            .collect()
    })
}

/// The first font that has a picture of `c`.
pub(super) fn font_for(c: char) -> Option<&'static FontRef<'static>> {
    let fonts = fonts();
    let order: [usize; 2] = if is_cjk(c) { [1, 0] } else { [0, 1] };
    order
        .into_iter()
        .filter_map(|at| fonts.get(at))
        .find(|font| font.glyph_id(c).0 != 0)
}

/// One placed glyph: font, glyph and pen position from the start of the line, pixels.
pub(super) struct Placed {
    pub(super) font: &'static FontRef<'static>,
    pub(super) glyph: ab_glyph::GlyphId,
    pub(super) x: f32,
}

/// Places the characters of one line with kerning; answers them and the line's width.
pub(super) fn place(line: &str, size: f32, spacing: f32) -> (Vec<Placed>, f32) {
    let mut x = 0.0;
    let mut placed: Vec<Placed> = Vec::new();
    for c in line.chars() {
        let Some(font) = font_for(c) else { continue };
        let scaled = font.as_scaled(PxScale::from(size));
        let glyph = scaled.glyph_id(c);
        if let Some(before) = placed
            .last()
            .filter(|before| std::ptr::eq(before.font, font))
        {
            x += scaled.kern(before.glyph, glyph);
        }
        placed.push(Placed { font, glyph, x });
        x += scaled.h_advance(glyph) + spacing;
    }
    (placed, (x - spacing).max(0.0))
}

fn width(text: &str, size: f32) -> f32 {
    place(text, size, 0.0).1
}

/// Must not begin a line.
fn clings(c: char) -> bool {
    "，。！？、；：）」』】》〉…”’ー々,.!?;:)".contains(c)
}

/// Pieces that a line may be broken between.
fn units(text: &str) -> Vec<String> {
    let mut units: Vec<String> = Vec::new();
    let mut open = false;
    for c in text
        .chars()
        .filter(|c| c.is_whitespace() || font_for(*c).is_some())
    {
        let space = c.is_whitespace();
        let wide = is_cjk(c) || ('\u{ff00}'..='\u{ffef}').contains(&c);
        let joins = clings(c) && !units.is_empty() || open && !wide && !space;
        match units.last_mut() {
            Some(last) if joins => last.push(c),
            Some(last) if space => {
                if !last.ends_with(' ') {
                    last.push(' ');
                }
            }
            _ if space => {}
            _ => units.push(c.to_string()),
        }
        open = !space && !wide;
    }
    units
}

/// Breaks `text` into lines of at most `limit` pixels, as even as they can be.
pub(super) fn wrap(text: &str, size: f32, limit: f32) -> Vec<String> {
    let mut best = fill(text, size, limit);
    for share in [0.92, 0.84, 0.76, 0.68, 0.6] {
        let narrower = fill(text, size, limit * share);
        if narrower.len() > best.len() || best.len() < 2 {
            break;
        }
        best = narrower;
    }
    best
}

/// Breaks `text` into lines, each as full as it can be.
fn fill(text: &str, size: f32, limit: f32) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0.0;
    for unit in units(text) {
        let wide = width(unit.trim_end(), size);
        let full = width(&unit, size);
        if used + wide > limit && !line.is_empty() {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0.0;
        }
        if wide > limit {
            for c in unit.chars() {
                let step = width(c.encode_utf8(&mut [0; 4]), size);
                if used + step > limit && !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                    used = 0.0;
                }
                line.push(c);
                used += step;
            }
            continue;
        }
        line.push_str(&unit);
        used += full;
    }
    if !line.trim().is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Lines onto at most `pages_max` pages of at most `lines_max`; what is left ends in an ellipsis.
pub(super) fn paginate(lines: Vec<String>, lines_max: usize, pages_max: usize) -> Vec<Vec<String>> {
    let room = lines_max * pages_max;
    let cut = lines.len() > room;
    let mut kept: Vec<String> = lines.into_iter().take(room).collect();
    if let Some(last) = kept.last_mut().filter(|_| cut) {
        let shorter = last
            .trim_end_matches(|c: char| !c.is_alphanumeric())
            .to_owned();
        *last = shorter + "…";
    }
    // Spread evenly, so that no page holds a single orphaned line.
    let pages = kept.len().div_ceil(lines_max).max(1);
    let (each, longer) = (kept.len() / pages, kept.len() % pages);
    let mut rest = kept.into_iter();
    (0..pages)
        .map(|page| {
            rest.by_ref()
                .take(each + usize::from(page < longer))
                .collect::<Vec<_>>()
        })
        .filter(|page| !page.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_keep_every_word() {
        let text = "The quick brown fox jumps over the lazy dog while the sun goes down slowly";
        let lines = wrap(text, 30.0, 400.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| width(line, 30.0) <= 400.0));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn chinese_breaks_between_characters_and_not_before_a_full_stop() {
        let lines = wrap(
            "一只红色的热气球慢慢升起在绿色的山丘之上，阳光洒满大地。",
            30.0,
            310.0,
        );
        assert!(lines.len() >= 2);
        assert!(
            lines.iter().all(|line| !line.starts_with(['，', '。'])),
            "{lines:?}"
        );
    }

    #[test]
    fn unknown_characters_are_dropped_never_boxed() {
        let lines = wrap("a 🦊 fox \u{e000}", 30.0, 900.0);
        assert_eq!(lines, ["a fox"]);
        assert!(wrap("🦊🦊🦊", 30.0, 900.0).is_empty());
    }

    #[test]
    fn an_endless_word_is_broken() {
        let lines = wrap(&"w".repeat(300), 30.0, 300.0);
        assert!(lines.len() > 10);
    }

    #[test]
    fn pages_are_even_and_the_rest_is_an_ellipsis() {
        let lines = |n: usize| (0..n).map(|n| format!("line {n}")).collect::<Vec<_>>();
        let pages = paginate(lines(4), 3, 5);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        let cut = paginate(lines(9), 3, 1);
        assert_eq!(cut.len(), 1);
        assert_eq!(cut[0][2], "line 2…");
    }
}
