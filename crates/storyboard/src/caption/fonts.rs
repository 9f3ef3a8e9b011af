//! Chooses the font of each character: built-in fonts in a fixed order, then system fonts. It shapes nothing and
//! replaces no character by another.

use std::ptr;
use std::sync::OnceLock;

use harfrust::{Font, Script, unicode};
use icu_segmenter::GraphemeClusterSegmenter;

use super::system;

/// Subsets of Noto fonts, made by `fonts/subset.sh`. The first font that has a character sets it.
static FILES: [&[u8]; 9] = [
    include_bytes!("../../fonts/NotoSans.ttf"),
    include_bytes!("../../fonts/NotoSansArabic.ttf"),
    include_bytes!("../../fonts/NotoSansHebrew.ttf"),
    include_bytes!("../../fonts/NotoSansDevanagari.ttf"),
    include_bytes!("../../fonts/NotoSansThai.ttf"),
    include_bytes!("../../fonts/NotoSansCJK.otf"),
    include_bytes!("../../fonts/NotoSansMath.ttf"),
    include_bytes!("../../fonts/NotoSansSymbols2.ttf"),
    include_bytes!("../../fonts/NotoEmoji.ttf"),
];
const CJK: usize = 5;
const EMOJI: usize = 8;
/// Maximum number of passes over a text, since each may leave characters out.
const PASSES_MAX: usize = 8;
/// Selects the emoji of a character that also has a text form.
const EMOJI_STYLE: char = '\u{fe0f}';

fn built_in() -> &'static [Font] {
    static FONTS: OnceLock<Vec<Font>> = OnceLock::new();
    FONTS.get_or_init(|| {
        let fonts = FILES.iter().filter_map(|file| Font::new(*file, 0));
        fonts.collect()
    })
}

/// Whether `c` is a Chinese character or kana. Text of these also takes wide quotation marks and dashes.
pub(super) fn is_wide(c: char) -> bool {
    let script = unicode::script(u32::from(c));
    [Script::HAN, Script::HIRAGANA, Script::KATAKANA].contains(&script)
}

/// Whether `c` is blank but a letter to Unicode, so that shapers draw the box of a missing glyph for it: the Hangul
/// fillers, which people use as spaces that survive trimming, and shorthand format controls.
fn is_filler(c: char) -> bool {
    matches!(u32::from(c), 0x115f..=0x1160 | 0x3164 | 0xffa0 | 0x1bca0..=0x1bca3)
}

/// Whether `c` is invisible by design: spaces, controls, joiners, selectors and direction marks
/// (Unicode's `Default_Ignorable_Code_Point`).
pub(super) fn is_silent(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
            | 0xfeff | 0xffa0 | 0xfff0..=0xfff8 | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff)
}

fn sets(font: &Font, c: char) -> bool {
    is_silent(c) || font.charmap().map_unicode(c).is_some()
}

/// How to choose the fonts of one text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fonts {
    /// Whether most of the text is Chinese or Japanese.
    wide: bool,
    /// Whether system fonts may fill gaps.
    system: bool,
}

impl Fonts {
    pub(super) fn new(text: &str, system: bool) -> Self {
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        let wide = text.chars().filter(|c| is_wide(*c)).count();
        Self {
            wide: wide * 2 > letters,
            system,
        }
    }

    /// The built-in fonts in the order in which to try them for `cluster`.
    fn order(self, cluster: &str) -> impl Iterator<Item = &'static Font> {
        let first = if cluster.contains(EMOJI_STYLE) {
            Some(EMOJI)
        } else {
            cluster
                .chars()
                .any(|c| is_wide(c) || self.wide && !c.is_ascii())
                .then_some(CJK)
        };
        let fonts = built_in();
        first
            .and_then(|first| fonts.get(first))
            .into_iter()
            .chain(fonts)
    }

    /// The font of a grapheme cluster: the first that has all its characters, else the first that has its first
    /// visible one. `None` if no font has that, or if nothing in the cluster is visible.
    pub(super) fn font_of(self, cluster: &str) -> Option<&'static Font> {
        let base = cluster.chars().find(|c| !is_silent(*c))?;
        let mut half = None;
        for font in self.order(cluster).filter(|font| sets(font, base)) {
            if cluster.chars().all(|c| sets(font, c)) {
                return Some(font);
            }
            half = half.or(Some(font));
        }
        half.or_else(|| self.system.then(|| system::font_of(base))?)
    }
}

