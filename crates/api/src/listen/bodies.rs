//! Bodies in transit: a request's, which must arrive whole by a deadline, and an answer's, which
//! holds resources until its last byte is sent.

#![expect(
    clippy::disallowed_methods,
    reason = "deadlines for the runtime's timers, which know no other clock (docs/decisions.md)"
)]

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::outlet::Outlet;
use super::room::BodyRoom;

/// The body did not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body did not arrive in time")]
struct TooSlow;

/// Whether the cause of a body's error is [`TooSlow`].
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<TooSlow>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Maximum read of a body that its endpoint did not want. Closing with unread bytes could destroy
/// the answer, and keeping the connection is worth reading these.
const UNWANTED_BYTES_MAX: u64 = 64 * 1024;

/// A request body with a deadline for the whole of it; holds `H` until it ends.
pub(super) struct TimedBody<B, H>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    H: Send + 'static,
{
    /// `None` once the deadline has passed: then the connection ends.
    body: Option<B>,
    deadline: Instant,
    /// Set at the first wait: most bodies are already complete.
    alarm: Option<Pin<Box<Sleep>>>,
    room: Option<Arc<BodyRoom>>,
    held: Option<H>,
}

impl<B, H> TimedBody<B, H>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    H: Send + Unpin + 'static,
{
    /// Wraps `body` for the endpoints; `room` counts its bytes.
    pub(super) fn boxed_body(
        body: B,
        deadline: Instant,
        room: Option<Arc<BodyRoom>>,
        held: H,
    ) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(Self {
            body: Some(body),
            deadline,
            alarm: None,
            room,
            held: Some(held),
        })
    }

    fn too_slow(&mut self) -> Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>> {
        self.body = None;
        Some(Err(TooSlow.into()))
    }
}

impl<B, H> HttpBody for TimedBody<B, H>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    H: Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // Checked even when bytes are ready: a dripping client always has some.
        if Instant::now() >= self.deadline {
            return Poll::Ready(self.too_slow());
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            let data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            if let (Some(room), Some(data)) = (&self.room, data)
                && let Err(full) = room.take(data.len())
            {
                return Poll::Ready(Some(Err(full.into())));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let deadline = self.deadline;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(self.too_slow())
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map(HttpBody::size_hint)
            .unwrap_or_default()
    }
}

impl<B, H> Drop for TimedBody<B, H>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    H: Send + 'static,
{
    fn drop(&mut self) {
        let wanted =
            |body: &B| !body.is_end_stream() && body.size_hint().lower() <= UNWANTED_BYTES_MAX;
        let Some(body) = self.body.take().filter(wanted) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(read_rest(body, self.deadline, self.held.take()));
        }
    }
}

/// Reads the rest of `body`, within bounds.
async fn read_rest<B, H>(mut body: B, deadline: Instant, held: H)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut left = UNWANTED_BYTES_MAX;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            let Some(rest) = left.checked_sub(bytes) else {
                break;
            };
            left = rest;
        }
    };
    let _ = tokio::time::timeout_at(deadline, reading).await;
    drop(held);
}

/// Maximum piece of an answer per write. hyper copies each piece and keeps that buffer as long as
/// the connection lives.
const PIECE_BYTES: usize = 32 * 1024;

/// An answer body in small pieces; holds `H` until dropped.
pub(super) struct Holding<H> {
    body: Body,
    /// The remainder of a large piece.
    rest: Bytes,
    /// Set for an answer that is sent gradually.
    outlet: Option<Outlet>,
    _held: H,
}

impl<H> Holding<H> {
    pub(super) const fn new(body: Body, outlet: Option<Outlet>, held: H) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            outlet,
            _held: held,
        }
    }

    fn note_piece(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.note_piece();
        }
    }
}

impl<H: Unpin> HttpBody for Holding<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(outlet) = &mut self.outlet
            && let Err(unread) = ready!(outlet.poll(cx))
        {
            return Poll::Ready(Some(Err(axum::Error::new(unread))));
        }
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = match &frame {
                Some(Ok(frame)) => frame.data_ref(),
                _ => None,
            };
            match data {
                Some(data) if data.len() > PIECE_BYTES => self.rest = data.clone(),
                _ => {
                    if let Some(Ok(_)) = &frame {
                        self.note_piece();
                    }
                    return Poll::Ready(frame);
                }
            }
        }
        let piece = PIECE_BYTES.min(self.rest.len());
        let piece = self.rest.split_to(piece);
        self.note_piece();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(left.lower() + rest);
        if let Some(upper) = left.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use futures_util::stream::{StreamExt, unfold};

    /// A body of `count` bytes, one every half second.
    fn dripping(count: usize) -> Body {
        let bytes = unfold(0, move |sent| async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let byte = Ok::<_, std::io::Error>(Bytes::from_static(b"x"));
            (sent < count).then_some((byte, sent + 1))
        });
        Body::from_stream(bytes.boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_dripped_body_ends_at_the_deadline_of_the_whole() {
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(10);
        let short = TimedBody::boxed_body(dripping(15), deadline, None, ());
        assert_eq!(short.collect().await.unwrap().to_bytes().len(), 15);

        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(10);
        let long = TimedBody::boxed_body(dripping(100), deadline, None, ());
        let error = long.collect().await.unwrap_err();
        assert!(is_too_slow(&error), "{error}");
        assert_eq!(begun.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_wants_of_a_body_is_read_all_the_same_within_bounds() {
        for (count, seconds) in [(10, 5), (100, 10)] {
            let begun = Instant::now();
            let deadline = begun + Duration::from_secs(10);
            let (held, released) = tokio::sync::oneshot::channel::<()>();
            drop(TimedBody::boxed_body(dripping(count), deadline, None, held));
            released.await.unwrap_err();
            assert_eq!(begun.elapsed().as_secs(), seconds, "{count}");
        }
    }

    #[tokio::test]
    async fn p15_a_large_answer_is_handed_over_in_small_pieces() {
        let whole: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let mut answer = Holding::new(Body::from(whole.clone()), None, ());
        let mut taken = Vec::new();
        while !answer.is_end_stream() {
            let left = (whole.len() - taken.len()) as u64;
            assert_eq!(answer.size_hint().exact(), Some(left));
            let piece = answer.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES, "{}", piece.len());
            taken.extend_from_slice(&piece);
        }
        assert!(taken == whole);
        assert!(answer.frame().await.is_none());
    }

    #[test]
    fn other_errors_are_not_slowness() {
        assert!(!is_too_slow(&std::io::Error::other("gone")));
        let wrapped = axum::Error::new(Box::<dyn Error + Send + Sync>::from(TooSlow));
        assert!(is_too_slow(&wrapped));
    }
}
