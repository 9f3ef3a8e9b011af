//! Chooses the font of each character: built-in fonts in a fixed order, then system fonts, whose folders it reads at the
//! first character that needs them and never again. It shapes nothing and replaces no character by another.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use harfrust::{Font, Script, unicode};
use icu_segmenter::GraphemeClusterSegmenter;

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
fn is_wide(c: char) -> bool {
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

/// Choice of fonts for one text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FontChoice {
    /// Whether most of the text is Chinese or Japanese.
    wide: bool,
    /// Whether system fonts may fill gaps.
    system: bool,
}

impl FontChoice {
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
        // A quotation mark or dash in a Chinese text is as wide as its letters, so the Chinese font
        // goes first for all but ASCII.
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
        // The first font with the visible letter, if none has its accents too.
        let mut half = None;
        for font in self.order(cluster).filter(|font| sets(font, base)) {
            if cluster.chars().all(|c| sets(font, c)) {
                return Some(font);
            }
            half = half.or(Some(font));
        }
        half.or_else(|| self.system.then(|| font_of(base))?)
    }
}

/// The parts of `text` to choose a font for: its grapheme clusters, but the characters of a cluster that no font has
/// whole. An ellipsis joins an Arabic number sign before it, and no font has both.
pub(super) fn font_parts(text: &str, fonts: FontChoice) -> impl Iterator<Item = &str> {
    clusters(text).flat_map(move |cluster| {
        let split = fonts
            .font_of(cluster)
            .is_some_and(|font| !cluster.chars().all(|c| sets(font, c)));
        cluster.split_inclusive(move |_| split)
    })
}

/// A text without the characters that no font has, and these characters, each once.
#[derive(Debug)]
pub(super) struct SettableText {
    pub(super) text: String,
    pub(super) unset: Vec<char>,
}

/// Separates the characters of `text` that fonts have from the others. Runs of spaces of any kind become one space.
pub(super) fn separate_unset(text: &str, system: bool) -> SettableText {
    let mut settled = SettableText {
        text: text.to_owned(),
        unset: Vec::new(),
    };
    // A removed character may have separated two that form one cluster without it.
    for _ in 0..PASSES_MAX {
        let before = settled.text.len();
        remove_unset(&mut settled, system);
        if settled.text.len() == before {
            break;
        }
    }
    if settled.text.chars().all(is_silent) {
        settled.text.clear();
    }
    settled
}

fn remove_unset(settled: &mut SettableText, system: bool) {
    // Also removes double spaces around fillers and around characters that an earlier pass removed.
    let words: Vec<&str> = settled
        .text
        .split(|c: char| c.is_whitespace() || is_filler(c))
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ").replace(char::is_control, "");
    let fonts = FontChoice::new(&text, system);
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

/// The usual folders of Linux, macOS and Windows.
const FOLDERS: [&str; 5] = [
    "/usr/local/share/fonts",
    "/usr/share/fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
    "C:\\Windows\\Fonts",
];
const DEPTH_MAX: usize = 5;
const FILES_MAX: usize = 4_096;
const FILE_BYTES_MAX: u64 = 64 << 20;
const MAP_BYTES_MAX: u32 = 4 << 20;
/// Tables of a font's directory.
const TABLES_MAX: usize = 64;

/// A font file and its characters.
struct SystemFont {
    path: PathBuf,
    /// First and last characters of ranges, in order.
    covers: Vec<(u32, u32)>,
    font: OnceLock<Option<Font>>,
}

impl SystemFont {
    fn covers(&self, c: u32) -> bool {
        let after = self.covers.partition_point(|(first, _)| *first <= c);
        let stretch = after.checked_sub(1).and_then(|at| self.covers.get(at));
        stretch.is_some_and(|(_, last)| c <= *last)
    }

    fn font(&self) -> Option<&Font> {
        self.font
            .get_or_init(|| Font::new(fs::read(&self.path).ok()?, 0))
            .as_ref()
    }
}

/// The first system font that has an outline for `c`.
fn font_of(c: char) -> Option<&'static Font> {
    static FOUND: OnceLock<Vec<SystemFont>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find_system_fonts(&FOLDERS.map(Path::new)));
    let covering = found.iter().filter(|found| found.covers(u32::from(c)));
    covering
        .filter_map(SystemFont::font)
        .find(|font| font.charmap().map_unicode(c).is_some())
}

/// All font files under `folders`, in the order of their paths.
fn find_system_fonts(folders: &[&Path]) -> Vec<SystemFont> {
    let mut paths = Vec::new();
    for folder in folders {
        walk(folder, DEPTH_MAX, &mut paths);
    }
    paths
        .into_iter()
        .filter_map(|path| {
            let covers = coverage(&path)?;
            Some(SystemFont {
                path,
                covers,
                font: OnceLock::new(),
            })
        })
        .collect()
}

