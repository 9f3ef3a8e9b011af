//! The listener: our own accept loop on hyper, since axum's has no deadlines. It limits
//! connections, their pace and their headers, and stops gracefully: requests in progress are
//! answered. HTTP/1.1 only, in the clear or under TLS.

mod admission;
mod bodies;
mod framing;
mod pace;
mod settings;
mod stop;
mod tls;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kinora_contract::ErrorCode;
use kinora_contract::limits::HEADER_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;
use crate::memory::{BodyRoom, Buffers, Gradual, Held, Owner, Room, in_memory};
use crate::middleware::{Front, Journal};
use crate::proxies::TrustedProxies;
use crate::rates::RateLimits;
use crate::request_id::RequestIds;
use admission::{AddressPermit, Addresses, Door};
use bodies::{Holding, Outlet, TimedBody};
use framing::EnvelopeIo;
use pace::{Answering, Deadlines, PacedIo, Phase};
use stop::{Connection, Connections};

pub(crate) use bodies::is_too_slow;
pub use settings::{Guards, ListenSettings};
pub use stop::Stop;
pub use tls::{Tls, TlsError};

/// A listener at work. Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn`
/// compiles its body, with all of hyper that it reaches.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves `router` on `listener` until `stop` is done, then finishes the answers in progress.
pub fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    stop: Stop,
) -> Serving {
    serve_guarded(listener, router, settings, Guards::default(), stop)
}

/// Like [`serve`], with custom guards.
pub fn serve_guarded(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    guards: Guards,
    stop: Stop,
) -> Serving {
    Box::pin(accept(listener, router, settings, guards, stop))
}

async fn accept(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    guards: Guards,
    stop: Stop,
) {
    let drain_limit = settings.drain_limit;
    let addresses = Addresses::new(guards.connections_per_address_max, settings.connections_max);
    let ids = RequestIds::new(settings.request_id_prefix);
    let mut door = Door::new(&settings, &guards, addresses.clone(), ids.clone());
    let service = Service::new(router, settings, guards, addresses, ids, stop.begun);
    let service = Arc::new(service);
    let connections = Connections::default();
    loop {
        // Connections are accepted one at a time. While one waits for a place, those behind it wait
        // in the backlog, where they take no memory of this process.
        let arrived = tokio::select! {
            arrived = door.next(&listener) => arrived,
            () = stop.done.cancelled() => break,
        };
        let Some((stream, peer, entry)) = arrived else {
            continue;
        };
        let (service, connection) = (service.clone(), connections.open());
        tokio::spawn(async move {
            service.connection(stream, peer, connection).await;
            // The place is free only when the connection is closed, so places bound the number of
            // open sockets.
            drop(entry);
        });
    }
    // Before the wait: from here on the kernel refuses connections, so clients go elsewhere at once
    // instead of waiting in the backlog of a process that ends.
    drop(listener);
    let drained = tokio::time::timeout(drain_limit, connections.end()).await;
    if drained.is_err() {
        tracing::warn!("drain limit reached; remaining connections closed");
    }
}

/// State that all connections of a listener share.
struct Service {
    front: Front,
    proxies: TrustedProxies,
    /// Counts clients behind proxies; the door counts clients that connect directly.
    addresses: Addresses,
    deadlines: Deadlines,
    body_timeout: Duration,
    tls: Option<Tls>,
    /// Cancelled when a stop begins; from then on each answer closes its connection.
    stopping: CancellationToken,
}

