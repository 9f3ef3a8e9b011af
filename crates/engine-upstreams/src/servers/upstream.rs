//! One server: its base URL, its key, its headers, and bounded calls to it. Key and headers are sent only to the server's own
//! origin. A `POST` always gets a new connection, since an old one may break just then; polls share theirs.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Request, Response};
use kinora_contract::Clock;
use kinora_http::{BoxError, ClientOptions, HttpClient, NameResolver, RootsError, TrustedRoots};
use kinora_http_fetch::{AddressVerdict, SystemResolver, classify};
use sha2::{Digest, Sha256};
use url::Url;

use super::cause::{CallError, shown};
use super::error::UpstreamError;
use super::key::ServerKey;
use super::options::ServerOptions;
use super::patience::retry_after;
use super::watch::{ExchangeWatcher, WatchedExchange, cut_text};

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));

/// A configured server.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    /// Its name in tickets and logs.
    pub(crate) name: String,
    /// Its base URL, of [`base_url`](super::options::base_url).
    pub(crate) base: Url,
    pub(crate) key: ServerKey,
    /// Further headers of every call.
    pub(crate) headers: HeaderMap,
    pub(crate) http: ServerClient,
    /// Is shown every exchange.
    pub(crate) watcher: Option<Arc<dyn ExchangeWatcher>>,
}

/// A body that can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct EncodedBody {
    /// The value of `content-type`.
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// For an operator: each part of a form in a line, by its text or the number of its bytes.
    form: Option<String>,
}

impl EncodedBody {
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self {
            content_type: "application/json".to_owned(),
            body: value.to_string().into(),
            form: None,
        }
    }
}

/// One call to an upstream.
pub(crate) struct ServerCall<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The body; `None` is an empty one.
    pub(crate) body: Option<&'a EncodedBody>,
    /// Headers of this call alone.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// Maximum time for the answer.
    pub(crate) limit: Duration,
    /// Whether only public addresses may be dialled: the URL comes from an answer.
    pub(crate) is_public: bool,
}

impl<'a> ServerCall<'a> {
    /// A call without a body, to a server that an operator configured.
    pub(crate) fn new(method: Method, url: Url, limit: Duration) -> Self {
        Self {
            method,
            url,
            body: None,
            headers: &[],
            limit,
            is_public: false,
        }
    }

    /// The call with this body.
    pub(crate) fn with_body(self, body: Option<&'a EncodedBody>) -> Self {
        Self { body, ..self }
    }
}

impl UpstreamServer {
    /// The base URL followed by `segments`, each escaped as one segment.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // `base_url` refuses URLs without segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The base URL followed by an escaped path, which has no dot segments, and a query.
    pub(crate) fn url_below(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{path}"));
        url.set_query(query);
        url
    }

    /// Whether `url` has this server's origin.
    pub(crate) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Makes the call; repeats it if the key was rejected and has changed in the meantime. Any status is
    /// an answer.
    pub(crate) async fn call(&self, call: &ServerCall<'_>) -> Result<ServerAnswer, CallError> {
        let mut reply = self.exchange(call).await?;
        if reply.status == 401 && self.key.reload() {
            reply = self.exchange(call).await?;
        }
        if !reply.is_success() {
            self.conceal(&mut reply);
        }
        Ok(reply)
    }

    /// Removes the key from a refusal, whose text is logged. Answers of success stay as they are, since the
    /// addresses in them are used.
    pub(crate) fn conceal(&self, reply: &mut ServerAnswer) {
        let mut text = String::from_utf8_lossy(&reply.body).into_owned();
        self.key.conceal(&mut text);
        reply.body = text.into();
    }

