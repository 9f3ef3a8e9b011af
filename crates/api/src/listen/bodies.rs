//! Bodies in transit: a request's, which must arrive whole by a deadline, and an answer's, which
//! holds resources until its last byte is sent. A gradual answer is sent one piece at a time.

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
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::pace::{ActiveResponse, UnsentPieces};
use crate::memory::{BodyMemory, GradualResponse, sources};

/// The body did not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body did not arrive in time")]
struct BodyTimeout;

/// Whether the cause of a body's error is [`BodyTimeout`].
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<BodyTimeout>)
}

/// Maximum read of a body that its endpoint did not want. Closing with unread bytes could destroy
/// the answer, and keeping the connection is worth reading these.
const UNWANTED_BYTES_MAX: u64 = 64 * 1024;

/// A request body with a deadline for the whole of it; holds `H` until it ends.
pub(super) struct TimedBody<H: Send + 'static> {
    /// `None` once the deadline has passed: then the connection ends.
    body: Option<Body>,
    deadline: Instant,
    /// Set at the first wait: most bodies are already complete.
    alarm: Option<Pin<Box<Sleep>>>,
    room: Option<Arc<BodyMemory>>,
    held: Option<H>,
}

impl<H: Send + Unpin + 'static> TimedBody<H> {
    /// Wraps `body` for the endpoints; `room` counts its bytes.
    pub(super) fn boxed_body(
        body: Body,
        deadline: Instant,
        room: Option<Arc<BodyMemory>>,
        held: H,
    ) -> Body {
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
        Some(Err(BodyTimeout.into()))
    }
}

impl<H: Send + Unpin + 'static> HttpBody for TimedBody<H> {
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
                && let Err(full) = room.reserve(data.len())
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

impl<H: Send + 'static> Drop for TimedBody<H> {
    fn drop(&mut self) {
        let wanted =
            |body: &Body| !body.is_end_stream() && body.size_hint().lower() <= UNWANTED_BYTES_MAX;
        // Nobody reads this body to its end. hyper would close the connection, and closing a socket
        // with unread bytes sends a reset that can destroy the answer on its way. A short rest is
        // therefore read and thrown away; a long one is not worth it.
        let Some(body) = self.body.take().filter(wanted) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(read_rest(body, self.deadline, self.held.take()));
        }
    }
}

/// Reads the rest of `body`, within bounds.
async fn read_rest<H>(mut body: Body, deadline: Instant, held: H) {
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
pub(super) struct PacedBody<H> {
    body: Body,
    /// The remainder of a large piece.
    rest: Bytes,
    /// Set for an answer that is sent gradually.
    outlet: Option<GradualSender>,
    _held: H,
}

impl<H> PacedBody<H> {
    pub(super) const fn new(body: Body, outlet: Option<GradualSender>, held: H) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            outlet,
            _held: held,
        }
    }

    fn record_piece(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.answering.record_piece();
        }
    }
}

impl<H: Unpin> HttpBody for PacedBody<H> {
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
        // A frame of several megabytes, as a cached list is, is handed over in pieces. Without
        // this, hyper's buffer would grow to its size and stay so while the connection is open.
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
                        self.record_piece();
                    }
                    return Poll::Ready(frame);
                }
            }
        }
        let piece = PIECE_BYTES.min(self.rest.len());
        let piece = self.rest.split_to(piece);
        self.record_piece();
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

/// The service stops, and the client does not read its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service stops, and the client does not read")]
pub(super) struct UnreadResponse;

