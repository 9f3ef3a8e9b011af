//! A pool of connections, and exchanges over it. Every wait has a limit and every body that is read
//! whole has a maximum size. Redirects are answers like any other.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

/// Any error of another library.
pub type BoxError = Box<dyn Error + Send + Sync>;
/// The body of a request. One type for all callers, so that the client is compiled once, here.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Resolves host names.
pub trait NameResolver: Send + Sync {
    /// All addresses of `host`, best first.
    fn resolve(&self, host: &str) -> BoxFuture<Vec<IpAddr>, BoxError>;
}

/// Limits of a client's connections. The default is `hyper`'s.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// Maximum time for a connection, without look-up and TLS handshake.
    pub connect_timeout: Option<Duration>,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Maximum number of idle connections per host. With 0 each request gets a new connection: an
    /// old one may break just when it is used.
    pub idle_max: usize,
    /// Maximum size of a response head, in bytes. It also limits the bytes read ahead of a slow reader.
    pub head_bytes_max: usize,
    /// Maximum number of header lines.
    pub headers_max: usize,
}

impl ClientOptions {
    /// Header lines as many of 8 bytes, such as `a: bcd`, as a head of `head_bytes_max` has room for.
    #[must_use]
    pub const fn with_head(self, head_bytes_max: usize) -> Self {
        Self {
            head_bytes_max,
            headers_max: head_bytes_max / 8,
            ..self
        }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: None,
            idle_timeout: Duration::from_secs(90),
            idle_max: usize::MAX,
            head_bytes_max: 408 * 1024,
            headers_max: 100,
        }
    }
}

/// Why an exchange has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// No connection: nothing was sent.
    #[error("connecting failed")]
    Connect(#[source] BoxError),
    /// The connection broke before the answer was complete.
    #[error("the connection broke")]
    Broken(#[source] BoxError),
    /// The answer, its head, or the next piece of it did not arrive in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The body exceeds this many bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

/// Sends requests. Clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpClient(Client<HttpsConnector<HttpConnector<HostResolver>>, RequestBody>);

impl HttpClient {
    /// A client without connections. `resolver` replaces the operating system's look-ups, which block
    /// threads of the runtime.
    pub fn new(
        tls: ClientConfig,
        options: ClientOptions,
        resolver: Option<Arc<dyn NameResolver>>,
    ) -> Self {
        let mut plain = HttpConnector::new_with_resolver(HostResolver(resolver));
        plain.set_connect_timeout(options.connect_timeout);
        // A request is written at once; the last segment must not wait for an acknowledgement.
        plain.set_nodelay(true);
        // The connector refuses any scheme but http otherwise, and it dials for https as well.
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.idle_max)
            .http1_max_buf_size(options.head_bytes_max)
            .http1_max_headers(options.headers_max)
            .build(connector);
        Self(client)
    }

    /// Sends `request` and reads the head of the answer. The caller limits the time.
    ///
    /// Boxed, so that only this crate compiles the client: each crate that polls the future of an `async fn` compiles its
    /// body.
    pub fn send(
        &self,
        request: Request<RequestBody>,
    ) -> BoxFuture<Response<Incoming>, ExchangeError> {
        let sending = self.0.request(request);
        Box::pin(async move {
            sending.await.map_err(|error| {
                if error.is_connect() {
                    ExchangeError::Connect(error.into())
                } else {
                    ExchangeError::Broken(error.into())
                }
            })
        })
    }

    /// Sends `request` and reads the head of the answer within `limit`.
    ///
    /// # Errors
    /// [`ExchangeError`] without a head in time. Any status is an answer.
    pub async fn open(
        &self,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let request = request.map(|bytes| {
            Full::new(bytes)
                .map_err(|never| match never {})
                .boxed_unsync()
        });
        let opened = timeout(limit, self.send(request)).await;
        opened.unwrap_or(Err(ExchangeError::Timeout(limit)))
    }

    /// Sends `request` and reads the complete answer, with a body of at most `body_bytes_max`, within
    /// `limit`.
    ///
    /// # Errors
    /// [`ExchangeError`] without a complete answer. Any status is an answer.
    pub async fn exchange(
        &self,
        request: Request<Bytes>,
        limit: Duration,
        body_bytes_max: usize,
    ) -> Result<Response<Bytes>, ExchangeError> {
        let exchanged = timeout(limit, async {
            let (head, body) = self.open(request, limit).await?.into_parts();
            let body = read_body(body, body_bytes_max).await?;
            Ok(Response::from_parts(head, body))
        });
        exchanged
            .await
            .unwrap_or(Err(ExchangeError::Timeout(limit)))
    }
}

/// Reads a body whole. The caller limits the time.
///
/// # Errors
/// [`ExchangeError::TooLarge`] and [`ExchangeError::Broken`].
pub async fn read_body(body: Incoming, bytes_max: usize) -> Result<Bytes, ExchangeError> {
    let collected = Limited::new(body, bytes_max).collect().await;
    let collected = collected.map_err(|error| {
        if error.is::<LengthLimitError>() {
            ExchangeError::TooLarge(bytes_max)
        } else {
            ExchangeError::Broken(error)
        }
    })?;
    Ok(collected.to_bytes())
}

/// The next bytes of a body, of which nothing may be missing for longer than `stall_limit`; `None` at its
/// end. Cancel-safe.
///
/// # Errors
/// [`ExchangeError::Timeout`] and [`ExchangeError::Broken`].
pub async fn next_piece(
    body: &mut Incoming,
    stall_limit: Duration,
) -> Result<Option<Bytes>, ExchangeError> {
    loop {
        let frame = timeout(stall_limit, body.frame()).await;
        let Some(frame) = frame.map_err(|_| ExchangeError::Timeout(stall_limit))? else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| ExchangeError::Broken(error.into()))?;
        // Trailers are no bytes of the body.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// The root cause: "connection refused" says more than "client error (Connect)".
pub fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
}

/// The error with all its causes, as one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The look-ups of a client; `None` are the operating system's.
#[derive(Clone)]
struct HostResolver(Option<Arc<dyn NameResolver>>);

impl fmt::Debug for HostResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostResolver")
    }
}

impl Service<Name> for HostResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response, BoxError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Some(resolver) = &self.0 else {
            let looked_up = GaiResolver::new().call(name);
            return Box::pin(async { Ok(looked_up.await?.collect::<Vec<_>>().into_iter()) });
        };
        let resolved = resolver.resolve(name.as_str());
        Box::pin(async {
            // The port comes from the URL.
            let sockets = resolved.await?.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(sockets.collect::<Vec<_>>().into_iter())
        })
    }
}
