//! Breaks a paragraph into lines and pages. Lines break where Unicode allows (UAX #14 with the strict rules for Chinese
//! and Japanese; Thai between words), Korean at spaces only. It changes no words: a text that is too long ends in an
//! ellipsis.

use std::ops::Range;

use icu_segmenter::LineSegmenter;
use icu_segmenter::options::LineBreakOptions;

use super::fonts::{clusters, separate_unset};
use super::shaping::Paragraph;

/// Maximum length of a text, characters: more than all pages of the longest clip hold.
const CHARS_MAX: usize = 4_096;
/// Maximum number of ends to try until the last line has room for its ellipsis.
const CUTS_MAX: usize = 12;
/// Characters to remove before an ellipsis.
const LOOSE_ENDS: &str = " .,;:!?-–—·،؛。，、！？；：…";

/// The space for a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextRoom {
    /// Widest line, ems.
    pub(super) width: f32,
    /// Maximum number of lines on a page.
    pub(super) lines: usize,
    pub(super) pages: usize,
}

/// A text on pages of lines.
pub(super) struct TextPages {
    pub(super) paragraph: Paragraph,
    /// Parts of the paragraph's text on each page, without the spaces between them.
    pub(super) pages: Vec<Vec<Range<usize>>>,
}

impl TextPages {
    /// Lays out `text`, without characters that no font has.
    pub(super) fn new(text: &str, room: TextRoom, system: bool) -> Self {
        let long = text.char_indices().nth(CHARS_MAX).map(|(end, _)| end);
        let text = separate_unset(
            text.get(..long.unwrap_or(text.len())).unwrap_or_default(),
            system,
        )
        .text;
        let mut paragraph = Paragraph::new(text, system);
        let mut lines = wrap(&paragraph, room.width);
        let room_lines = room.lines * room.pages;
        if lines.len() > room_lines || long.is_some() {
            let end = lines.iter().take(room_lines).map(|line| line.end).max();
            (paragraph, lines) = shortened(&paragraph, end.unwrap_or(0), room, system);
        }
        lines.truncate(room_lines);
        let pages = paginate(lines, room.lines);
        Self { paragraph, pages }
    }
}

/// The text up to byte `end`, or to a word before, with an ellipsis, so that it fits.
fn shortened(
    whole: &Paragraph,
    end: usize,
    room: TextRoom,
    system: bool,
) -> (Paragraph, Vec<Range<usize>>) {
    // The ellipsis needs room, so the end moves back, break by break, until the lines are few
    // enough.
    let kept = whole.text.get(..end).unwrap_or_default();
    let mut ends: Vec<usize> = breaks(kept).into_iter().rev().take(CUTS_MAX).collect();
    if ends.len() < 2 {
        // One endless word: it is parted between characters, as its lines are.
        let backwards = clusters(kept).collect::<Vec<_>>().into_iter().rev();
        let back = backwards.scan(end, |end, cluster| {
            *end -= cluster.len();
            Some(*end)
        });
        ends.extend(back.take(CUTS_MAX));
    }
    let cut = |end: usize| {
        let kept = kept.get(..end).unwrap_or_default();
        let text = kept.trim_end_matches(|c| LOOSE_ENDS.contains(c)).to_owned() + "…";
        let paragraph = Paragraph::new(text, system);
        let lines = wrap(&paragraph, room.width);
        (paragraph, lines)
    };
    let fitting = ends
        .into_iter()
        .map(cut)
        .find(|(_, lines)| lines.len() <= room.lines * room.pages);
    fitting.unwrap_or_else(|| cut(end))
}

/// Byte offsets at which a line may end: after a space, or between characters that allow a break.
fn breaks(text: &str) -> Vec<usize> {
    let segmenter = LineSegmenter::new_lstm(LineBreakOptions::default());
    segmenter
        .segment_str(text)
        .filter(|at| *at > 0 && !is_inside_korean_word(text, *at))
        .collect()
}

/// Whether byte `at` of `text` lies between two Hangul characters. Unicode allows a break there,
/// but a Korean word stays whole.
fn is_inside_korean_word(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    before.ends_with(is_hangul) && after.starts_with(is_hangul)
}

fn is_hangul(c: char) -> bool {
    matches!(c, '가'..='힣' | 'ㄱ'..='ㆎ')
}

