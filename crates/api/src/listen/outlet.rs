//! Sends a [`Gradual`] answer one piece at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::WaitForCancellationFutureOwned;

use super::pace::{Answering, Unsent};
use crate::gradual::Gradual;

/// The service stops, and the client does not read its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service stops, and the client does not read")]
pub(super) struct Unread;

/// Releases a piece only after the previous one is sent.
pub(super) struct Outlet {
    answering: Arc<Answering>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Outlet {
    pub(super) fn new(answering: Arc<Answering>, gradual: Gradual) -> Self {
        Self {
            answering,
            stopping: Box::pin(gradual.stopping.cancelled_owned()),
        }
    }

    /// Ready when the next piece may follow. The socket wakes the connection once everything is
    /// sent.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unread>> {
        let unsent = self.answering.unsent();
        if unsent == Unsent::Nothing {
            return Poll::Ready(Ok(()));
        }
        match self.stopping.as_mut().poll(cx) {
            Poll::Ready(()) if unsent == Unsent::Stuck => Poll::Ready(Err(Unread)),
            _ => Poll::Pending,
        }
    }

    /// Records that a piece follows.
    pub(super) fn note_piece(&self) {
        self.answering.note_piece();
    }
}

#[cfg(test)]
mod tests {
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
    use crate::buffers::{Buffers, Owner};
    use crate::listen::bodies::Holding;
    use crate::listen::pace::{Deadlines, PacedIo};
    use crate::listen::room::Room;

    /// What the socket between them holds.
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
        let deadlines = Deadlines {
            first_byte: PATIENCE,
            head: PATIENCE,
            idle: PATIENCE,
            write: PATIENCE,
        };
        let owner = Owner::of_address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let room = Arc::new(Room::new(Buffers::new(1 << 20), owner));
        let io = PacedIo::new(server, deadlines, room);
        let phase = io.phase();
        let (counted, stop) = (made.clone(), stopping.clone());
        let service = service_fn(move |_: hyper::Request<hyper::body::Incoming>| {
            let busy = Arc::new(phase.answering());
            let gradual = Gradual {
                stopping: stop.clone(),
            };
            let pieces = unfold(counted.clone(), async |made| {
                made.fetch_add(1, Ordering::SeqCst);
                let piece = Bytes::from(vec![b'x'; PIECE_BYTES]);
                Some((Ok::<_, Infallible>(piece), made))
            });
            let outlet = Some(Outlet::new(busy.clone(), gradual));
            let body = Holding::new(Body::from_stream(pieces), outlet, busy);
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
