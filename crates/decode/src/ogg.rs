//! Splits an Ogg file into the links of its chain (RFC 3533, section 4): complete files behind each other, each
//! with a codec, rate and channels of its own.

/// Maximum number of links: recordings of radio have a few.
const LINKS_MAX: usize = 64;

/// Bits of a page's flags.
const FIRST_OF_STREAM: u8 = 2;

/// The links of `file`; those behind [`LINKS_MAX`] stay with the last.
pub(crate) fn links(file: &[u8]) -> Vec<&[u8]> {
    let mut links = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut sound_began = false;
    while let Some((flags, length)) = page(file, at) {
        let begins = flags & FIRST_OF_STREAM != 0;
        if begins && sound_began && links.len() + 1 < LINKS_MAX {
            links.push(&file[start..at]);
            start = at;
        }
        sound_began = !begins;
        at += length;
    }
    links.push(&file[start..]);
    links
}

/// Flags and length of the page at `at`.
fn page(file: &[u8], at: usize) -> Option<(u8, usize)> {
    let header: &[u8; 27] = file.get(at..)?.first_chunk()?;
    if !header.starts_with(b"OggS") {
        return None;
    }
    let segments = file.get(at + 27..at + 27 + usize::from(header[26]))?;
    let body: usize = segments.iter().map(|&bytes| usize::from(bytes)).sum();
    Some((header[5], 27 + segments.len() + body))
}
