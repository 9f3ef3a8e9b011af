//! Tracks where each request on a connection begins and ends, and finds faults that hyper's parser
//! accepts although two servers may read them differently: lines that end with a bare LF, and
//! conflicting body lengths (RFC 9112, sections 2.2 and 6.3).
//!
//! It reads the lines of heads and chunked bodies and skips bodies by length. Of a line split over
//! reads it keeps [`KEPT_BYTES_MAX`]. Names, values, methods and versions are left to the parser.

use kinora_contract::limits::REQUEST_LINE_BYTES_MAX;
use kinora_contract::{ErrorCode, Refusal};

/// Maximum length kept of a line: more than a framing header or a chunk size needs.
const KEPT_BYTES_MAX: usize = 128;

/// A fault in the framing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A line ends with LF alone.
    BareLineFeed,
    /// The request line is too long.
    LongRequestLine,
    /// `Transfer-Encoding` is not `chunked`, is sent twice, or together with `Content-Length`.
    TransferEncoding,
    /// `Content-Length` is not a number, or is sent twice.
    ContentLength,
    /// The size or the end of a chunk is unreadable.
    Chunk,
}

impl Fault {
    /// The status line's text and the refusal for this fault.
    pub(super) fn refusal(self) -> (&'static str, Refusal) {
        let bad = "400 Bad Request";
        let of =
            |header: &str, message: &str| Refusal::of(ErrorCode::InvalidValue, header, message);
        match self {
            Self::BareLineFeed => {
                let message = "A line of the request ends with LF alone; end lines with CRLF.";
                (bad, Refusal::new(ErrorCode::InvalidValue, message))
            }
            Self::LongRequestLine => {
                let message = format!(
                    "The request line is longer than {REQUEST_LINE_BYTES_MAX} bytes; shorten the URL."
                );
                (
                    "414 URI Too Long",
                    Refusal::new(ErrorCode::UriTooLong, message),
                )
            }
            Self::TransferEncoding => {
                let message = "Send 'Transfer-Encoding: chunked' once and without 'Content-Length', \
                               or 'Content-Length' alone.";
                (bad, of("Transfer-Encoding", message))
            }
            Self::ContentLength => {
                let message = "Send 'Content-Length' once, as a number of bytes.";
                (bad, of("Content-Length", message))
            }
            Self::Chunk => {
                let message = "The chunked body is malformed.";
                (bad, Refusal::new(ErrorCode::InvalidJson, message))
            }
        }
    }
}

/// The section that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// The request line, or an empty line before it.
    RequestLine,
    /// A header line, or the empty line that ends the head.
    Header,
    /// A body with this many bytes left.
    Body(u64),
    /// The line with a chunk's size.
    ChunkSize,
    /// A chunk with this many bytes left.
    ChunkData(u64),
    /// The line break after a chunk.
    ChunkEnd,
    /// A trailer line, or the empty line that ends the body.
    Trailer,
}

/// The body framing that a head declares.
#[derive(Clone, Copy, Debug, Default)]
struct Stated {
    length: Option<u64>,
    chunked: bool,
}

/// Tracks the framing of one connection's requests.
#[derive(Debug)]
pub(super) struct Framing {
    section: Section,
    stated: Stated,
    line: Line,
    fault: Option<Fault>,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            section: Section::RequestLine,
            stated: Stated::default(),
            line: Line::default(),
            fault: None,
        }
    }
}

