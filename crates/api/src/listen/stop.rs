//! The graceful stop of a listener, in two steps. First every answer closes its connection while
//! the listener serves on; then it accepts no more connections, closes idle ones and finishes
//! answers.

use std::pin::Pin;

use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The two steps of a stop. Cancelling a token takes that step; both steps are irreversible.
#[derive(Clone, Debug, Default)]
pub struct ListenerStop {
    /// A stop begins: from now on each answer closes its connection.
    pub begun: CancellationToken,
    /// Serving ends: the listener accepts no more connections and closes idle ones.
    pub done: CancellationToken,
}

/// All open connections of a listener.
#[derive(Debug)]
pub(super) struct OpenConnections(watch::Sender<bool>);

/// One open connection; [`OpenConnections::end`] waits until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(watch::Receiver<bool>);

impl Default for OpenConnections {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl OpenConnections {
    /// Counts a new connection.
    pub(super) fn open(&self) -> OpenConnection {
        OpenConnection(self.0.subscribe())
    }

    /// Closes idle connections, and returns when the others have sent their last answer.
    pub(super) async fn end(self) {
        // Each connection holds a receiver. The channel is closed when the last of them is dropped,
        // so nothing has to be counted.
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

impl OpenConnection {
    /// Serves `io` until the client ends it, or until its last answer after [`OpenConnections::end`].
    pub(super) async fn serve<C: GracefulConnection>(
        mut self,
        mut io: Pin<Box<C>>,
    ) -> Result<(), C::Error> {
        let ending = async {
            let _ = self.0.wait_for(|ending| *ending).await;
            // By the next poll the runtime has seen the bytes that arrived on sockets.
            tokio::task::yield_now().await;
        };
        tokio::select! {
            // Polls the connection first: a request that has arrived is answered instead of being
            // cut off because its connection still looked idle.
            biased;
            served = &mut io => return served,
            () = ending => {}
        }
        // hyper closes an idle connection now, and a busy one after its answer.
        io.as_mut().graceful_shutdown();
        io.await
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use bytes::Bytes;
    use futures_util::stream::unfold;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::listen::{ListenSettings, serve};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A listener with a short answer at `/`; at `/long` the test sends the answer piece by piece.
    struct Served {
        address: SocketAddr,
        stop: ListenerStop,
        pieces: mpsc::Sender<Bytes>,
        serving: JoinHandle<()>,
    }

    async fn served(drain_limit: Duration) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pieces, receiver) = mpsc::channel::<Bytes>(1);
        let receiver = Arc::new(Mutex::new(Some(receiver)));
        let long = async move || {
            let receiver = receiver.lock().unwrap().take().unwrap();
            let pieces = unfold(receiver, async |mut pieces| {
                let piece = pieces.recv().await?;
                Some((Ok::<_, std::io::Error>(piece), pieces))
            });
            Body::from_stream(pieces)
        };
        let router = Router::new()
            .route("/", get(async || "word"))
            .route("/long", get(long));
        let settings = ListenSettings {
            connections_max: 100,
            header_timeout: PATIENCE,
            drain_limit,
            request_id_prefix: [0; 6],
            clock: Arc::new(kinora_contract::ManualClock::at(0)),
        };
        let stop = ListenerStop::default();
        let serving = tokio::spawn(serve(listener, router, settings, stop.clone()));
        Served {
            address,
            stop,
            pieces,
            serving,
        }
    }

    impl Served {
        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }
    }

    async fn ask(stream: &mut TcpStream, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads until the received text ends with `end`.
    async fn read_to(stream: &mut TcpStream, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            text.push(char::from(stream.read_u8().await.unwrap()));
        }
        text
    }

    #[tokio::test]
    async fn p16_once_a_stop_begins_each_answer_is_its_connection_s_last() {
        let served = served(PATIENCE).await;
        let mut old = served.connect().await;
        ask(&mut old, "/").await;
        assert!(
            !read_to(&mut old, "word")
                .await
                .contains("connection: close")
        );

        served.stop.begun.cancel();
        for mut stream in [old, served.connect().await] {
            ask(&mut stream, "/").await;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert!(answer.contains("connection: close"), "{answer}");
            assert!(answer.ends_with("word"), "{answer}");
        }
        let mut idle = served.connect().await;
        ask(&mut idle, "/long").await;
        // Only once it is accepted: connections still in the backlog are no longer served.
        served.pieces.send("begun".into()).await.unwrap();
        read_to(&mut idle, "begun\r\n").await;
        assert!(!served.serving.is_finished());

        served.stop.done.cancel();
        drop(served.pieces);
        idle.read_to_end(&mut Vec::new()).await.unwrap();
        served.serving.await.unwrap();
    }

    #[tokio::test]
    async fn p16_at_the_end_idle_connections_close_and_begun_answers_are_sent_whole() {
        let served = served(PATIENCE).await;
        let (mut idle, mut busy) = (served.connect().await, served.connect().await);
        ask(&mut idle, "/").await;
        read_to(&mut idle, "word").await;
        ask(&mut busy, "/long").await;
        served.pieces.send("begun,".into()).await.unwrap();
        read_to(&mut busy, "begun,\r\n").await;

        served.stop.begun.cancel();
        served.stop.done.cancel();
        assert_eq!(
            idle.read(&mut [0]).await.unwrap(),
            0,
            "closed, and not reset"
        );
        served.pieces.send("ended".into()).await.unwrap();
        drop(served.pieces);
        let mut rest = String::new();
        busy.read_to_string(&mut rest).await.unwrap();
        assert!(
            rest.contains("ended") && rest.ends_with("0\r\n\r\n"),
            "{rest}"
        );
        served.serving.await.unwrap();
        assert!(TcpStream::connect(served.address).await.is_err());
    }

    #[tokio::test]
    async fn p16_a_request_that_is_there_when_its_connection_is_closed_is_answered() {
        for _ in 0..50 {
            let served = served(PATIENCE).await;
            let mut stream = served.connect().await;
            ask(&mut stream, "/").await;
            read_to(&mut stream, "word").await;
            // The service does not run between these two, so it sees both at once.
            ask(&mut stream, "/").await;
            served.stop.done.cancel();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("word"), "{answer}");
            served.serving.await.unwrap();
        }
    }

    #[tokio::test]
    async fn p16_an_answer_that_does_not_end_keeps_the_service_no_longer_than_its_limit() {
        let served = served(Duration::from_millis(50)).await;
        let mut busy = served.connect().await;
        ask(&mut busy, "/long").await;
        served.pieces.send("begun,".into()).await.unwrap();
        read_to(&mut busy, "begun,\r\n").await;
        served.stop.done.cancel();
        served.serving.await.unwrap();
    }
}
