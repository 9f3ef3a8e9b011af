//! Detects the type of a reference file by its first bytes, also of MP3 and ADTS streams that
//! begin with padding. Does not check whether the file can be decoded. Formats of the frames:
//! ISO/IEC 11172-3, 13818-3 and 13818-7.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The supported formats of images.
#[derive(Clone, Copy)]
pub(crate) enum ImageFormat {
    Jpeg,
    Png,
    WebP,
    Gif,
}

impl ImageFormat {
    /// The format whose signature `bytes` begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else {
            None
        }
    }
}

/// The supported kinds of sound file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoundContainer {
    Wav,
    Mp3,
    Adts,
    Mp4,
    Flac,
    Ogg,
    OggOpus,
    /// Also `WebM`, what browsers record.
    Matroska,
}

impl SoundContainer {
    /// The kind of file whose signature `bytes` begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let at = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or(&[]);
        match at(0..4) {
            b"RIFF" | b"RF64" | b"BW64" if at(8..12) == b"WAVE" => Some(Self::Wav),
            b"\x1aE\xdf\xa3" => Some(Self::Matroska),
            b"fLaC" => Some(Self::Flac),
            b"OggS" => {
                // The first packet follows the table of segments (RFC 3533, section 6).
                let packet = 27 + usize::from(*bytes.get(26)?);
                let opus = at(packet..packet + 8) == b"OpusHead";
                Some(if opus { Self::OggOpus } else { Self::Ogg })
            }
            _ if at(4..8) == b"ftyp" => Some(Self::Mp4),
            &[0xff, second, ..] if second & 0xf6 == 0xf0 => Some(Self::Adts),
            &[0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }
}

/// Maximum distance to search for a frame, after leading zero bytes.
const SEARCH_BYTES: usize = 16 << 10;

/// Kilobits per second by index, of MPEG-1 and of MPEG-2 and 2.5, layer III.
const KILOBITS: [[usize; 15]; 2] = [
    [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
/// Samples per second by index, of MPEG-1.
const RATES: [usize; 3] = [44_100, 48_000, 32_000];

/// A frame by its header.
#[derive(PartialEq, Eq)]
struct MpegFrame {
    container: SoundContainer,
    /// The bits of the header that stay the same in a stream.
    stream: [u8; 3],
}

/// Finds the first place where two frames of one stream follow each other.
pub(crate) fn start(bytes: &[u8]) -> Option<(usize, SoundContainer)> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    (zeros..bytes.len().min(zeros + SEARCH_BYTES)).find_map(|at| {
        let (frame, length) = frame(&bytes[at..])?;
        // A sync word is only eleven bits and appears by chance in any data. Two frames of the
        // same stream in a row do not.
        let (next, _) = self::frame(bytes.get(at + length..)?)?;
        (frame == next).then_some((at, frame.container))
    })
}

/// The frame that `bytes` begin with, and its length.
fn frame(bytes: &[u8]) -> Option<(MpegFrame, usize)> {
    let header: &[u8; 6] = bytes.first_chunk()?;
    if header[0] != 0xff {
        return None;
    }
    if header[1] & 0xf6 == 0xf0 {
        let length = u32::from_be_bytes([0, header[3] & 3, header[4], header[5]]) >> 5;
        let stream = [header[1], header[2] & 0xfd, header[3] & 0xc0];
        let container = SoundContainer::Adts;
        let length = usize::try_from(length).ok()?;
        return (length >= 7).then_some((MpegFrame { container, stream }, length));
    }
    if header[1] & 0xe6 != 0xe2 {
        return None;
    }
    // 3 is MPEG-1, 2 is MPEG-2, 0 is 2.5.
    let (table, slower, unit) = match header[1] >> 3 & 3 {
        3 => (0, 1, 144_000),
        2 => (1, 2, 72_000),
        0 => (1, 4, 72_000),
        _ => return None,
    };
    let rate = RATES.get(usize::from(header[2] >> 2 & 3))? / slower;
    let kilobits = *KILOBITS[table].get(usize::from(header[2] >> 4))?;
    // Samples per frame / 8 x bit rate / sample rate, plus the padding byte: 1,152 samples in
    // MPEG-1, 576 in MPEG-2.
    let length = unit * kilobits / rate + usize::from(header[2] >> 1 & 1);
    let stream = [header[1] & 0xfe, header[2] & 0x0c, 0];
    let container = SoundContainer::Mp3;
    (kilobits > 0).then_some((MpegFrame { container, stream }, length))
}

/// Enough for the search for the first frame of an MP3.
const HEAD_BYTES: u64 = 2 * SEARCH_BYTES as u64;

/// The media type of the file at `path`, such as `image/png`; `None` for unsupported kinds.
///
/// # Errors
/// If the file cannot be read.
pub fn media_type(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    let image = ImageFormat::of(&head).map(|format| match format {
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Png => "image/png",
        ImageFormat::WebP => "image/webp",
        ImageFormat::Gif => "image/gif",
    });
    if head.starts_with(b"ID3") {
        return Ok(Some("audio/mpeg"));
    }
    Ok(image.or_else(|| {
        let container = SoundContainer::of(&head).or_else(|| Some(start(&head)?.1));
        container.map(|container| match container {
            SoundContainer::Wav => "audio/wav",
            SoundContainer::Mp3 => "audio/mpeg",
            SoundContainer::Adts => "audio/aac",
            SoundContainer::Mp4 => "audio/mp4",
            SoundContainer::Flac => "audio/flac",
            SoundContainer::Ogg | SoundContainer::OggOpus => "audio/ogg",
            SoundContainer::Matroska => "audio/webm",
        })
    }))
}
