//! Detects the type of a reference by its first bytes, for engines that pass references on. It does
//! not check whether the file can be decoded.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::mpeg;
use crate::signatures::{Container, Format};

/// Enough for the search for the first frame of an MP3.
const HEAD_BYTES: u64 = 2 * mpeg::SEARCH_BYTES as u64;

/// The media type of the file at `path`, such as `image/png`; `None` for unsupported kinds.
///
/// # Errors
/// If the file cannot be read.
pub fn media_type(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    let image = Format::of(&head).map(|format| match format {
        Format::Jpeg => "image/jpeg",
        Format::Png => "image/png",
        Format::WebP => "image/webp",
        Format::Gif => "image/gif",
    });
    if head.starts_with(b"ID3") {
        return Ok(Some("audio/mpeg"));
    }
    Ok(image.or_else(|| {
        let container = Container::of(&head).or_else(|| Some(mpeg::start(&head)?.1));
        container.map(|container| match container {
            Container::Wav => "audio/wav",
            Container::Mp3 => "audio/mpeg",
            Container::Adts => "audio/aac",
            Container::Mp4 => "audio/mp4",
            Container::Flac => "audio/flac",
            Container::Ogg | Container::OggOpus => "audio/ogg",
            Container::Matroska => "audio/webm",
        })
    }))
}
