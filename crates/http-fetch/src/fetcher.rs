//! The whole fetch: it follows redirects until there is a body, checks each hop anew, and keeps one
//! deadline. Each hop is one connection to a permitted address, one request and the head of its
//! response. It dials nothing else, passes no name to the operating system, reads no proxy from the
//! environment, reuses no connection, and sends four fixed headers and nothing about users. Between
//! fetches it stores only counts: connections per host and bytes per project.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HOST, LOCATION, TRANSFER_ENCODING, USER_AGENT};
use hyper::http::request;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kinora_contract::Clock;
use kinora_http::{RootsError, TrustedRoots, retry_after};
use kinora_system::pool::BlockingPool;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Position, Url};

use crate::address::reached_address;
use crate::body::{MinimumPace, SaveError, SaveTarget, save};
use crate::budget::{ByteBudget, ByteReservation};
use crate::coding::ContentCoding;
use crate::error::{FetchCause, FetchError, is_shortage};
use crate::options::{FetchOptions, FetchOptionsError};
use crate::patience::FetchTimer;
use crate::policy::AddressPolicy;
use crate::resolve::{LookupError, ProjectResolver, SystemResolver};
use crate::surroundings::{InterfaceSource, LocalNetworks, SystemInterfaces};
use crate::target::{FetchTarget, resolve_target};
use crate::turns::{HostKey, HostTurn, HostTurns};

/// Number of runtime threads that write fetched files.
pub const DISK_THREADS: usize = 8;
/// Maximum size of a response head, a chunk head or trailers, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of header lines: as many of 8 bytes, such as `a: bcd`, as a head has room for.
const HEADERS_MAX: usize = HEAD_BYTES_MAX / 8;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A file to fetch, its project, and its destination.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRequest<'a> {
    /// The project that pays for it: projects share look-ups, connections and bytes fairly.
    pub project: &'a str,
    /// The URL as the client sent it.
    pub url: &'a str,
    /// The new file.
    pub to: &'a Path,
    /// Maximum length of the file, in bytes.
    pub bytes_max: u64,
    /// Whether these first bytes are of a file of the wanted kind, whatever coding the host names.
    pub is_plain: fn(&[u8]) -> bool,
}

/// A post to a webhook.
#[derive(Clone, Debug)]
pub struct WebhookPost<'a> {
    /// The project that pays for it: projects share look-ups and connections fairly.
    pub project: &'a str,
    /// The webhook.
    pub url: &'a str,
    /// Headers besides those of every request: lower-case names and values.
    pub headers: &'a [(&'static str, &'a str)],
    /// The body.
    pub body: Bytes,
    /// Maximum time from the wait for a turn to the head of the answer.
    pub limit: Duration,
}

/// Fetches reference URLs into files, any number at a time.
pub struct ReferenceFetcher {
    options: FetchOptions,
    policy: AddressPolicy,
    resolver: Arc<dyn ProjectResolver>,
    tls: TlsConnector,
    turns: HostTurns,
    budget: ByteBudget,
    disk: BlockingPool,
    clock: Arc<dyn Clock>,
}

