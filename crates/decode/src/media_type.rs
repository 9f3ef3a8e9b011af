//! What kind of file it is, by its first bytes: for those to whom a reference is passed on. Whether
//! it can be read is not looked at.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::container::Container;
use crate::image::Format;

/// An Ogg page's head, with the first packet's beginning, is the longest that is looked at.
const HEAD_BYTES: u64 = 512;

/// The media type of the file at `path`, such as `image/png`; `None` for kinds that are not taken
/// as references.
///
/// # Errors
/// When the file cannot be read.
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
        Container::of(&head).map(|container| match container {
            Container::Wav => "audio/wav",
            Container::Mp3 => "audio/mpeg",
            Container::Adts => "audio/aac",
            Container::Mp4 => "audio/mp4",
            Container::Flac => "audio/flac",
            Container::Ogg | Container::OggOpus => "audio/ogg",
        })
    }))
}
