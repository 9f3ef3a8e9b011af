//! The listener: our own accept loop on hyper, since the framework's has no deadlines. It bounds
//! connections and headers, and ends orderly: what was begun is answered.

mod envelope_io;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use kinora_contract::limits::HEADER_BYTES_MAX;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::frame::{RequestIds, answer};
use envelope_io::EnvelopeIo;

/// How the listener behaves.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Connections at a time; further ones wait to be accepted.
    pub connections_max: usize,
    /// How long a connection may take to send the headers of its next request.
    pub header_timeout: Duration,
    /// After a stop was asked for, how long answers that were begun may take.
    pub drain_limit: Duration,
    /// Random bytes that make request ids of this process its own.
    pub request_id_prefix: [u8; 6],
}

/// Serves `router` on `listener` until `stop` resolves, then answers what was begun.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    stop: impl Future<Output = ()>,
) {
    let ids = RequestIds::new(settings.request_id_prefix);
    let places = Arc::new(Semaphore::new(settings.connections_max));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        let Some((stream, place)) = accepted else {
            continue;
        };
        let connection = connection(stream, router.clone(), ids.clone(), settings.header_timeout);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(settings.drain_limit, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("connections were cut after the drain limit");
    }
}

/// The next connection and its place.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Small answers are the rule; waiting to fill a packet would only slow polls.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            // Out of descriptors, or a client gone already: pause, so that this does not spin.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

type Connection<S> = http1::Connection<TokioIo<EnvelopeIo<TcpStream>>, S>;

fn connection(
    stream: TcpStream,
    router: Router,
    ids: RequestIds,
    header_timeout: Duration,
) -> Connection<
    impl hyper::service::Service<
        Request<hyper::body::Incoming>,
        Response = axum::response::Response,
        Error = Infallible,
        Future = impl Future<Output = Result<axum::response::Response, Infallible>> + Send,
    >,
> {
    let io = TokioIo::new(EnvelopeIo::new(stream, ids.clone()));
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (router, ids) = (router.clone(), ids.clone());
        async move { Ok::<_, Infallible>(answer(router, &ids, request.map(Body::new)).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        // Wider than our own limit, which answers in the envelope with the figures.
        .max_buf_size(HEADER_BYTES_MAX * 2)
        .serve_connection(io, service)
}
