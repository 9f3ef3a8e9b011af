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
use crate::memory::{
    BodyMemory, ConnectionMemory, GradualResponse, MemoryBudget, MemoryOwner, ReservedMemory,
    in_memory,
};
use crate::middleware::{Middleware, RequestLog};
use crate::rates::RateLimits;
use crate::request_id::RequestIds;
use crate::trusted_proxies::TrustedProxies;
use admission::{AddressLimits, AddressPermit, ConnectionAdmission};
use bodies::{GradualSender, PacedBody, TimedBody};
use framing::EnvelopeIo;
use pace::{ActiveResponse, ConnectionDeadlines, ConnectionPhase, PacedIo};
use stop::{OpenConnection, OpenConnections};

pub(crate) use bodies::is_too_slow;
pub use settings::{ListenOptions, ListenSettings};
pub use stop::ListenerStop;
pub use tls::{ServerTls, TlsError};

/// A listener at work. Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn`
/// compiles its body, with all of hyper that it reaches.
pub type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves `router` on `listener` until `stop` is done, then finishes the answers in progress.
pub fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    stop: ListenerStop,
) -> ServeFuture {
    serve_with_options(listener, router, settings, ListenOptions::default(), stop)
}

/// Like [`serve`], with custom guards.
pub fn serve_with_options(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    guards: ListenOptions,
    stop: ListenerStop,
) -> ServeFuture {
    Box::pin(accept(listener, router, settings, guards, stop))
}

async fn accept(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    guards: ListenOptions,
    stop: ListenerStop,
) {
    let drain_limit = settings.drain_limit;
    let addresses =
        AddressLimits::new(guards.connections_per_address_max, settings.connections_max);
    let ids = RequestIds::new(settings.request_id_prefix);
    let mut door = ConnectionAdmission::new(&settings, &guards, addresses.clone(), ids.clone());
    let service = ListenerService::new(router, settings, guards, addresses, ids, stop.begun);
    let service = Arc::new(service);
    let connections = OpenConnections::default();
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
struct ListenerService {
    front: Middleware,
    proxies: TrustedProxies,
    /// Counts clients behind proxies; the door counts clients that connect directly.
    addresses: AddressLimits,
    deadlines: ConnectionDeadlines,
    body_timeout: Duration,
    upload_timeout: Duration,
    form_uploads: bool,
    tls: Option<ServerTls>,
    /// Cancelled when a stop begins; from then on each answer closes its connection.
    stopping: CancellationToken,
}

impl ListenerService {
    fn new(
        router: Router,
        settings: ListenSettings,
        guards: ListenOptions,
        addresses: AddressLimits,
        ids: RequestIds,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            front: Middleware {
                router,
                ids,
                rates: Arc::new(RateLimits::new(
                    guards.requests_per_minute,
                    guards.allowances,
                )),
                cors: guards.cors,
                buffers: MemoryBudget::new(guards.buffered_bytes_max),
                journal: RequestLog::new(&settings.clock),
            },
            proxies: guards.trusted_proxies,
            addresses,
            deadlines: ConnectionDeadlines {
                first_byte: guards.first_byte_timeout,
                head: settings.header_timeout,
                idle: guards.idle_timeout,
                write: guards.write_timeout,
            },
            body_timeout: guards.request_timeout,
            upload_timeout: guards.upload_timeout,
            form_uploads: guards.form_uploads,
            tls: guards.tls,
            stopping,
        }
    }

    /// Serves one connection until it ends.
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: IpAddr,
        connection: OpenConnection,
    ) {
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
    fn room(&self, peer: IpAddr) -> ConnectionMemory {
        let owner = if self.proxies.trusts(peer) {
            MemoryOwner::Proxies
        } else {
            MemoryOwner::from_address(peer)
        };
        ConnectionMemory::new(self.front.buffers.clone(), owner)
    }

    /// Speaks HTTP on `io`.
    async fn http<T>(
        self: Arc<Self>,
        io: T,
        phase: ConnectionPhase,
        room: Arc<ConnectionMemory>,
        peer: IpAddr,
        connection: OpenConnection,
    ) where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(EnvelopeIo::new(io, self.front.ids.clone()));
        let answering = service_fn(move |request| {
            let (service, room) = (self.clone(), room.clone());
            let busy = Arc::new(phase.answering());
            // Boxed: a connection keeps the memory of its service's future even while it is idle or
            // streaming.
            Box::pin(async move {
                Ok::<_, Infallible>(service.respond(peer, room, busy, request).await)
            })
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

    /// The limit on the body of `request`.
    fn body_timeout(&self, request: &Request<Incoming>) -> Duration {
        let takes_files = match request.uri().path() {
            "/v1/files" => true,
            "/v1/videos" => self.form_uploads,
            _ => false,
        };
        if takes_files {
            self.upload_timeout
        } else {
            self.body_timeout
        }
    }

    async fn respond(
        &self,
        peer: IpAddr,
        room: Arc<ConnectionMemory>,
        busy: Arc<ActiveResponse>,
        request: Request<Incoming>,
    ) -> Response<PacedBody<ResponseResources>> {
        let client = self.proxies.client(peer, request.headers());
        // A proxy's connection carries many clients, so there each request takes a place.
        let is_forwarded = self.proxies.trusts(peer);
        let place = is_forwarded
            .then(|| self.addresses.acquire(client))
            .flatten();
        let refused = (is_forwarded && place.is_none()).then(|| address_limit_error(client));
        let has_body = !request.body().is_end_stream();
        let taken = has_body.then(|| Arc::new(BodyMemory::new(room.clone(), client)));
        let body_timeout = self.body_timeout(&request);
        let mut request = request.map(|body| {
            if !has_body {
                return Body::empty();
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a deadline for the runtime's timers, which know no other clock (docs/decisions.md)"
            )]
            let deadline = Instant::now() + body_timeout;
            TimedBody::boxed_body(Body::new(body), deadline, taken.clone(), busy.clone())
        });
        if let Some(taken) = &taken {
            request.extensions_mut().insert(taken.clone());
        }
        let mut response = self.front.respond(client, refused, &room, request).await;
        // The endpoint has used the body; the body itself may live on until its rest has been read.
        if let Some(taken) = taken {
            taken.release();
        }
        if self.stopping.is_cancelled() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        let gradual = response.extensions_mut().remove::<GradualResponse>();
        let outlet = gradual.map(|gradual| GradualSender::new(busy.clone(), gradual));
        let held = response.extensions_mut().remove::<Arc<ReservedMemory>>();
        // An answer that is whole in memory stays there until it is read. Files and streams are
        // read piece by piece and keep the usual pace.
        if let Some(bytes) = in_memory(response.body()) {
            busy.require_reading(bytes);
        }
        response.map(|body| PacedBody::new(body, outlet, (busy, place, held)))
    }
}

/// Resources released when the answer has been sent.
type ResponseResources = (
    Arc<ActiveResponse>,
    Option<AddressPermit>,
    Option<Arc<ReservedMemory>>,
);

fn address_limit_error(client: IpAddr) -> ApiError {
    tracing::debug!(%client, "request refused: too many from this address");
    let error = ApiError::new(ErrorCode::RateLimitExceeded, admission::ADDRESS_FULL);
    error.retry_after(admission::RETRY_SECONDS)
}