fn walk(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<PathBuf> = entries
        .take(FILES_MAX)
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    entries.sort();
    for path in entries {
        if paths.len() >= FILES_MAX {
            return;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_font = ["ttf", "otf", "ttc"]
            .map(|font| ending.is_some_and(|one| one.eq_ignore_ascii_case(font)));
        if is_font.contains(&true) {
            paths.push(path);
        } else if depth > 1 && ending.is_none() {
            walk(&path, depth - 1, paths);
        }
    }
}

/// The characters of the first font in a file; `None` unless it is a font with plain outlines. Reads only its directory
/// and its character map. Format: OpenType 1.9, "Organization of an OpenType Font".
fn coverage(path: &Path) -> Option<Vec<(u32, u32)>> {
    let mut file = File::open(path).ok()?;
    let kind = file.metadata().ok()?;
    if !kind.is_file() || kind.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut start = 0;
    // The directory and one table of each file are read: whole, hundreds of fonts with some tens of
    // megabytes each would take seconds.
    let mut head = read_part(&mut file, 0, 16)?;
    // A collection: its first font begins at an offset in its header.
    if head.starts_with(b"ttcf") {
        start = word(&head, 12)?;
        head = read_part(&mut file, start, 12)?;
    }
    let count = (word(&head, 4)? >> 16) as usize;
    let directory = read_part(
        &mut file,
        start.checked_add(12)?,
        count.min(TABLES_MAX) * 16,
    )?;
    let table = |name: &[u8]| {
        directory
            .chunks_exact(16)
            .find(|entry| entry.starts_with(name))
    };
    // Fonts in colour have no outlines that could be filled with one ink.
    let coloured = [&b"COLR"[..], b"CBDT", b"sbix", b"SVG "];
    let outlined = table(b"glyf").or_else(|| table(b"CFF "));
    if outlined.is_none() || coloured.iter().any(|name| table(name).is_some()) {
        return None;
    }
    let map = table(b"cmap")?;
    let bytes = word(map, 12)?.min(MAP_BYTES_MAX) as usize;
    let map = read_part(&mut file, word(map, 8)?, bytes)?;
    Some(stretches(map))
}

/// Parses a character map through a font file that contains only this table.
fn stretches(map: Vec<u8>) -> Vec<(u32, u32)> {
    let Some(font) = Font::new(only_map(&map), 0) else {
        return Vec::new();
    };
    let mut mapped: Vec<u32> = font.charmap().unicodes().map(|(code, _)| code).collect();
    mapped.sort_unstable();
    let mut covers: Vec<(u32, u32)> = Vec::new();
    for code in mapped {
        match covers.last_mut() {
            Some((_, last)) if code <= *last + 1 => *last = code,
            _ => covers.push((code, code)),
        }
    }
    covers
}

/// A font file with one table, `cmap`.
fn only_map(map: &[u8]) -> Vec<u8> {
    // The version, one table, and three fields for a binary search that no reader needs.
    let mut file = vec![0, 1, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0];
    file.extend(b"cmap");
    file.extend([0; 4]);
    file.extend(28_u32.to_be_bytes());
    file.extend((map.len() as u32).to_be_bytes());
    file.extend(map);
    file
}

fn read_part(file: &mut File, start: u32, bytes: usize) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(start.into())).ok()?;
    let mut part = vec![0; bytes];
    file.read_exact(&mut part).ok()?;
    Some(part)
}

/// The big-endian number at byte `at`.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*four))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn every_font_of_the_binary_opens() {
        assert_eq!(built_in().len(), FILES.len());
    }

    #[test]
    fn each_script_has_its_font_and_an_emoji_its_own() {
        let fonts = FontChoice::new("", false);
        let at = |cluster: &str| {
            let font = fonts.font_of(cluster);
            built_in()
                .iter()
                .position(|one| font.is_some_and(|font| ptr::eq(font, one)))
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
            let font = FontChoice::new(text, false).font_of("“");
            font.is_some_and(|font| ptr::eq(font, &built_in()[CJK]))
        };
        assert!(is_cjk("他说“你好”"));
        assert!(!is_cjk("He says “hello”"));
    }

    #[test]
    fn what_no_font_sets_is_named_once_and_in_order() {
        let settled = separate_unset("a \u{e001} b\n\u{e000}\u{e001} \u{7}c", false);
        assert_eq!(settled.text, "a b c");
        assert_eq!(settled.unset, ['\u{e001}', '\u{e000}']);
    }

    #[test]
    fn a_folder_of_fonts_is_surveyed_without_reading_them_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fonts");
        let found = find_system_fonts(&[&folder, Path::new("/nowhere")]);
        let covering = |c: char| -> Vec<String> {
            let covering = found.iter().filter(|found| found.covers(u32::from(c)));
            let name = |found: &SystemFont| {
                found
                    .path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            };
            covering.map(name).collect()
        };
        assert_eq!(covering('ไ'), ["NotoSansThai.ttf"]);
        assert_eq!(covering('한'), ["NotoSansCJK.otf"]);
        assert!(covering('\u{e000}').is_empty());
        assert!(found.iter().all(|found| found.font.get().is_none()));
        assert!(found.iter().all(|found| found.font().is_some()));
    }
}