impl Framing {
    /// The fault, if one was found; nothing is read after it.
    pub(super) const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Reads the next `bytes`, and returns the index of the byte at which it found a fault.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && self.fault.is_none() {
            let rest = &bytes[at..];
            at += match self.section {
                Section::Body(left) => {
                    let skipped = skip(left, rest);
                    self.section = match left - skipped as u64 {
                        0 => Section::RequestLine,
                        left => Section::Body(left),
                    };
                    skipped
                }
                Section::ChunkData(left) => {
                    let skipped = skip(left, rest);
                    self.section = match left - skipped as u64 {
                        0 => Section::ChunkEnd,
                        left => Section::ChunkData(left),
                    };
                    skipped
                }
                _ => self.follow_line(rest),
            };
        }
        self.fault.map(|_| at.saturating_sub(1))
    }

    /// Consumes the part of `bytes` that belongs to the current line, and returns its length.
    fn follow_line(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        self.line.push(&bytes[..end.unwrap_or(bytes.len())]);
        let long = self.line.text_bytes() > REQUEST_LINE_BYTES_MAX;
        if self.section == Section::RequestLine && long {
            self.fault = Some(Fault::LongRequestLine);
        }
        let Some(end) = end else {
            return bytes.len();
        };
        if self.fault.is_none() {
            match self.next_section() {
                Ok(section) => self.section = section,
                Err(fault) => self.fault = Some(fault),
            }
        }
        self.line.clear();
        end + 1
    }

    /// The section after the current line.
    fn next_section(&mut self) -> Result<Section, Fault> {
        let is_empty = self.line.text_bytes() == 0;
        if self.line.last != b'\r' {
            return Err(Fault::BareLineFeed);
        }
        match self.section {
            // Empty lines before a request are tolerated (RFC 9112, section 2.2).
            Section::RequestLine if is_empty => Ok(Section::RequestLine),
            Section::RequestLine => {
                self.stated = Stated::default();
                Ok(Section::Header)
            }
            Section::Header if is_empty => Ok(match self.stated {
                Stated { chunked: true, .. } => Section::ChunkSize,
                Stated {
                    length: Some(left @ 1..),
                    ..
                } => Section::Body(left),
                _ => Section::RequestLine,
            }),
            Section::Header => {
                self.stated.take(&self.line)?;
                Ok(Section::Header)
            }
            Section::ChunkSize => match chunk_size(&self.line).ok_or(Fault::Chunk)? {
                0 => Ok(Section::Trailer),
                size => Ok(Section::ChunkData(size)),
            },
            Section::ChunkEnd if is_empty => Ok(Section::ChunkSize),
            Section::ChunkEnd => Err(Fault::Chunk),
            Section::Trailer if is_empty => Ok(Section::RequestLine),
            section => Ok(section),
        }
    }
}

/// How many of `bytes` belong to a run with `left` bytes to go.
fn skip(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

impl Stated {
    /// Reads a header line if it is one of the two that declare a body's length.
    fn take(&mut self, line: &Line) -> Result<(), Fault> {
        let kept = line.kept();
        let Some(colon) = kept.iter().position(|byte| *byte == b':') else {
            return Ok(());
        };
        let (name, value) = (&kept[..colon], kept[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let known = line.is_whole() && value.eq_ignore_ascii_case(b"chunked");
            if !known || self.chunked || self.length.is_some() {
                return Err(Fault::TransferEncoding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if self.chunked {
                return Err(Fault::TransferEncoding);
            }
            let length = digits(value, 10).filter(|_| line.is_whole() && self.length.is_none());
            self.length = Some(length.ok_or(Fault::ContentLength)?);
        }
        Ok(())
    }
}

/// The size in a chunk's size line, ignoring extensions.
fn chunk_size(line: &Line) -> Option<u64> {
    let kept = line.kept();
    let end = kept.iter().position(|byte| !byte.is_ascii_hexdigit());
    let (size, rest) = kept.split_at(end.unwrap_or(kept.len()));
    let ended = match rest.first() {
        Some(byte) => b"; \t".contains(byte),
        None => line.is_whole(),
    };
    digits(size, 16).filter(|_| ended)
}

/// Parses digits without a sign.
fn digits(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let all = !text.is_empty() && text.chars().all(|one| one.is_digit(radix));
    all.then(|| u64::from_str_radix(text, radix).ok())?
}

/// The current line so far, without its LF.
#[derive(Debug, Default)]
struct Line {
    beginning: Vec<u8>,
    bytes: usize,
    last: u8,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES_MAX - self.beginning.len();
        self.beginning
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Prepares for the next line; keeps the allocation.
    fn clear(&mut self) {
        self.beginning.clear();
        self.bytes = 0;
        self.last = 0;
    }

    /// Length of the line without its final CR.
    fn text_bytes(&self) -> usize {
        self.bytes - usize::from(self.last == b'\r')
    }

    /// The kept part of the line without its final CR.
    fn kept(&self) -> &[u8] {
        &self.beginning[..self.text_bytes().min(self.beginning.len())]
    }

    /// Whether the kept part is the whole line.
    fn is_whole(&self) -> bool {
        self.text_bytes() <= self.beginning.len()
    }
}

#[cfg(test)]
mod tests;