impl ReferenceFetcher {
    /// A fetcher that uses the operating system's resolver and interfaces, and measures time by
    /// `clock`.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(options: FetchOptions, clock: Arc<dyn Clock>) -> Result<Self, FetchOptionsError> {
        let resolver = SystemResolver::new(options.lookup_timeout, clock.clone());
        Self::with(
            options,
            Arc::new(resolver),
            Box::new(SystemInterfaces),
            clock,
        )
    }

    /// A fetcher with a custom `resolver`, whose answers are checked like any other's, and custom
    /// `interfaces`.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn with(
        options: FetchOptions,
        resolver: Arc<dyn ProjectResolver>,
        interfaces: Box<dyn InterfaceSource>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FetchOptionsError> {
        options.check()?;
        let policy = AddressPolicy::new(
            options.allow_networks.clone(),
            options.deny_networks.clone(),
            LocalNetworks::new(interfaces, clock.clone()),
        );
        Ok(Self {
            tls: tls_connector(options.extra_roots_pem.as_deref())?,
            turns: HostTurns::new(options.host_connections_max),
            budget: ByteBudget::new(options.project_bytes_per_hour, clock.clone()),
            disk: BlockingPool::new(DISK_THREADS),
            policy,
            resolver,
            options,
            clock,
        })
    }

    /// Saves the file at the URL to a new file, without syncing it, and returns its length in
    /// bytes. Unless this returns `Ok` there is no such file, even if the future is dropped.
    ///
    /// # Errors
    /// [`FetchError`]; more than `bytes_max` bytes are `TooLarge`; an existing file is `Storage`
    /// and stays unchanged.
    pub async fn fetch(&self, request: &ReferenceRequest<'_>) -> Result<u64, FetchError> {
        let parsed = Url::parse(request.url);
        let mut url = parsed.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
        // Without any budget left there is no point in connecting.
        drop(self.reserve(request.project, 1)?);
        let mut patience = FetchTimer::new(&self.options, &self.clock);
        for _ in 0..=self.options.redirects_max {
            let connection = self.reach(&url, request.project, &mut patience).await?;
            let asking = async {
                let asked = ask(get_request(&url), connection).await;
                asked.map_err(FetchError::Unreachable)
            };
            let answer: HostAnswer = patience.unsized_time(asking).await?;
            match answer.head(&url)? {
                HeadOutcome::Elsewhere(next) => url = next,
                HeadOutcome::Body(body, coding, driver) => {
                    let saved = self.save(request, body, coding, &patience).await;
                    drop(driver);
                    return saved;
                }
            }
        }
        let redirects_max = self.options.redirects_max;
        Err(FetchError::Unreachable(FetchCause::Redirects(
            redirects_max,
        )))
    }

    /// Posts to a webhook, and returns the status of the answer, without reading its body.
    /// Redirects count as answers. The body counts towards the bytes that the project may transfer
    /// in an hour.
    ///
    /// # Errors
    /// [`FetchError`] if there is no answer.
    pub async fn post(&self, message: WebhookPost<'_>) -> Result<u16, FetchError> {
        let parsed = Url::parse(message.url);
        let url = parsed.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
        let posted = async {
            let mut patience = FetchTimer::new(&self.options, &self.clock);
            let project = message.project;
            let bytes = u64::try_from(message.body.len()).unwrap_or(u64::MAX);
            let mut reserved = self.reserve(project, bytes)?;
            let connection = self.reach(&url, project, &mut patience).await?;
            reserved.count(bytes);
            let asked = ask(
                post_request(&url, message.headers, message.body),
                connection,
            )
            .await;
            Ok(asked.map_err(FetchError::Unreachable)?.status())
        };
        let answered = timeout(message.limit, posted).await;
        answered.unwrap_or(Err(FetchError::Timeout(FetchCause::TotalTimeout)))
    }

    /// Resolves, checks and connects. A timeout here is not `Timeout`: a filtered port must look
    /// like a closed one.
    ///
    /// Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn` compiles its body.
    fn reach<'a>(
        &'a self,
        url: &'a Url,
        project: &'a str,
        patience: &'a mut FetchTimer,
    ) -> Pin<Box<dyn Future<Output = Result<CountedConnection, FetchError>> + Send + 'a>> {
        Box::pin(self.connect(url, project, patience))
    }

    async fn connect(
        &self,
        url: &Url,
        project: &str,
        patience: &mut FetchTimer,
    ) -> Result<CountedConnection, FetchError> {
        let named = match url.host() {
            Some(Host::Domain(name)) => {
                // A trailing dot names the same host.
                let key = HostKey::Name(name.trim_end_matches('.').to_owned());
                Some(patience.turn(&self.turns, key, project).await?)
            }
            _ => None,
        };
        let aimed = resolve_target(url.clone(), project, self.resolver.as_ref(), &self.policy);
        // Resolvers limit their own time; this is the backstop.
        let limit = self.options.lookup_timeout.saturating_mul(2);
        let target = timeout(limit, aimed).await.unwrap_or_else(|_| {
            let host = url.host_str().unwrap_or_default().to_owned();
            let source = LookupError::TimedOut;
            Err(FetchError::Unreachable(FetchCause::Resolve {
                host,
                source,
            }))
        })?;
        let mut connection = self.dial(&target, project, patience).await?;
        connection.turns.extend(named);
        Ok(connection)
    }

    /// Connects to the first address that answers in time, not counting the waits for turns.
    /// Each attempt gets an equal share of the time left, so one filtered address cannot use up all
    /// of it.
    ///
    /// # Errors
    /// The cause of the last attempt; `Later` without a turn or a descriptor; `Forbidden` for a
    /// connection that ended at this machine.
    async fn dial(
        &self,
        target: &FetchTarget,
        project: &str,
        patience: &mut FetchTimer,
    ) -> Result<CountedConnection, FetchError> {
        let name = target.tls_name().map_err(FetchError::Unreachable)?;
        let mut attempts_left = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
        let mut left = patience.at_most(self.options.connect_timeout);
        let mut last = FetchCause::NoAddress(target.url.host_str().unwrap_or_default().to_owned());
        for &address in &target.addresses {
            let key = HostKey::Address(reached_address(address.ip()));
            let turn = patience.turn(&self.turns, key, project).await?;
            let begun = patience.stopwatch();
            let share = left / attempts_left.max(1);
            let attempt = self.attempt(address, name.clone());
            last = match timeout(share, attempt).await {
                Ok(Ok(stream)) => {
                    let turns = vec![turn];
                    return Ok(CountedConnection { stream, turns });
                }
                Ok(Err(FetchError::Unreachable(cause))) => cause,
                Ok(Err(error)) => return Err(error),
                Err(_) => FetchCause::ConnectTimeout(address.to_string()),
            };
            left = left.saturating_sub(begun.elapsed());
            attempts_left = attempts_left.saturating_sub(1);
        }
        Err(FetchError::Unreachable(last))
    }

    async fn attempt(
        &self,
        address: SocketAddr,
        name: Option<ServerName<'static>>,
    ) -> Result<PeerStream, FetchError> {
        let connected = TcpStream::connect(address).await;
        let stream = connected.map_err(|source| {
            if is_shortage(&source) {
                FetchError::Later(FetchCause::Connect { address, source })
            } else {
                FetchError::Unreachable(FetchCause::Connect { address, source })
            }
        })?;
        // A connection from an address to itself never left this machine: the address may be routed
        // here although no interface has it.
        let local = stream.local_addr().map(|local| local.ip().to_canonical());
        let peer = address.ip().to_canonical();
        if local.is_ok_and(|local| local == peer) && !self.policy.allows(peer, address.port()) {
            return Err(FetchError::Forbidden(FetchCause::Itself(address)));
        }
        let Some(name) = name else {
            return Ok(Box::new(stream));
        };
        match self.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(source) => Err(FetchError::Unreachable(FetchCause::Tls { address, source })),
        }
    }

    /// Saves the body, within the time allowed for its size.
    async fn save(
        &self,
        request: &ReferenceRequest<'_>,
        body: Incoming,
        coding: ContentCoding,
        patience: &FetchTimer,
    ) -> Result<u64, FetchError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > request.bytes_max) {
            return Err(FetchError::TooLarge);
        }
        let mut reserved = self.reserve(request.project, declared.unwrap_or(request.bytes_max))?;
        let saving = SaveTarget {
            to: request.to,
            bytes_max: request.bytes_max,
            coding,
            is_plain: request.is_plain,
            pace: MinimumPace {
                window: self.options.rate_window,
                bytes_min: self.options.rate_min_bytes,
            },
            disk: &self.disk,
            clock: &self.clock,
        };
        let saved = async {
            let mut received = 0;
            let saved = save(body, saving, &mut |bytes| {
                received += bytes;
                reserved.count(bytes);
            })
            .await;
            saved.map_err(|error| save_failure(error, received, declared))
        };
        let limit = declared.map(|bytes| self.options.time_for(bytes));
        patience.sized_time(limit, saved).await
    }

    fn reserve(&self, project: &str, bytes: u64) -> Result<ByteReservation, FetchError> {
        let reserved = self.budget.reserve(project, bytes);
        reserved.map_err(|frees_after| FetchError::Later(FetchCause::Budget { frees_after }))
    }
}

