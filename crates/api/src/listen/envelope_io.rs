//! Wraps refusals of unreadable requests in the envelope. When hyper cannot parse a request it
//! answers without a body; this replaces that answer by one with the body that clients expect.
//! Requests that hyper would accept despite faulty framing are made unreadable, so hyper refuses
//! them in turn, after the requests before them. All other bytes pass through unchanged.

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

/// Replaces the bytes after a fault for hyper: a NUL is invalid in a method, name, value, chunk or
/// trailer, and the empty line ends any head that hyper waits for.
const UNREADABLE: &[u8] = b"\0\r\n\r\n";

pub(super) struct EnvelopeIo<T> {
    inner: T,
    ids: RequestIds,
    framing: Framing,
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
            framing: Framing::default(),
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
