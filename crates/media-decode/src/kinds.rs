//! Names the kind of an unusable file by its first bytes: one table for images and sounds. The
//! sentences contain nothing of the file itself.

use kinora_contract::FileKind;

use crate::signatures::{ImageFormat, SoundContainer};

/// Number of bytes inspected.
pub(crate) const HEAD_BYTES: usize = 1_024;

const SEND_IMAGE: &str = "send JPEG, PNG, WebP or GIF";
const SEND_SOUND: &str = "send WAV, MP3, M4A, FLAC, Ogg or WebM";

const SVG: &str = "the file is SVG; send JPEG, PNG, WebP or GIF.";

/// The kind of file that the reference requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Image,
    Sound,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileCategory {
    Image,
    Sound,
    Video,
    /// Neither; the name includes its article.
    Other,
}

/// Name, sort, and the bytes at an offset by which it is recognised.
type SignatureRow = (&'static str, FileCategory, usize, &'static [u8]);

/// The first matching row wins.
const TABLE: &[SignatureRow] = &[
    ("JPEG", FileCategory::Image, 0, b"\xff\xd8\xff"),
    ("PNG", FileCategory::Image, 0, b"\x89PNG\r\n\x1a\n"),
    ("GIF", FileCategory::Image, 0, b"GIF8"),
    ("WebP", FileCategory::Image, 8, b"WEBP"),
    ("HEIC", FileCategory::Image, 4, b"ftyphe"),
    ("AVIF", FileCategory::Image, 4, b"ftypavi"),
    ("HEIC or AVIF", FileCategory::Image, 4, b"ftypmif1"),
    ("HEIC or AVIF", FileCategory::Image, 4, b"ftypmsf1"),
    ("Canon raw", FileCategory::Image, 4, b"ftypcrx"),
    ("TIFF or camera raw", FileCategory::Image, 0, b"II*\0"),
    ("TIFF or camera raw", FileCategory::Image, 0, b"MM\0*"),
    ("TIFF", FileCategory::Image, 0, b"II+\0"),
    ("TIFF", FileCategory::Image, 0, b"MM\0+"),
    ("BMP", FileCategory::Image, 6, b"\0\0\0\0"),
    (
        "JPEG 2000",
        FileCategory::Image,
        0,
        b"\0\0\0\x0cjP  \r\n\x87\n",
    ),
    ("JPEG 2000", FileCategory::Image, 0, b"\xff\x4f\xff\x51"),
    (
        "JPEG XL",
        FileCategory::Image,
        0,
        b"\0\0\0\x0cJXL \r\n\x87\n",
    ),
    ("JPEG XL", FileCategory::Image, 0, b"\xff\x0a"),
    ("ICO", FileCategory::Image, 0, b"\0\0\x01\0"),
    ("ICNS", FileCategory::Image, 0, b"icns"),
    ("PSD", FileCategory::Image, 0, b"8BPS"),
    ("XCF", FileCategory::Image, 0, b"gimp xcf"),
    ("OpenEXR", FileCategory::Image, 0, b"\x76\x2f\x31\x01"),
    ("Radiance HDR", FileCategory::Image, 0, b"#?RADIANCE"),
    ("DDS", FileCategory::Image, 0, b"DDS "),
    ("QOI", FileCategory::Image, 0, b"qoif"),
    ("PBM", FileCategory::Image, 0, b"P4\n"),
    ("PGM", FileCategory::Image, 0, b"P5\n"),
    ("PPM", FileCategory::Image, 0, b"P6\n"),
    ("WAV", FileCategory::Sound, 8, b"WAVE"),
    ("AVI", FileCategory::Video, 8, b"AVI "),
    ("FLAC", FileCategory::Sound, 0, b"fLaC"),
    ("Ogg", FileCategory::Sound, 0, b"OggS"),
    ("MP3", FileCategory::Sound, 0, b"ID3"),
    ("M4A", FileCategory::Sound, 4, b"ftypM4A"),
    ("M4B", FileCategory::Sound, 4, b"ftypM4B"),
    ("MOV", FileCategory::Video, 4, b"ftypqt  "),
    ("MP4", FileCategory::Video, 4, b"ftyp"),
    ("MOV", FileCategory::Video, 4, b"moov"),
    ("MOV", FileCategory::Video, 4, b"mdat"),
    ("MOV", FileCategory::Video, 4, b"wide"),
    ("WebM or Matroska", FileCategory::Video, 0, b"\x1aE\xdf\xa3"),
    ("FLV", FileCategory::Video, 0, b"FLV\x01"),
    ("MPEG", FileCategory::Video, 0, b"\0\0\x01\xba"),
    ("MPEG", FileCategory::Video, 0, b"\0\0\x01\xb3"),
    ("MPEG-TS", FileCategory::Video, 188, b"\x47"),
    (
        "WMA or WMV",
        FileCategory::Sound,
        0,
        b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
    ),
    ("AIFF", FileCategory::Sound, 8, b"AIFF"),
    ("AIFF", FileCategory::Sound, 8, b"AIFC"),
    ("AMR", FileCategory::Sound, 0, b"#!AMR"),
    ("MIDI", FileCategory::Sound, 0, b"MThd"),
    ("CAF", FileCategory::Sound, 0, b"caff"),
    ("W64", FileCategory::Sound, 0, b"riff\x2e\x91\xcf\x11"),
    ("AU", FileCategory::Sound, 0, b".snd"),
    ("RIFX", FileCategory::Sound, 0, b"RIFX"),
    ("AC-3", FileCategory::Sound, 0, b"\x0b\x77"),
    ("DSF", FileCategory::Sound, 0, b"DSD "),
    ("Monkey's Audio", FileCategory::Sound, 0, b"MAC "),
    ("WavPack", FileCategory::Sound, 0, b"wvpk"),
    ("Musepack", FileCategory::Sound, 0, b"MPCK"),
    ("RealAudio", FileCategory::Sound, 0, b".ra\xfd"),
    ("a PDF", FileCategory::Other, 0, b"%PDF"),
    ("PostScript", FileCategory::Other, 0, b"%!PS"),
    ("a ZIP archive", FileCategory::Other, 0, b"PK\x03\x04"),
    ("a ZIP archive", FileCategory::Other, 0, b"PK\x05\x06"),
    ("a gzip archive", FileCategory::Other, 0, b"\x1f\x8b"),
    (
        "a 7-Zip archive",
        FileCategory::Other,
        0,
        b"7z\xbc\xaf\x27\x1c",
    ),
    ("a RAR archive", FileCategory::Other, 0, b"Rar!\x1a\x07"),
    (
        "a Zstandard archive",
        FileCategory::Other,
        0,
        b"\x28\xb5\x2f\xfd",
    ),
    ("an XZ archive", FileCategory::Other, 0, b"\xfd7zXZ\0"),
    ("a bzip2 archive", FileCategory::Other, 0, b"BZh"),
    ("a TAR archive", FileCategory::Other, 257, b"ustar"),
    (
        "an Office document",
        FileCategory::Other,
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    ),
    (
        "an SQLite database",
        FileCategory::Other,
        0,
        b"SQLite format 3\0",
    ),
    ("a program", FileCategory::Other, 0, b"\x7fELF"),
    ("a DICOM file", FileCategory::Other, 128, b"DICM"),
];

