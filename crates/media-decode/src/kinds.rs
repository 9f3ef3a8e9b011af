//! Names the kind of an unusable file by its first bytes: one table for images and sounds. The
//! sentences contain nothing of the file itself.

use crate::signatures::{Container, Format};

/// Number of bytes inspected.
const HEAD_BYTES: usize = 1_024;

const SEND_IMAGE: &str = "send JPEG, PNG, WebP or GIF";
const SEND_SOUND: &str = "send WAV, MP3, M4A, FLAC, Ogg or WebM";

const SVG: &str = "the file is SVG; send JPEG, PNG, WebP or GIF.";

/// The kind of file that the reference requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Image,
    Sound,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Image,
    Sound,
    Video,
    /// Neither; the name includes its article.
    Other,
}

/// Name, sort, and the bytes at an offset by which it is recognised.
type Row = (&'static str, Sort, usize, &'static [u8]);

/// The first matching row wins.
const TABLE: &[Row] = &[
    ("JPEG", Sort::Image, 0, b"\xff\xd8\xff"),
    ("PNG", Sort::Image, 0, b"\x89PNG\r\n\x1a\n"),
    ("GIF", Sort::Image, 0, b"GIF8"),
    ("WebP", Sort::Image, 8, b"WEBP"),
    ("HEIC", Sort::Image, 4, b"ftyphe"),
    ("AVIF", Sort::Image, 4, b"ftypavi"),
    ("HEIC or AVIF", Sort::Image, 4, b"ftypmif1"),
    ("HEIC or AVIF", Sort::Image, 4, b"ftypmsf1"),
    ("Canon raw", Sort::Image, 4, b"ftypcrx"),
    ("TIFF or camera raw", Sort::Image, 0, b"II*\0"),
    ("TIFF or camera raw", Sort::Image, 0, b"MM\0*"),
    ("TIFF", Sort::Image, 0, b"II+\0"),
    ("TIFF", Sort::Image, 0, b"MM\0+"),
    ("BMP", Sort::Image, 6, b"\0\0\0\0"),
    ("JPEG 2000", Sort::Image, 0, b"\0\0\0\x0cjP  \r\n\x87\n"),
    ("JPEG 2000", Sort::Image, 0, b"\xff\x4f\xff\x51"),
    ("JPEG XL", Sort::Image, 0, b"\0\0\0\x0cJXL \r\n\x87\n"),
    ("JPEG XL", Sort::Image, 0, b"\xff\x0a"),
    ("ICO", Sort::Image, 0, b"\0\0\x01\0"),
    ("ICNS", Sort::Image, 0, b"icns"),
    ("PSD", Sort::Image, 0, b"8BPS"),
    ("XCF", Sort::Image, 0, b"gimp xcf"),
    ("OpenEXR", Sort::Image, 0, b"\x76\x2f\x31\x01"),
    ("Radiance HDR", Sort::Image, 0, b"#?RADIANCE"),
    ("DDS", Sort::Image, 0, b"DDS "),
    ("QOI", Sort::Image, 0, b"qoif"),
    ("PBM", Sort::Image, 0, b"P4\n"),
    ("PGM", Sort::Image, 0, b"P5\n"),
    ("PPM", Sort::Image, 0, b"P6\n"),
    ("WAV", Sort::Sound, 8, b"WAVE"),
    ("AVI", Sort::Video, 8, b"AVI "),
    ("FLAC", Sort::Sound, 0, b"fLaC"),
    ("Ogg", Sort::Sound, 0, b"OggS"),
    ("MP3", Sort::Sound, 0, b"ID3"),
    ("M4A", Sort::Sound, 4, b"ftypM4A"),
    ("M4B", Sort::Sound, 4, b"ftypM4B"),
    ("MOV", Sort::Video, 4, b"ftypqt  "),
    ("MP4", Sort::Video, 4, b"ftyp"),
    ("MOV", Sort::Video, 4, b"moov"),
    ("MOV", Sort::Video, 4, b"mdat"),
    ("MOV", Sort::Video, 4, b"wide"),
    ("WebM or Matroska", Sort::Video, 0, b"\x1aE\xdf\xa3"),
    ("FLV", Sort::Video, 0, b"FLV\x01"),
    ("MPEG", Sort::Video, 0, b"\0\0\x01\xba"),
    ("MPEG", Sort::Video, 0, b"\0\0\x01\xb3"),
    ("MPEG-TS", Sort::Video, 188, b"\x47"),
    (
        "WMA or WMV",
        Sort::Sound,
        0,
        b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
    ),
    ("AIFF", Sort::Sound, 8, b"AIFF"),
    ("AIFF", Sort::Sound, 8, b"AIFC"),
    ("AMR", Sort::Sound, 0, b"#!AMR"),
    ("MIDI", Sort::Sound, 0, b"MThd"),
    ("CAF", Sort::Sound, 0, b"caff"),
    ("W64", Sort::Sound, 0, b"riff\x2e\x91\xcf\x11"),
    ("AU", Sort::Sound, 0, b".snd"),
    ("RIFX", Sort::Sound, 0, b"RIFX"),
    ("AC-3", Sort::Sound, 0, b"\x0b\x77"),
    ("DSF", Sort::Sound, 0, b"DSD "),
    ("Monkey's Audio", Sort::Sound, 0, b"MAC "),
    ("WavPack", Sort::Sound, 0, b"wvpk"),
    ("Musepack", Sort::Sound, 0, b"MPCK"),
    ("RealAudio", Sort::Sound, 0, b".ra\xfd"),
    ("a PDF", Sort::Other, 0, b"%PDF"),
    ("PostScript", Sort::Other, 0, b"%!PS"),
    ("a ZIP archive", Sort::Other, 0, b"PK\x03\x04"),
    ("a ZIP archive", Sort::Other, 0, b"PK\x05\x06"),
    ("a gzip archive", Sort::Other, 0, b"\x1f\x8b"),
    ("a 7-Zip archive", Sort::Other, 0, b"7z\xbc\xaf\x27\x1c"),
    ("a RAR archive", Sort::Other, 0, b"Rar!\x1a\x07"),
    ("a Zstandard archive", Sort::Other, 0, b"\x28\xb5\x2f\xfd"),
    ("an XZ archive", Sort::Other, 0, b"\xfd7zXZ\0"),
    ("a bzip2 archive", Sort::Other, 0, b"BZh"),
    ("a TAR archive", Sort::Other, 257, b"ustar"),
    (
        "an Office document",
        Sort::Other,
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    ),
    ("an SQLite database", Sort::Other, 0, b"SQLite format 3\0"),
    ("a program", Sort::Other, 0, b"\x7fELF"),
    ("a DICOM file", Sort::Other, 128, b"DICM"),
];