impl Service {
    fn new(
        router: Router,
        settings: ListenSettings,
        guards: Guards,
        addresses: Addresses,
        ids: RequestIds,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            front: Front {
                router,
                ids,
                rates: Arc::new(RateLimits::new(
                    guards.requests_per_minute,
                    guards.allowances,
                )),
                cors: guards.cors,
                buffers: Buffers::new(guards.buffered_bytes_max),
                journal: Journal::new(&settings.clock),
            },
            proxies: guards.trusted_proxies,
            addresses,
            deadlines: Deadlines {
                first_byte: guards.first_byte_timeout,
                head: settings.header_timeout,
                idle: guards.idle_timeout,
                write: guards.write_timeout,
            },
            body_timeout: guards.request_timeout,
            tls: guards.tls,
            stopping,
        }
    }

    /// Serves one connection until it ends.
    async fn connection(self: Arc<Self>, stream: TcpStream, peer: IpAddr, connection: Connection) {
        let room = Arc::new(self.room(peer));
        let io = PacedIo::new(stream, self.deadlines, room.clone());
        let phase = io.phase();
        let Some(tls) = &self.tls else {
            return self.http(io, phase, room, peer, connection).await;
        };
        let handshake = Box::pin(tls.acceptor().accept(io));
        match tokio::time::timeout(self.deadlines.head, handshake).await {
            Ok(Ok(io)) => {
                phase.restart();
                // Boxed, so that a connection without TLS does not take the memory of one with it.
                Box::pin(self.http(io, phase, room, peer, connection)).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, client = %peer, "TLS handshake failed"),
            Err(_) => tracing::debug!(client = %peer, "TLS handshake timed out"),
        }
    }

    /// The memory account of a connection from `peer`.
    fn room(&self, peer: IpAddr) -> Room {
        let owner = if self.proxies.trusts(peer) {
            Owner::Proxies
        } else {
            Owner::of_address(peer)
        };
        Room::new(self.front.buffers.clone(), owner)
    }

    /// Speaks HTTP on `io`.
    async fn http<T>(
        self: Arc<Self>,
        io: T,
        phase: Phase,
        room: Arc<Room>,
        peer: IpAddr,
        connection: Connection,
    ) where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(EnvelopeIo::new(io, self.front.ids.clone()));
        let answering = service_fn(move |request| {
            let (service, room) = (self.clone(), room.clone());
            let busy = Arc::new(phase.answering());
            // Boxed: a connection keeps the memory of its service's future even while it is idle or
            // streaming.
            Box::pin(
                async move { Ok::<_, Infallible>(service.answer(peer, room, busy, request).await) },
            )
        });
        let http = http1::Builder::new()
            // [`PacedIo`] below enforces the deadlines, and distinguishes a head in progress from
            // an idle connection.
            .header_read_timeout(None)
            // Larger than our own limit, whose refusal is an envelope that names the limits.
            .max_buf_size(HEADER_BYTES_MAX * 2)
            .serve_connection(io, answering);
        // Boxed: otherwise each surrounding future would contain a copy for the life of the
        // connection.
        if let Err(error) = connection.serve(Box::pin(http)).await {
            tracing::debug!(%error, client = %peer, "connection ended early");
        }
    }

    async fn answer(
        &self,
        peer: IpAddr,
        room: Arc<Room>,
        busy: Arc<Answering>,
        request: Request<Incoming>,
    ) -> Response<Holding<Answered>> {
        let client = self.proxies.client(peer, request.headers());
        // A proxy's connection carries many clients, so there each request takes a place.
        let (place, refused) = if self.proxies.trusts(peer) {
            match self.addresses.take(client) {
                Some(place) => (Some(place), None),
                None => (None, Some(too_many_of(client))),
            }
        } else {
            (None, None)
        };
        let has_body = !request.body().is_end_stream();
        let taken = has_body.then(|| Arc::new(BodyRoom::new(room.clone(), client)));
        let request = request.map(|body| {
            if !has_body {
                return Body::empty();
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a deadline for the runtime's timers, which know no other clock (docs/decisions.md)"
            )]
            let deadline = Instant::now() + self.body_timeout;
            TimedBody::boxed_body(body, deadline, taken.clone(), busy.clone())
        });
        let mut response = self.front.answer(client, refused, &room, request).await;
        // The endpoint has used the body; the body itself may live on until its rest has been read.
        if let Some(taken) = taken {
            taken.give_back();
        }
        if self.stopping.is_cancelled() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        let gradual = response.extensions_mut().remove::<Gradual>();
        let outlet = gradual.map(|gradual| Outlet::new(busy.clone(), gradual));
        let held = response.extensions_mut().remove::<Arc<Held>>();
        // An answer that is whole in memory stays there until it is read. Files and streams are
        // read piece by piece and keep the usual pace.
        if let Some(bytes) = in_memory(response.body()) {
            busy.must_be_taken(bytes);
        }
        response.map(|body| Holding::new(body, outlet, (busy, place, held)))
    }
}

/// Resources released when the answer has been sent.
type Answered = (Arc<Answering>, Option<AddressPermit>, Option<Arc<Held>>);

fn too_many_of(client: IpAddr) -> ApiError {
    tracing::debug!(%client, "request refused: too many from this address");
    let error = ApiError::new(ErrorCode::RateLimitExceeded, admission::ADDRESS_FULL);
    error.retry_after(admission::RETRY_SECONDS)
}
