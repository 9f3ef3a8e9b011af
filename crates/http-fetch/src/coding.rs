//! Content codings of a body (RFC 9110, section 8.4). A request allows none, but object stores return
//! the header that was stored with a file, and some servers always compress. Names that say nothing
//! count as none, gzip and deflate are undone, and everything is believed less than the bytes.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

/// Begin of a gzip file (RFC 1952).
const GZIP: &[u8] = b"\x1f\x8b";

/// What the header of a response says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// Nothing, or names that are no codings.
    None,
    /// `gzip`.
    Gzip,
    /// `deflate`.
    Deflate,
    /// Another, or more than one; the name if it is a usual one.
    Other(Option<&'static str>),
}

impl ContentCoding {
    /// The coding of a response with these `headers`.
    pub fn of(headers: &HeaderMap<HeaderValue>) -> Self {
        let values = headers.get_all(CONTENT_ENCODING).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
        let values: Vec<String> = values.collect();
        let names = values.iter().flat_map(|value| value.split(','));
        let mut names = names.map(str::trim).filter(|name| !says_nothing(name));
        match (names.next(), names.next()) {
            (None, _) => Self::None,
            (Some("gzip" | "x-gzip"), None) => Self::Gzip,
            (Some("deflate"), None) => Self::Deflate,
            (Some("br"), None) => Self::Other(Some("br")),
            (Some("zstd"), None) => Self::Other(Some("zstd")),
            (Some("compress" | "x-compress"), None) => Self::Other(Some("compress")),
            _ => Self::Other(None),
        }
    }
}

/// Whether a name is no coding of the stored bytes: `aws-chunked` was one of the upload.
fn says_nothing(name: &str) -> bool {
    matches!(
        name,
        "" | "identity" | "none" | "null" | "aws-chunked" | "chunked" | "binary" | "utf-8" | "utf8"
    )
}

/// Undoes a coding piece by piece.
pub(crate) enum ContentDecoder {
    None,
    Gzip(GzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
}

impl ContentDecoder {
    /// For a body that begins with `head`; `is_plain` says whether these bytes are those of a file
    /// that needs no decoding.
    ///
    /// # Errors
    /// If the coding cannot be undone: its name.
    pub(crate) fn of(
        coding: ContentCoding,
        head: &[u8],
        is_plain: fn(&[u8]) -> bool,
    ) -> Result<Self, Option<&'static str>> {
        Ok(match coding {
            ContentCoding::None => Self::None,
            ContentCoding::Gzip if !head.starts_with(GZIP) => Self::None,
            ContentCoding::Gzip => Self::Gzip(GzDecoder::new(Vec::new())),
            ContentCoding::Deflate | ContentCoding::Other(_) if is_plain(head) => Self::None,
            // Named deflate, it should be zlib (RFC 1950), and often is not.
            ContentCoding::Deflate if is_zlib(head) => Self::Zlib(ZlibDecoder::new(Vec::new())),
            ContentCoding::Deflate => Self::Deflate(DeflateDecoder::new(Vec::new())),
            ContentCoding::Other(name) => return Err(name),
        })
    }

    /// Appends what `piece` means to `to`: at most about a thousand times its length.
    ///
    /// # Errors
    /// If the data is damaged.
    pub(crate) fn decode(&mut self, piece: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        fn through(decoder: &mut impl Write, mut piece: &[u8]) -> io::Result<()> {
            while !piece.is_empty() {
                match decoder.write(piece)? {
                    // What follows the compressed data is not the file.
                    0 => break,
                    taken => piece = &piece[taken..],
                }
            }
            decoder.flush()
        }
        let decoded = match self {
            Self::None => {
                to.extend_from_slice(piece);
                return Ok(());
            }
            Self::Gzip(decoder) => through(decoder, piece).map(|()| decoder.get_mut()),
            Self::Zlib(decoder) => through(decoder, piece).map(|()| decoder.get_mut()),
            Self::Deflate(decoder) => through(decoder, piece).map(|()| decoder.get_mut()),
        };
        to.append(decoded?);
        Ok(())
    }

    /// Appends the last bytes.
    ///
    /// # Errors
    /// If the data is incomplete.
    pub(crate) fn finish(self, to: &mut Vec<u8>) -> io::Result<()> {
        to.append(&mut match self {
            Self::None => Vec::new(),
            Self::Gzip(decoder) => decoder.finish()?,
            Self::Zlib(decoder) => decoder.finish()?,
            Self::Deflate(decoder) => decoder.finish()?,
        });
        Ok(())
    }
}

fn is_zlib(head: &[u8]) -> bool {
    let header = head.first_chunk().copied().map(u16::from_be_bytes);
    header.is_some_and(|header| header.is_multiple_of(31) && header & 0x8f00 == 0x0800)
}