/// Prefixes required in addition, for signatures that are too short or not at the start.
const FIRST: &[(&str, &[u8])] = &[
    ("BMP", b"BM"),
    ("WebP", b"RIFF"),
    ("AVI", b"RIFF"),
    ("AIFF", b"FORM"),
    ("MPEG-TS", b"\x47"),
];

/// The first bytes of `file`, enough for [`says`].
pub(crate) fn head(file: &[u8]) -> Vec<u8> {
    file[..file.len().min(HEAD_BYTES)].to_vec()
}

/// Whether `bytes` begin an image or a sound that this crate reads.
pub fn is_reference(bytes: &[u8]) -> bool {
    Format::of(bytes).is_some() || Container::of(bytes).is_some() || bytes.starts_with(b"ID3")
}

/// Whether `head` begins a file that this crate reads as what is wanted.
pub(crate) fn is_wanted(head: &[u8], wanted: Wanted) -> bool {
    match wanted {
        Wanted::Image => Format::of(head).is_some(),
        Wanted::Sound => {
            let is_image = matches!(binary(head), Some((_, Sort::Image)));
            is_reference(head) && !is_image
        }
    }
}

/// Says what the file that begins with `head` is, and what to send instead: a sentence that
/// begins in lower case and ends with a full stop.
pub(crate) fn says(head: &[u8], wanted: Wanted) -> String {
    let send = match wanted {
        Wanted::Image => SEND_IMAGE,
        Wanted::Sound => SEND_SOUND,
    };
    if head.is_empty() {
        return "the file is empty.".to_owned();
    }
    if let Some((name, sort)) = binary(head) {
        return match (sort, wanted) {
            (Sort::Image, Wanted::Image) | (Sort::Sound, Wanted::Sound) => {
                if is_wanted(head, wanted) {
                    format!("the {name} is damaged or of a kind that is not read; save it anew.")
                } else {
                    format!("the file is {name}; {send}.")
                }
            }
            (Sort::Image, Wanted::Sound) => format!("the file is a picture ({name}); {send}."),
            (Sort::Sound, Wanted::Image) => format!("the file is sound ({name}); {send}."),
            (Sort::Video, Wanted::Image) => format!("the file is a video ({name}); {send}."),
            (Sort::Video, Wanted::Sound) => format!(
                "the file is a video ({name}) without sound, or with sound of a kind that is not \
                 read; {send}."
            ),
            (Sort::Other, _) => format!("the file is {name}; {send}."),
        };
    }
    match text(head) {
        Some(SVG) if wanted == Wanted::Sound => format!("the file is a picture (SVG); {send}."),
        Some(what) => what.to_owned(),
        None if wanted == Wanted::Sound => {
            format!("the file is of no known kind, such as samples without a header; {send}.")
        }
        None => format!("the file is of no known kind; {send}."),
    }
}