/// Breaks a paragraph into lines of at most `limit` ems, as even as they can be.
fn wrap(paragraph: &Paragraph, limit: f32) -> Vec<Range<usize>> {
    let breaks = breaks(&paragraph.text);
    let mut best = fill(paragraph, &breaks, limit);
    // A narrower limit that needs no more lines makes them more even, so that no word stands alone
    // in the last one.
    for share in [0.92, 0.84, 0.76, 0.68, 0.6] {
        let narrower = fill(paragraph, &breaks, limit * share);
        if narrower.len() > best.len() || best.len() < 2 {
            break;
        }
        best = narrower;
    }
    best
}

/// Breaks a paragraph into lines, each as full as it can be.
fn fill(paragraph: &Paragraph, breaks: &[usize], limit: f32) -> Vec<Range<usize>> {
    let trimmed = |range: Range<usize>| {
        let part = paragraph.text.get(range.clone()).unwrap_or_default();
        range.start..range.start + part.trim_end().len()
    };
    let fits = |start: usize, end: usize| paragraph.width(&trimmed(start..end)) <= limit;
    let mut lines = Vec::new();
    let (mut start, mut end) = (0, 0);
    for &next in breaks {
        if !fits(start, next) && end > start {
            lines.push(trimmed(start..end));
            start = end;
        }
        if !fits(start, next) {
            // Too long for any line: parted between characters.
            let word = paragraph.text.get(start..next).unwrap_or_default();
            let mut at = start;
            for cluster in clusters(word) {
                if !fits(start, at + cluster.len()) && at > start {
                    lines.push(trimmed(start..at));
                    start = at;
                }
                at += cluster.len();
            }
        }
        end = next;
    }
    lines.push(trimmed(start..end));
    lines.retain(|line| !line.is_empty());
    lines
}

