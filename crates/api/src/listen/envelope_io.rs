//! A connection whose unreadable requests are refused in the envelope. When hyper cannot read a
//! request it answers by itself, without a body; here that answer is replaced by one with the body
//! that clients know. What hyper would read although its framing is at fault is made unreadable, so
//! that it is refused in its turn, after the requests before it. Everything else passes untouched.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kinora_contract::{ErrorCode, Refusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::{Fault, Framing};
use super::plain;
use crate::request_id::{RequestId, RequestIds};

/// hyper's own refusals are shorter than this.
const BARE_BYTES_MAX: usize = 256;

/// What hyper gets to read in the place of what follows a fault: no method, name, value, chunk or
/// trailer holds a NUL, and a parser that waits for the end of a head has it.
const UNREADABLE: &[u8] = b"\0\r\n\r\n";

pub(super) struct EnvelopeIo<T> {
    inner: T,
    ids: RequestIds,
    framing: Framing,
    /// What is left to be read once a fault was found.
    unreadable: &'static [u8],
    /// A replacement that is still to be written.
    pending: Vec<u8>,
}

impl<T> EnvelopeIo<T> {
    pub(super) fn new(inner: T, ids: RequestIds) -> Self {
        Self {
            inner,
            ids,
            framing: Framing::default(),
            unreadable: UNREADABLE,
            pending: Vec::new(),
        }
    }
}

/// The status of a bare refusal: a head alone, without the request id that all of ours carry.
fn bare_status(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > BARE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
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

/// The answer to a request whose framing is at `fault`, or that hyper refused with `status`.
fn replacement(status: &str, fault: Option<Fault>, request_id: RequestId) -> Vec<u8> {
    if let Some(fault) = fault {
        let (status, refusal) = fault.refusal();
        return plain::answer(status, &refusal, request_id, None);
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
    plain::answer(status, &Refusal::new(code, message), request_id, None)
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
        if self.framing.fault().is_some() {
            let count = self.unreadable.len().min(buffer.remaining());
            let (now, later) = self.unreadable.split_at(count);
            buffer.put_slice(now);
            self.unreadable = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let arrived = &mut buffer.filled_mut()[before..];
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
        self.pending = replacement(status, self.framing.fault(), id);
        // Taken whole; what replaces it goes out with the next flush.
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

    // Vectored writes stay off, so that a bare head always comes in one piece.
}

#[cfg(test)]
mod tests {
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