impl fmt::Debug for ReferenceFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("options", &self.options)
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}

/// The failure of a body of which `bytes` arrived.
fn save_failure(error: SaveError, bytes: u64, declared: Option<u64>) -> FetchError {
    match error {
        SaveError::TooLarge => FetchError::TooLarge,
        SaveError::TooSlow(pace) => FetchError::Timeout(FetchCause::Rate {
            bytes_min: pace.bytes_min,
            window_ms: pace.window.as_millis(),
        }),
        SaveError::Broken(source) => FetchError::Unreachable(FetchCause::Body {
            bytes,
            declared,
            source,
        }),
        SaveError::Encoded(name) => FetchError::Unreachable(FetchCause::Encoding(name)),
        SaveError::Damaged(error) => FetchError::Unreachable(FetchCause::Damaged(error)),
        SaveError::Storage(error) => FetchError::Storage(error),
    }
}

/// A plain or encrypted connection.
type PeerStream = Box<dyn DuplexStream>;

trait DuplexStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> DuplexStream for T {}

/// TLS 1.2 and 1.3 with the public roots and `extra_roots_pem`; sessions are never resumed.
///
/// # Errors
/// If the PEM does not contain at least one certificate.
fn tls_connector(extra_roots_pem: Option<&[u8]>) -> Result<TlsConnector, RootsError> {
    let roots = TrustedRoots::public().with_pem(extra_roots_pem)?;
    let mut config = roots.client_config()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session sends no certificate, so its host would go unchecked.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connection that counts towards its host's limit.
struct CountedConnection {
    stream: PeerStream,
    /// By address, and by name if there is one. Dropped after the stream, so the next connection
    /// begins only once this one is closed.
    turns: Vec<HostTurn>,
}

/// A response after its head was read.
#[derive(Debug)]
struct HostAnswer {
    response: Response<Incoming>,
    /// Drives the connection and holds its turns; dropping it closes the connection, so an
    /// abandoned fetch frees its turns.
    driver: JoinSet<()>,
}

/// The outcome of a response head.
#[derive(Debug)]
enum HeadOutcome {
    /// The body is the requested file, in this coding.
    Body(Incoming, ContentCoding, JoinSet<()>),
    /// A redirect; the caller must check its URL first.
    Elsewhere(Url),
}

/// A request that may not have been possible to form.
type RequestResult = Result<Request<Full<Bytes>>, hyper::http::Error>;

/// Sends `request` over `connection` and reads the response head. The caller limits the time.
///
/// # Errors
/// If the peer does not answer in HTTP/1.1, or sends a head larger than [`HEAD_BYTES_MAX`].
async fn ask(
    request: RequestResult,
    connection: CountedConnection,
) -> Result<HostAnswer, FetchCause> {
    let request = request.map_err(FetchCause::RequestLine)?;
    let CountedConnection { stream, turns } = connection;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .allow_obsolete_multiline_headers_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(FetchCause::Http)?;
    let mut driver = JoinSet::new();
    let driven = (connection, turns);
    driver.spawn(async move {
        // An aborted task is dropped a moment later; only then is the connection closed, and its
        // turns are free.
        let (connection, _turns) = driven;
        // The reader of the response sees the same error.
        let _ = connection.await;
    });
    let response = sender
        .send_request(request)
        .await
        .map_err(FetchCause::Http)?;
    Ok(HostAnswer { response, driver })
}

/// Asks for the file at `url`.
fn get_request(url: &Url) -> RequestResult {
    let request = Request::get(request_target(url));
    with_usual_headers(request, url).body(Full::default())
}

/// Sends `body` to `url`, with `headers` besides the usual ones.
fn post_request(url: &Url, headers: &[(&str, &str)], body: Bytes) -> RequestResult {
    let mut request = with_usual_headers(Request::post(request_target(url)), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body))
}