/// Prefixes required in addition, for signatures that are too short or not at the start.
const FIRST: &[(&str, &[u8])] = &[
    ("BMP", b"BM"),
    ("WebP", b"RIFF"),
    ("AVI", b"RIFF"),
    ("AIFF", b"FORM"),
    ("MPEG-TS", b"\x47"),
];

/// The first bytes of `file`, enough for [`describe`].
pub(crate) fn copy_head(file: &[u8]) -> Vec<u8> {
    file[..file.len().min(HEAD_BYTES)].to_vec()
}

/// Whether `bytes` begin an image or a sound that this crate reads.
pub fn is_reference(bytes: &[u8]) -> bool {
    ImageFormat::of(bytes).is_some()
        || SoundContainer::of(bytes).is_some()
        || bytes.starts_with(b"ID3")
}

/// Whether `head` begins a file that this crate reads as what is wanted.
pub(crate) fn is_supported(head: &[u8], wanted: ReferenceKind) -> bool {
    match wanted {
        ReferenceKind::Image => ImageFormat::of(head).is_some(),
        ReferenceKind::Sound => {
            let is_image = matches!(binary(head), Some((_, FileCategory::Image)));
            is_reference(head) && !is_image
        }
    }
}

/// Says what the file that begins with `head` is, and what to send instead: a sentence that
/// begins in lower case and ends with a full stop.
pub(crate) fn describe(head: &[u8], wanted: ReferenceKind) -> String {
    let send = match wanted {
        ReferenceKind::Image => SEND_IMAGE,
        ReferenceKind::Sound => SEND_SOUND,
    };
    if head.is_empty() {
        return "the file is empty.".to_owned();
    }
    if let Some((name, sort)) = binary(head) {
        return match (sort, wanted) {
            (FileCategory::Image, ReferenceKind::Image)
            | (FileCategory::Sound, ReferenceKind::Sound) => {
                if is_supported(head, wanted) {
                    format!("the {name} is damaged or of a kind that is not read; save it anew.")
                } else {
                    format!("the file is {name}; {send}.")
                }
            }
            (FileCategory::Image, ReferenceKind::Sound) => {
                format!("the file is a picture ({name}); {send}.")
            }
            (FileCategory::Sound, ReferenceKind::Image) => {
                format!("the file is sound ({name}); {send}.")
            }
            (FileCategory::Video, ReferenceKind::Image) => {
                format!("the file is a video ({name}); {send}.")
            }
            (FileCategory::Video, ReferenceKind::Sound) => format!(
                "the file is a video ({name}) without sound, or with sound of a kind that is not \
                 read; {send}."
            ),
            (FileCategory::Other, _) => format!("the file is {name}; {send}."),
        };
    }
    match text(head) {
        Some(SVG) if wanted == ReferenceKind::Sound => {
            format!("the file is a picture (SVG); {send}.")
        }
        Some(what) => what.to_owned(),
        None if wanted == ReferenceKind::Sound => {
            format!("the file is of no known kind, such as samples without a header; {send}.")
        }
        None => format!("the file is of no known kind; {send}."),
    }
}

/// What the file that begins with `head` is, for a caller that has not said what it wants. Else the
/// sentence that refuses a file that is neither.
pub(crate) fn kind_of(head: &[u8]) -> Result<FileKind, String> {
    let what = match binary(head) {
        Some((_, FileCategory::Image)) => return Ok(FileKind::Image),
        Some((_, FileCategory::Sound | FileCategory::Video)) => return Ok(FileKind::Audio),
        Some((name, FileCategory::Other)) => name,
        None if text(head) == Some(SVG) => return Ok(FileKind::Image),
        None if head.is_empty() => return Err("the file is empty.".to_owned()),
        None if text(head).is_some() => "text",
        None => "of no known kind",
    };
    Err(format!(
        "the file is {what}; {SEND_IMAGE}, or {SEND_SOUND}."
    ))
}

fn binary(head: &[u8]) -> Option<(&'static str, FileCategory)> {
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
        return Some(("MP2", FileCategory::Sound));
    }
    match SoundContainer::of(head)? {
        SoundContainer::Mp3 => Some(("MP3", FileCategory::Sound)),
        SoundContainer::Adts => Some(("AAC", FileCategory::Sound)),
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