    async fn exchange(&self, call: &ServerCall<'_>) -> Result<ServerAnswer, CallError> {
        let request = self.request(call)?;
        let watched = self.begin(&request, call);
        let (http, bytes_max) = (self.http.client_for(call), self.http.answer_bytes_max);
        let exchanged = http.exchange(request, call.limit, bytes_max).await;
        let replied = exchanged.map_err(CallError::from).map(|answer| {
            let (head, body) = answer.into_parts();
            ServerAnswer::new(head, body)
        });
        let shown = replied.as_ref();
        self.show(
            watched,
            shown.map(|reply| (reply.status, &reply.headers, &*reply.body)),
        );
        replied
    }

    fn begin(&self, request: &Request<Bytes>, call: &ServerCall<'_>) -> Option<WatchedExchange> {
        let form = call.body.and_then(|body| body.form.as_deref());
        let watcher = self.watcher.as_ref();
        watcher.map(|_| WatchedExchange::begin(request, form))
    }

    fn show(
        &self,
        watched: Option<WatchedExchange>,
        answer: Result<(u16, &HeaderMap, &[u8]), &CallError>,
    ) {
        if let (Some(watcher), Some(watched)) = (&self.watcher, watched) {
            let mut watched = watched.end(answer);
            watched.conceal(&self.key);
            watcher.exchanged(&watched);
        }
    }

    /// Makes the call, and leaves the body of the answer unread.
    pub(crate) async fn open(
        &self,
        call: &ServerCall<'_>,
    ) -> Result<Response<Incoming>, CallError> {
        let response = self.open_once(call).await?;
        if response.status().as_u16() != 401 || !self.key.reload() {
            return Ok(response);
        }
        self.open_once(call).await
    }

    async fn open_once(&self, call: &ServerCall<'_>) -> Result<Response<Incoming>, CallError> {
        let request = self.request(call)?;
        let watched = self.begin(&request, call);
        let opened = self.http.client_for(call).open(request, call.limit).await;
        let response = opened.map_err(CallError::from);
        let shown = response.as_ref();
        self.show(
            watched,
            shown.map(|one| (one.status().as_u16(), one.headers(), &[][..])),
        );
        response
    }

    fn request(&self, call: &ServerCall<'_>) -> Result<Request<Bytes>, CallError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url.as_str())
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(ACCEPT, "*/*")
            .header(ACCEPT_ENCODING, "identity");
        if self.is_own(&call.url) {
            if let Some((name, value)) = self.key.header() {
                request = request.header(name, value);
            }
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
        }
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        let body = match call.body {
            Some(encoded) => {
                request = request.header(CONTENT_TYPE, &encoded.content_type);
                encoded.body.clone()
            }
            None => Bytes::new(),
        };
        let request = request.body(body);
        request.map_err(|error| CallError::Request(error.into()))
    }
}

/// Maximum size of a response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const IDLE: Duration = Duration::from_secs(30);
/// Maximum number of idle connections per upstream.
const IDLE_MAX: usize = 32;

