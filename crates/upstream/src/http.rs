//! Bounded HTTP exchanges: every answer has a deadline and a maximum size. Connections are reused
//! for polls; a `POST` always gets a new one, since an old one may break just then. Redirects are
//! not followed, and proxies are not used.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};

use kinora_contract::Clock;
use kinora_fetch::Names;

use crate::cause::Cause;
use crate::text::shown;

/// Maximum size of a response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of header lines: as many of 8 bytes, such as `a: bcd`, as a head has room for.
const HEADERS_MAX: usize = HEAD_BYTES_MAX / 8;
const IDLE: Duration = Duration::from_secs(30);
/// Maximum number of idle connections per upstream.
const IDLE_MAX: usize = 32;

/// An answer that is waited for.
type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Cause>> + Send + 'a>>;

/// A client that reuses connections.
#[derive(Clone, Debug)]
pub struct Http {
    keeping: Client<HttpsConnector<HttpConnector<Names>>, Full<Bytes>>,
    fresh: Client<HttpsConnector<HttpConnector<Names>>, Full<Bytes>>,
    answer_bytes_max: usize,
}

/// A complete answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Reply {
    /// Whether the status is one of success.
    pub const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The answer as a [`Cause`], with the beginning of its body.
    pub fn refusal(&self) -> Cause {
        Cause::Status {
            status: self.status,
            text: shown(&self.body),
        }
    }
}

/// Limits and trust of an [`Http`].
#[derive(Clone, Copy, Debug)]
pub struct HttpOptions<'a> {
    /// Maximum time for a connection, without the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum size of an answer that is read whole.
    pub answer_bytes_max: usize,
    /// Additional trusted certificate authorities, as PEM.
    pub extra_roots_pem: Option<&'a [u8]>,
}

/// Why additional certificate authorities are unusable.
#[derive(Debug, thiserror::Error)]
#[error("unusable extra certificate authorities: {0}")]
pub struct RootsError(String);

impl Http {
    /// A client with its own connections. Makes none yet.
    ///
    /// # Errors
    /// [`RootsError`] if the additional certificate authorities are unusable.
    pub fn new(options: HttpOptions<'_>, clock: Arc<dyn Clock>) -> Result<Self, RootsError> {
        let connect_timeout = options.connect_timeout;
        let mut plain = HttpConnector::new_with_resolver(Names::new(connect_timeout, clock));
        plain.set_connect_timeout(Some(connect_timeout));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(options.extra_roots_pem)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = |idle_max| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle_max)
                .http1_max_buf_size(HEAD_BYTES_MAX)
                .http1_max_headers(HEADERS_MAX)
                .build(connector.clone())
        };
        Ok(Self {
            keeping: client(IDLE_MAX),
            fresh: client(0),
            answer_bytes_max: options.answer_bytes_max,
        })
    }

    /// Sends `request` and reads the complete answer within `limit`.
    ///
    /// # Errors
    /// [`Cause`] without a complete answer. Any status is an answer.
    pub async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Reply, Cause> {
        let exchanged = tokio::time::timeout(limit, async {
            let (head, body) = self.send(request).await?.into_parts();
            let body = Limited::new(body, self.answer_bytes_max).collect().await;
            let body = body.map_err(|error| {
                if error.is::<http_body_util::LengthLimitError>() {
                    Cause::AnswerTooLarge(self.answer_bytes_max)
                } else {
                    Cause::Exchange(error)
                }
            })?;
            Ok(Reply {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.to_bytes(),
            })
        });
        exchanged.await.unwrap_or(Err(Cause::Timeout(limit)))
    }

    /// Sends `request` and reads the head of the answer within `limit`.
    ///
    /// # Errors
    /// [`Cause`] without a head in time.
    pub async fn open(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Response<Incoming>, Cause> {
        let opened = tokio::time::timeout(limit, self.send(request));
        opened.await.unwrap_or(Err(Cause::Timeout(limit)))
    }

    /// Boxed, so that only this crate compiles the client: each crate that polls the future of an `async fn` compiles its
    /// body.
    fn send(&self, request: Request<Full<Bytes>>) -> Answering<'_> {
        let client = match *request.method() {
            Method::POST => &self.fresh,
            _ => &self.keeping,
        };
        Box::pin(async move {
            let sent = client.request(request).await;
            sent.map_err(|error| {
                if error.is_connect() {
                    Cause::Connect(error.into())
                } else {
                    Cause::Exchange(error.into())
                }
            })
        })
    }
}

/// TLS 1.2 and 1.3 with the public roots and `extra_roots_pem`.
fn tls(extra_roots_pem: Option<&[u8]>) -> Result<ClientConfig, RootsError> {
    let unusable = |error: &dyn std::fmt::Display| RootsError(error.to_string());
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(pem) = extra_roots_pem {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| unusable(&error))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        if roots.len() == before {
            return Err(unusable(&"they contain no certificate"));
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