/// The parts of `text` to choose a font for: its grapheme clusters, but the characters of a cluster that no font has
/// whole. An ellipsis joins an Arabic number sign before it, and no font has both.
pub(super) fn parts(text: &str, fonts: Fonts) -> impl Iterator<Item = &str> {
    clusters(text).flat_map(move |cluster| {
        let split = fonts
            .font_of(cluster)
            .is_some_and(|font| !cluster.chars().all(|c| sets(font, c)));
        cluster.split_inclusive(move |_| split)
    })
}

/// A text without the characters that no font has, and these characters, each once.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) text: String,
    pub(super) unset: Vec<char>,
}

/// Separates the characters of `text` that fonts have from the others. Runs of spaces of any kind become one space.
pub(super) fn settle(text: &str, system: bool) -> Settled {
    let mut settled = Settled {
        text: text.to_owned(),
        unset: Vec::new(),
    };
    // A removed character may have separated two that form one cluster without it.
    for _ in 0..PASSES_MAX {
        let before = settled.text.len();
        pass(&mut settled, system);
        if settled.text.len() == before {
            break;
        }
    }
    if settled.text.chars().all(is_silent) {
        settled.text.clear();
    }
    settled
}

fn pass(settled: &mut Settled, system: bool) {
    // Also removes double spaces around fillers and around characters that an earlier pass removed.
    let words: Vec<&str> = settled
        .text
        .split(|c: char| c.is_whitespace() || is_filler(c))
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ").replace(char::is_control, "");
    let fonts = Fonts::new(&text, system);
    let mut kept = String::with_capacity(text.len());
    for cluster in clusters(&text) {
        let font = fonts.font_of(cluster);
        for c in cluster.chars() {
            if is_silent(c) || font.is_some_and(|font| sets(font, c)) {
                kept.push(c);
            } else if !settled.unset.contains(&c) {
                settled.unset.push(c);
            }
        }
    }
    settled.text = kept;
}

/// The grapheme clusters of `text` in order: a reader sees each as one character.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let ends = GraphemeClusterSegmenter::new()
        .segment_str(text)
        .collect::<Vec<usize>>();
    let pairs = ends.clone().into_iter().zip(ends.into_iter().skip(1));
    pairs.filter_map(|(start, end)| text.get(start..end))
}

/// Whether both references point to the same font.
pub(super) fn same(one: &'static Font, other: &'static Font) -> bool {
    ptr::eq(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_font_of_the_binary_opens() {
        assert_eq!(built_in().len(), FILES.len());
    }

    #[test]
    fn each_script_has_its_font_and_an_emoji_its_own() {
        let fonts = Fonts::new("", false);
        let at = |cluster: &str| {
            let font = fonts.font_of(cluster);
            built_in()
                .iter()
                .position(|one| font.is_some_and(|font| same(font, one)))
        };
        let found: Vec<_> = [
            "a",
            "ж",
            "ế",
            "ع",
            "ש",
            "कि",
            "ที่",
            "中",
            "한",
            "ひ",
            "🦊",
            "❤\u{fe0f}",
        ]
        .map(at)
        .into_iter()
        .flatten()
        .collect();
        assert_eq!(found, [0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 8, 8]);
        assert_eq!(at("\u{e000}"), None);
    }

    #[test]
    fn quotation_marks_are_as_wide_as_the_text_around_them() {
        let is_cjk = |text: &str| {
            let font = Fonts::new(text, false).font_of("“");
            font.is_some_and(|font| same(font, &built_in()[CJK]))
        };
        assert!(is_cjk("他说“你好”"));
        assert!(!is_cjk("He says “hello”"));
    }

    #[test]
    fn what_no_font_sets_is_named_once_and_in_order() {
        let settled = settle("a \u{e001} b\n\u{e000}\u{e001} \u{7}c", false);
        assert_eq!(settled.text, "a b c");
        assert_eq!(settled.unset, ['\u{e001}', '\u{e000}']);
    }
}