/// A client that reuses connections.
#[derive(Clone, Debug)]
pub(crate) struct ServerClient {
    keeping: HttpClient,
    fresh: HttpClient,
    /// Dials public addresses alone.
    public: HttpClient,
    answer_bytes_max: usize,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct ServerAnswer {
    /// The HTTP status, or the one that the body means.
    pub(crate) status: u16,
    pub(crate) http_status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ServerAnswer {
    pub(crate) fn new(head: Parts, body: Bytes) -> Self {
        let status = head.status.as_u16();
        Self {
            status,
            http_status: status,
            headers: head.headers,
            body,
        }
    }

    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The answer as a [`CallError`], with the beginning of its body.
    pub(crate) fn refusal(&self) -> CallError {
        CallError::Status {
            status: self.status,
            text: shown(&self.body),
        }
    }

    /// Retry when the server wishes; it is not at fault.
    pub(crate) fn busy(&self) -> UpstreamError {
        UpstreamError::Busy {
            after: retry_after(&self.headers).unwrap_or_default(),
            cause: self.refusal(),
        }
    }
}

impl ServerClient {
    /// A client with its own connections. Makes none yet.
    pub(crate) fn new(options: &ServerOptions, clock: Arc<dyn Clock>) -> Result<Self, RootsError> {
        let connect_timeout = options.connect_timeout;
        let roots = TrustedRoots::public().with_pem(options.extra_roots_pem.as_deref())?;
        let tls = roots.client_config()?;
        let resolver = Arc::new(SystemResolver::new(connect_timeout, clock));
        let limits = ClientOptions {
            connect_timeout: Some(connect_timeout),
            idle_timeout: IDLE,
            idle_max: IDLE_MAX,
            ..ClientOptions::default()
        };
        let limits = limits.with_head(HEAD_BYTES_MAX);
        let fresh = ClientOptions {
            idle_max: 0,
            ..limits
        };
        let public = Arc::new(PublicResolver(resolver.clone()));
        Ok(Self {
            public: HttpClient::new(tls.clone(), limits, Some(public)),
            keeping: HttpClient::new(tls.clone(), limits, Some(resolver.clone())),
            fresh: HttpClient::new(tls, fresh, Some(resolver)),
            answer_bytes_max: options.answer_bytes_max,
        })
    }

    fn client_for(&self, call: &ServerCall<'_>) -> &HttpClient {
        if call.is_public {
            &self.public
        } else if call.method == Method::GET || call.method == Method::DELETE {
            &self.keeping
        } else {
            &self.fresh
        }
    }
}

/// Resolves to public addresses alone.
struct PublicResolver(Arc<SystemResolver>);

impl NameResolver for PublicResolver {
    fn resolve(
        &self,
        host: &str,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, BoxError>> + Send>> {
        let resolving = NameResolver::resolve(&*self.0, host);
        let host = host.to_owned();
        Box::pin(async move {
            let mut addresses = resolving.await?;
            addresses.retain(|address| classify(*address) == AddressVerdict::Public);
            if addresses.is_empty() {
                return Err(format!("{host} has no public address").into());
            }
            Ok(addresses)
        })
    }
}

/// One part of a form. The caller has checked names and media types: no quotes, no line breaks.
pub(crate) struct FormPart {
    head: String,
    bytes: Bytes,
    shown: String,
}

impl FormPart {
    /// A field of text.
    pub(crate) fn text(name: &str, text: String) -> Self {
        let head = format!("name=\"{name}\"");
        Self {
            shown: format!("{head}: {}", cut_text(&text)),
            head,
            bytes: text.into(),
        }
    }

    /// A file.
    pub(crate) fn file(name: &str, file_name: &str, media_type: &str, bytes: Bytes) -> Self {
        let head = format!("name=\"{name}\"; filename=\"{file_name}\"");
        Self {
            shown: format!(
                "{head}; content-type: {media_type}: ({} bytes)",
                bytes.len()
            ),
            head: format!("{head}\r\ncontent-type: {media_type}"),
            bytes,
        }
    }
}

/// Encodes the parts as one body.
pub(crate) fn encode_form(parts: &[FormPart]) -> EncodedBody {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(&part.head);
        hash.update(&part.bytes);
    }
    let boundary: String = hash.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut body = Vec::new();
    for part in parts {
        let head = &part.head;
        let head = format!("--{boundary}\r\ncontent-disposition: form-data; {head}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    EncodedBody {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        body: body.into(),
        form: Some(
            parts
                .iter()
                .map(|part| &*part.shown)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    }
}

/// `type/subtype` with the characters allowed in media types (RFC 6838, 4.2).
pub(crate) fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= 127
        && text
            .split_once('/')
            .is_some_and(|(kind, sub)| is_name(kind) && is_name(sub))
}

/// The ending of a file of this type, for servers that check it.
pub(crate) fn file_ending(media_type: &str) -> &'static str {
    match media_type {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/mp4" => "m4a",
        "audio/flac" => "flac",
        "audio/ogg" => "ogg",
        "audio/webm" => "webm",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}
