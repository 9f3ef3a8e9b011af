//! System fonts, for characters that the built-in fonts lack. It reads the font folders at the first such character
//! and never again. It skips files that it cannot read; captions then leave the characters out.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use harfrust::Font;

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
struct Found {
    path: PathBuf,
    /// First and last characters of ranges, in order.
    covers: Vec<(u32, u32)>,
    font: OnceLock<Option<Font>>,
}

impl Found {
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
pub(super) fn font_of(c: char) -> Option<&'static Font> {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    let found = FOUND.get_or_init(|| survey(&FOLDERS.map(Path::new)));
    let covering = found.iter().filter(|found| found.covers(u32::from(c)));
    covering
        .filter_map(Found::font)
        .find(|font| font.charmap().map_unicode(c).is_some())
}

/// All font files under `folders`, in the order of their paths.
fn survey(folders: &[&Path]) -> Vec<Found> {
    let mut paths = Vec::new();
    for folder in folders {
        walk(folder, DEPTH_MAX, &mut paths);
    }
    paths
        .into_iter()
        .filter_map(|path| {
            let covers = coverage(&path)?;
            Some(Found {
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
    let mut head = part(&mut file, 0, 16)?;
    if head.starts_with(b"ttcf") {
        start = word(&head, 12)?;
        head = part(&mut file, start, 12)?;
    }
    let count = (word(&head, 4)? >> 16) as usize;
    let directory = part(
        &mut file,
        start.checked_add(12)?,
        count.min(TABLES_MAX) * 16,
    )?;
    let table = |name: &[u8]| {
        directory
            .chunks_exact(16)
            .find(|entry| entry.starts_with(name))
    };
    let coloured = [&b"COLR"[..], b"CBDT", b"sbix", b"SVG "];
    let outlined = table(b"glyf").or_else(|| table(b"CFF "));
    if outlined.is_none() || coloured.iter().any(|name| table(name).is_some()) {
        return None;
    }
    let map = table(b"cmap")?;
    let bytes = word(map, 12)?.min(MAP_BYTES_MAX) as usize;
    let map = part(&mut file, word(map, 8)?, bytes)?;
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
    let mut file = vec![0, 1, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0];
    file.extend(b"cmap");
    file.extend([0; 4]);
    file.extend(28_u32.to_be_bytes());
    file.extend((map.len() as u32).to_be_bytes());
    file.extend(map);
    file
}

fn part(file: &mut File, start: u32, bytes: usize) -> Option<Vec<u8>> {
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
    use super::*;

    #[test]
    fn a_folder_of_fonts_is_surveyed_without_reading_them_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fonts");
        let found = survey(&[&folder, Path::new("/nowhere")]);
        let covering = |c: char| -> Vec<String> {
            let covering = found.iter().filter(|found| found.covers(u32::from(c)));
            let name = |found: &Found| {
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