fn request_target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

fn with_usual_headers(request: request::Builder, url: &Url) -> request::Builder {
    request
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, USER_AGENT_TEXT)
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
}

impl HostAnswer {
    /// Its status.
    fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Interprets status and headers; `asked` is the requested URL.
    ///
    /// # Errors
    /// For any other status, a redirect without a location or from https to http, and an encoded
    /// transfer.
    fn head(self, asked: &Url) -> Result<HeadOutcome, FetchError> {
        let headers = self.response.headers();
        match self.response.status() {
            StatusCode::OK => {}
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                // Browsers, and therefore servers, use UTF-8 here, although the standard says
                // ASCII.
                let location = headers.get(LOCATION);
                let location = location.and_then(|text| str::from_utf8(text.as_bytes()).ok());
                let location = location.ok_or(FetchError::Unreachable(FetchCause::Location))?;
                let next = asked.join(location);
                let next = next.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
                // A URL requested over https must not be requested in the clear.
                if (asked.scheme(), next.scheme()) == ("https", "http") {
                    return Err(FetchError::Unreachable(FetchCause::Downgrade));
                }
                return Ok(HeadOutcome::Elsewhere(next));
            }
            other => {
                return Err(FetchError::Unreachable(FetchCause::Status {
                    status: other.as_u16(),
                    retry_after: retry_after(headers),
                }));
            }
        }
        for value in headers.get_all(TRANSFER_ENCODING) {
            if !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(FetchError::Unreachable(FetchCause::Encoding(None)));
            }
        }
        let coding = ContentCoding::of(headers);
        Ok(HeadOutcome::Body(
            self.response.into_body(),
            coding,
            self.driver,
        ))
    }
}