/// Lines onto pages of at most `lines_max`, spread evenly, so that no page holds a single orphaned line.
fn paginate<T>(lines: Vec<T>, lines_max: usize) -> Vec<Vec<T>> {
    let pages = lines.len().div_ceil(lines_max.max(1)).max(1);
    // Seven lines on three pages: three, two and two, and not three, three and one.
    let (each, longer) = (lines.len() / pages, lines.len() % pages);
    let mut rest = lines.into_iter();
    let pages = (0..pages).map(|page| {
        let count = each + usize::from(page < longer);
        rest.by_ref().take(count).collect::<Vec<_>>()
    });
    pages.filter(|page| !page.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::caption::fonts::is_silent;

    fn room(width: f32, pages: usize) -> TextRoom {
        TextRoom {
            width,
            lines: 3,
            pages,
        }
    }

    fn lines(text: &str, width: f32) -> Vec<String> {
        let laid = TextPages::new(text, room(width, 40), false);
        let lines = laid.pages.iter().flatten();
        lines
            .map(|line| laid.paragraph.text[line.clone()].to_owned())
            .collect()
    }

    #[test]
    fn lines_fit_and_keep_every_word() {
        let text = "The quick brown fox jumps over the lazy dog while the sun goes down slowly";
        let laid = TextPages::new(text, room(13.0, 40), false);
        let parts: Vec<_> = laid.pages.iter().flatten().collect();
        assert!(parts.len() > 2);
        assert!(
            parts
                .iter()
                .all(|part| laid.paragraph.line(part).width <= 13.1)
        );
        assert_eq!(lines(text, 13.0).join(" "), text);
    }

    #[test]
    fn chinese_and_japanese_break_between_characters_but_not_before_closing_punctuation() {
        let texts = [
            "一只红色的热气球慢慢升起在绿色的山丘之上，阳光洒满大地。天空（很蓝）！",
            "「赤い気球」が、ゆっくりと丘の上に昇っていく。ちょっとしたコーヒーを、飲む。",
            "一隻紅色的熱氣球，慢慢升起。「很美」，她說：『真的嗎？』是的！",
        ];
        for text in texts {
            for width in [3.0, 4.5, 6.0, 7.2, 9.0, 11.0] {
                let lines = lines(text, width);
                assert!(lines.len() > 1, "{lines:?}");
                let first =
                    |line: &String| line.starts_with(|c| "，。！？、；：）」』ーっょ".contains(c));
                assert!(!lines.iter().any(first), "{width}: {lines:?}");
                let last = |line: &String| line.ends_with(|c| "（「『".contains(c));
                assert!(!lines.iter().any(last), "{width}: {lines:?}");
                assert_eq!(lines.concat(), text);
            }
        }
    }

    #[test]
    fn thai_breaks_between_words_and_korean_at_spaces() {
        let words = ["แมว", "ดำ", "นั่ง", "อยู่", "บน", "หลังคา", "ใต้", "แสง", "จันทร์"];
        let thai = words.concat();
        let broken = lines(&thai, 5.0);
        assert!(broken.len() > 1);
        assert_eq!(broken.concat(), thai);
        let mut ends = vec![0];
        for word in words {
            ends.push(ends.last().unwrap() + word.len());
        }
        let mut at = 0;
        for line in broken {
            at += line.len();
            assert!(ends.contains(&at), "broken inside a word at {at}: {line}");
        }
        let korean = "빨간 열기구가 푸른 언덕 위로 천천히 떠오른다";
        assert_eq!(lines(korean, 6.0).join(" "), korean);
    }

    #[test]
    fn an_endless_word_is_broken_between_its_characters() {
        assert!(lines(&"w".repeat(300), 10.0).len() > 10);
        let accents = lines(&"e\u{301}".repeat(60), 10.0);
        assert!(accents.iter().all(|line| !line.starts_with('\u{301}')));
    }

    #[test]
    fn what_has_no_room_ends_in_an_ellipsis_and_pages_are_even() {
        let text = "word, ".repeat(200);
        let laid = TextPages::new(&text, room(12.0, 2), false);
        assert_eq!(laid.pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        let last = laid.paragraph.text[laid.pages[1][2].clone()].to_owned();
        assert!(last.ends_with("word…"), "{last}");
        assert_eq!(
            paginate(vec![(); 4], 3)
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>(),
            [2, 2]
        );
    }

    #[test]
    fn a_character_that_no_font_sets_leaves_no_trace() {
        assert_eq!(lines("a \u{e000} fox", 20.0), ["a fox"]);
        assert!(lines("\u{e000}\u{e001}", 20.0).is_empty());
        assert!(lines("\u{200b}\u{202e}", 20.0).is_empty());
    }

    #[test]
    fn no_silent_character_is_drawn_as_a_missing_glyph() {
        for silent in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            if !is_silent(silent) {
                continue;
            }
            for text in [
                format!("a{silent}b"),
                format!("{silent}a"),
                format!("가{silent}나"),
            ] {
                let laid = TextPages::new(&text, room(20.0, 1), false);
                let parts = laid.pages.iter().flatten();
                let mut glyphs = parts.flat_map(|part| laid.paragraph.line(part).glyphs);
                assert!(
                    glyphs.all(|glyph| glyph.id.to_u32() > 0),
                    "U+{:04X}",
                    u32::from(silent)
                );
            }
        }
    }

    /// Glyphs that the whole text needs and its font lacks, over all lines.
    fn missing(text: &str, width: f32, pages: usize) -> usize {
        let laid = TextPages::new(text, room(width, pages), false);
        let parts = laid.pages.iter().flatten();
        let glyphs = parts.flat_map(|part| laid.paragraph.line(part).glyphs);
        glyphs.filter(|glyph| glyph.id.to_u32() == 0).count()
    }

    #[test]
    fn no_character_is_drawn_as_a_missing_glyph_beside_a_space_or_an_ellipsis() {
        for c in (0..0x3_0000).filter_map(char::from_u32) {
            let cut = format!("one {c} two {c} three {c} four {c} five {c} six {c} seven");
            let number = u32::from(c);
            assert_eq!(missing(&format!("{c} a {c}"), 20.0, 1), 0, "U+{number:04X}");
            assert_eq!(missing(&format!("{c}…a"), 20.0, 1), 0, "U+{number:04X}");
            // Each width cuts the text at another place.
            if "\u{600}\u{6dd}\u{30d}\u{64b}\u{e33}\u{200d}\u{fe0f}\u{1f1e6}".contains(c) {
                for width in 8..40_u8 {
                    assert_eq!(
                        missing(&cut, f32::from(width) / 4.0, 1),
                        0,
                        "U+{number:04X}"
                    );
                }
            }
        }
        assert_eq!(
            missing("aaam \u{641}aaak\u{5d0}\u{6aa} \u{600} a a", 2.365_243_4, 2),
            0
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn any_text_is_laid_out_in_its_room(text in "(?s).{0,80}|\\PC{0,200}|[\u{590}-\u{8ff} a-z]{0,80}", width in 1.0_f32..40.0) {
            let laid = TextPages::new(&text, room(width, 2), false);
            prop_assert!(laid.pages.iter().map(Vec::len).sum::<usize>() <= 6);
            for part in laid.pages.iter().flatten() {
                let line = laid.paragraph.line(part);
                prop_assert!(line.width.is_finite());
                prop_assert!(line.glyphs.iter().all(|glyph| glyph.id.to_u32() > 0));
            }
        }
    }
}
