//! Finds faults in the framing of requests that hyper's parser accepts although two servers may
//! read them differently (request smuggling): lines that end with a bare LF, and conflicting body
//! lengths (RFC 9112, sections 2.2 and 6.3). It tracks where each request of a connection begins
//! and ends: it reads the lines of heads and chunked bodies, skips bodies by length, and leaves
//! names, values, methods and versions to the parser.
//!
//! hyper answers an unreadable request without a body. [`EnvelopeIo`] replaces that answer by one
//! with the error envelope, and makes requests with a fault unreadable, so that hyper refuses them
//! in turn, after the requests before them. All other bytes pass through unchanged.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kinora_contract::limits::REQUEST_LINE_BYTES_MAX;
use kinora_contract::{ErrorCode, RequestRefusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::request_id::{RequestId, RequestIds};
use crate::responses::raw_refusal;

/// Maximum length kept of a line: more than a framing header or a chunk size needs.
const LINE_BYTES_MAX: usize = 128;

/// A fault in the framing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingFault {
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

impl FramingFault {
    /// The status line's text and the refusal for this fault.
    fn refusal(self) -> (&'static str, RequestRefusal) {
        let bad = "400 Bad Request";
        let of = |header: &str, message: &str| {
            RequestRefusal::for_param(ErrorCode::InvalidValue, header, message)
        };
        match self {
            Self::BareLineFeed => {
                let message = "A line of the request ends with LF alone; end lines with CRLF.";
                (bad, RequestRefusal::new(ErrorCode::InvalidValue, message))
            }
            Self::LongRequestLine => {
                let message = format!(
                    "The request line is longer than {REQUEST_LINE_BYTES_MAX} bytes; shorten the URL."
                );
                (
                    "414 URI Too Long",
                    RequestRefusal::new(ErrorCode::UriTooLong, message),
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
                (bad, RequestRefusal::new(ErrorCode::InvalidJson, message))
            }
        }
    }
}

/// The section that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingSection {
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
struct DeclaredLength {
    length: Option<u64>,
    chunked: bool,
}

/// Tracks the framing of one connection's requests.
#[derive(Debug)]
struct FramingTracker {
    section: FramingSection,
    stated: DeclaredLength,
    line: PartialLine,
    /// The fault, if one was found; nothing is read after it.
    fault: Option<FramingFault>,
}

impl Default for FramingTracker {
    fn default() -> Self {
        Self {
            section: FramingSection::RequestLine,
            stated: DeclaredLength::default(),
            line: PartialLine::default(),
            fault: None,
        }
    }
}

impl FramingTracker {
    /// Reads the next `bytes`, and returns the index of the byte at which it found a fault.
    fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && self.fault.is_none() {
            let rest = &bytes[at..];
            at += match self.section {
                FramingSection::Body(left) => {
                    let skipped = skip(left, rest);
                    self.section = match left - skipped as u64 {
                        0 => FramingSection::RequestLine,
                        left => FramingSection::Body(left),
                    };
                    skipped
                }
                FramingSection::ChunkData(left) => {
                    let skipped = skip(left, rest);
                    self.section = match left - skipped as u64 {
                        0 => FramingSection::ChunkEnd,
                        left => FramingSection::ChunkData(left),
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
        // Before the line ends: a client could send one without end.
        let long = self.line.text_bytes() > REQUEST_LINE_BYTES_MAX;
        if self.section == FramingSection::RequestLine && long {
            self.fault = Some(FramingFault::LongRequestLine);
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
    fn next_section(&mut self) -> Result<FramingSection, FramingFault> {
        let is_empty = self.line.text_bytes() == 0;
        if self.line.last != b'\r' {
            return Err(FramingFault::BareLineFeed);
        }
        match self.section {
            // Empty lines before a request are tolerated (RFC 9112, section 2.2).
            FramingSection::RequestLine if is_empty => Ok(FramingSection::RequestLine),
            FramingSection::RequestLine => {
                self.stated = DeclaredLength::default();
                Ok(FramingSection::Header)
            }
            FramingSection::Header if is_empty => Ok(match self.stated {
                DeclaredLength { chunked: true, .. } => FramingSection::ChunkSize,
                DeclaredLength {
                    length: Some(left @ 1..),
                    ..
                } => FramingSection::Body(left),
                _ => FramingSection::RequestLine,
            }),
            FramingSection::Header => {
                self.stated.read_header(&self.line)?;
                Ok(FramingSection::Header)
            }
            FramingSection::ChunkSize => match chunk_size(&self.line).ok_or(FramingFault::Chunk)? {
                0 => Ok(FramingSection::Trailer),
                size => Ok(FramingSection::ChunkData(size)),
            },
            FramingSection::ChunkEnd if is_empty => Ok(FramingSection::ChunkSize),
            FramingSection::ChunkEnd => Err(FramingFault::Chunk),
            FramingSection::Trailer if is_empty => Ok(FramingSection::RequestLine),
            section => Ok(section),
        }
    }
}

/// How many of `bytes` belong to a run with `left` bytes to go.
fn skip(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

impl DeclaredLength {
    /// Reads a header line if it is one of the two that declare a body's length.
    fn read_header(&mut self, line: &PartialLine) -> Result<(), FramingFault> {
        let kept = line.kept();
        let Some(colon) = kept.iter().position(|byte| *byte == b':') else {
            return Ok(());
        };
        let (name, value) = (&kept[..colon], kept[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // Example of an attack: a request with `Content-Length: 6` and `Transfer-Encoding:
            // chunked`. A proxy that believes the length and a server that believes the chunks
            // disagree about the first byte of the next request, and one client can put words into
            // the mouth of another (RFC 9112, section 11.2).
            let known = line.is_whole() && value.eq_ignore_ascii_case(b"chunked");
            if !known || self.chunked || self.length.is_some() {
                return Err(FramingFault::TransferEncoding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if self.chunked {
                return Err(FramingFault::TransferEncoding);
            }
            let length = digits(value, 10).filter(|_| line.is_whole() && self.length.is_none());
            self.length = Some(length.ok_or(FramingFault::ContentLength)?);
        }
        Ok(())
    }
}

/// The size in a chunk's size line, ignoring extensions.
fn chunk_size(line: &PartialLine) -> Option<u64> {
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
struct PartialLine {
    beginning: Vec<u8>,
    bytes: usize,
    last: u8,
}

impl PartialLine {
    fn push(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - self.beginning.len();
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

/// hyper's own refusals are shorter than this.
const BARE_BYTES_MAX: usize = 256;

/// Replaces the bytes after a fault for hyper: a NUL is invalid in a method, name, value, chunk or
/// trailer, and the empty line ends any head that hyper waits for.
const UNREADABLE: &[u8] = b"\0\r\n\r\n";

pub(super) struct EnvelopeIo<T> {
    inner: T,
    ids: RequestIds,
    framing: FramingTracker,
    /// The part of [`UNREADABLE`] that hyper has not read yet.
    unreadable: &'static [u8],
    /// Replacement bytes not written yet.
    pending: Vec<u8>,
}

impl<T> EnvelopeIo<T> {
    pub(super) fn new(inner: T, ids: RequestIds) -> Self {
        Self {
            inner,
            ids,
            framing: FramingTracker::default(),
            unreadable: UNREADABLE,
            pending: Vec::new(),
        }
    }
}

/// The status of a bare refusal: only a head, without the request id that all our answers carry.
fn bare_status(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > BARE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    // hyper has no hook for these answers, so they are recognised by the request id that ours
    // always have and its own never.
    let bare = text.starts_with("http/1.")
        && text.ends_with("\r\n\r\n")
        && text.contains("\r\ncontent-length: 0\r\n")
        && !text.contains("\r\nx-request-id:");
    if !bare {
        return None;
    }
    std::str::from_utf8(bytes.get(9..12)?)
        .ok()
        .filter(|status| status.starts_with('4'))
}

/// The answer to a request with a framing `fault`, or that hyper refused with `status`.
fn replacement(status: &str, fault: Option<FramingFault>, request_id: RequestId) -> Vec<u8> {
    if let Some(fault) = fault {
        let (status, refusal) = fault.refusal();
        return raw_refusal(status, &refusal, request_id, None);
    }
    let (status, code, message) = match status {
        "431" => (
            "431 Request Header Fields Too Large",
            ErrorCode::HeadersTooLarge,
            "The request's headers are too large.",
        ),
        _ => (
            "400 Bad Request",
            ErrorCode::InvalidValue,
            "Malformed HTTP/1.1 request.",
        ),
    };
    raw_refusal(
        status,
        &RequestRefusal::new(code, message),
        request_id,
        None,
    )
}

impl<T: AsyncWrite + Unpin> EnvelopeIo<T> {
    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.pending))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for EnvelopeIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Whatever the client sends after a fault is never read: where its next request begins is a
        // matter of opinion, which is how requests are smuggled past a proxy.
        if self.framing.fault.is_some() {
            let count = self.unreadable.len().min(buffer.remaining());
            let (now, later) = self.unreadable.split_at(count);
            buffer.put_slice(now);
            self.unreadable = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let arrived = &mut buffer.filled_mut()[before..];
        // A NUL is invalid wherever it stands, so hyper refuses the request that it is in. The
        // bytes before the fault are untouched: requests that were sent before this one are
        // answered first.
        if let Some(at) = self.framing.follow(arrived) {
            arrived[at..].fill(0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for EnvelopeIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(cx))?;
        let Some(status) = bare_status(bytes) else {
            return Pin::new(&mut self.inner).poll_write(cx, bytes);
        };
        let id = self.ids.next();
        self.pending = replacement(status, self.framing.fault, id);
        // Accepts all bytes; the replacement goes out with the next flush.
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    // No vectored writes, so a bare head always arrives in one piece.
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod envelope_io_tests {
    use super::*;

    #[test]
    fn only_a_head_without_request_id_and_body_is_bare() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        assert_eq!(bare_status(bare), Some("431"));
        for other in [
            &b"HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nhello",
            b"\x00\x01HTTP/1.1 400",
            b"",
        ] {
            assert_eq!(bare_status(other), None);
        }
    }

    #[test]
    fn a_replacement_is_an_envelope_of_the_stated_length() {
        let text =
            String::from_utf8(replacement("431", None, RequestIds::new([0; 6]).next())).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], "headers_too_large");
    }
}