/// Releases a piece only after the previous one is sent.
pub(super) struct GradualSender {
    answering: Arc<ActiveResponse>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl GradualSender {
    pub(super) fn new(answering: Arc<ActiveResponse>, gradual: GradualResponse) -> Self {
        Self {
            answering,
            stopping: Box::pin(gradual.stopping.cancelled_owned()),
        }
    }

    /// Ready when the next piece may follow. The socket wakes the connection once everything is
    /// sent.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UnreadResponse>> {
        // The socket reports when it has taken everything, and then wakes the connection. So at
        // most one piece is in this process at any time, however slowly the client reads.
        let unsent = self.answering.unsent();
        if unsent == UnsentPieces::Nothing {
            return Poll::Ready(Ok(()));
        }
        match self.stopping.as_mut().poll(cx) {
            Poll::Ready(()) if unsent == UnsentPieces::Stuck => Poll::Ready(Err(UnreadResponse)),
            _ => Poll::Pending,
        }
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
        let mut answer = PacedBody::new(Body::from(whole.clone()), None, ());
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
        let wrapped = axum::Error::new(Box::<dyn Error + Send + Sync>::from(BodyTimeout));
        assert!(is_too_slow(&wrapped));
    }
}

#[cfg(test)]
mod outlet_tests {
    use std::convert::Infallible;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::Response;
    use bytes::Bytes;
    use futures_util::stream::unfold;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::listen::bodies::PacedBody;
    use crate::listen::pace::{ConnectionDeadlines, PacedIo};
    use crate::memory::ConnectionMemory;
    use crate::memory::{MemoryBudget, MemoryOwner};

    /// Capacity of the socket between client and server.
    const SOCKET_BYTES: usize = 256;
    const PIECE_BYTES: usize = 100;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A connection that is answered with an endless stream of pieces.
    struct Served {
        client: DuplexStream,
        /// Pieces that were asked for.
        made: Arc<AtomicUsize>,
        stopping: CancellationToken,
        serving: JoinHandle<hyper::Result<()>>,
    }

    fn served() -> Served {
        let (client, server) = duplex(SOCKET_BYTES);
        let (made, stopping) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let deadlines = ConnectionDeadlines {
            first_byte: PATIENCE,
            head: PATIENCE,
            idle: PATIENCE,
            write: PATIENCE,
        };
        let owner = MemoryOwner::from_address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let room = Arc::new(ConnectionMemory::new(MemoryBudget::new(1 << 20), owner));
        let io = PacedIo::new(server, deadlines, room);
        let phase = io.phase();
        let (counted, stop) = (made.clone(), stopping.clone());
        let service = service_fn(move |_: hyper::Request<hyper::body::Incoming>| {
            let busy = Arc::new(phase.answering());
            let gradual = GradualResponse {
                stopping: stop.clone(),
            };
            let pieces = unfold(counted.clone(), async |made| {
                made.fetch_add(1, Ordering::SeqCst);
                let piece = Bytes::from(vec![b'x'; PIECE_BYTES]);
                Some((Ok::<_, Infallible>(piece), made))
            });
            let outlet = Some(GradualSender::new(busy.clone(), gradual));
            let body = PacedBody::new(Body::from_stream(pieces), outlet, busy);
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let http = http1::Builder::new().serve_connection(TokioIo::new(io), service);
        Served {
            client,
            made,
            stopping,
            serving: tokio::spawn(http),
        }
    }

    /// Lets everything happen that can happen now.
    async fn settle() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn p15_a_piece_is_made_when_the_one_before_is_sent() {
        let mut served = served();
        let ask = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        served.client.write_all(ask).await.unwrap();
        settle().await;
        let first = served.made.load(Ordering::SeqCst);
        assert!((1..=4).contains(&first), "{first} pieces for one socket");
        let mut read = vec![0; 50 * PIECE_BYTES];
        served.client.read_exact(&mut read).await.unwrap();
        settle().await;
        let made = served.made.load(Ordering::SeqCst);
        // Each has the frame of a chunk around it.
        assert!((first + 40..first + 51).contains(&made), "{made} pieces");
        served.serving.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn p16_a_stop_waits_for_no_client_that_does_not_read() {
        let mut served = served();
        let ask = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        served.client.write_all(ask).await.unwrap();
        settle().await;
        assert!(!served.serving.is_finished());
        served.stopping.cancel();
        settle().await;
        assert!(served.serving.is_finished());
    }
}