fn binary(head: &[u8]) -> Option<(&'static str, Sort)> {
    // The order of the table matters: special brands stand before the general `ftyp`.
    let listed = TABLE.iter().find(|&&(name, _, at, magic)| {
        let mut first = FIRST.iter().filter(|(of, _)| *of == name);
        head.get(at..).is_some_and(|from| from.starts_with(magic))
            && first.all(|(_, magic)| head.starts_with(magic))
    });
    if let Some(&(name, sort, ..)) = listed {
        return Some((name, sort));
    }
    // Streams without a header of their own.
    if matches!(head, &[0xff, second, ..] if second & 0xe6 == 0xe4) {
        return Some(("MP2", Sort::Sound));
    }
    match Container::of(head)? {
        Container::Mp3 => Some(("MP3", Sort::Sound)),
        Container::Adts => Some(("AAC", Sort::Sound)),
        _ => None,
    }
}

/// Recognises common kinds of text, and says what to do.
fn text(head: &[u8]) -> Option<&'static str> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // A letter may be cut at the end.
    let text = match str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    // Binary data without a known signature: valid UTF-8 by chance, but with control characters.
    if text
        .chars()
        .any(|one| one.is_control() && !one.is_whitespace())
    {
        return None;
    }
    let text = text.trim_start().to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    Some(if text.starts_with("version https://git-lfs") {
        "the file is a Git LFS pointer; use the address of the content it points to."
    } else if text.starts_with('{') || text.starts_with('[') {
        "the server sent JSON, such as an error, instead of the file."
    } else if text.starts_with("data:")
        || text.starts_with("ivborw0kggo")
        || text.starts_with("/9j/")
    {
        "the file is base64 text; send the bytes themselves."
    } else if !text.starts_with('<') {
        "the file is text; check that the address is that of the file itself."
    } else if has("<html")
        || has("<!doctype html")
        || has("<head")
        || has("<body")
        || has("<script")
    {
        "the server sent an HTML page: is hot-linking not allowed, or does the file need a login?"
    } else if has("<svg") {
        SVG
    } else if has("<code>accessdenied") || has("<code>expiredtoken") {
        "the server sent an XML error (access denied): has a signed address expired?"
    } else if has("<error") {
        "the server sent an XML error instead of the file."
    } else {
        "the file is XML; check that the address is that of the file itself."
    })
}
