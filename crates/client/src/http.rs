//! HTTP exchanges with time and size limits, over reused connections. Uses no proxy and follows no
//! redirect.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::{Error, Refusal};
use crate::retry;

/// Maximum size of an answer that is not a download. A page of tasks has at most 1 MiB.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// How much of an unexpected answer is quoted.
const QUOTED_CHARS_MAX: usize = 200;
const USER_AGENT_TEXT: &str = concat!("kinora-client/", env!("CARGO_PKG_VERSION"));

/// Connections to services.
#[derive(Debug)]
pub(crate) struct Http {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    limit: Duration,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    extra: Duration,
}

impl Call {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            extra: Duration::ZERO,
        }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// The same call at a URL of another service, without the key.
    pub(crate) fn elsewhere(&self, url: Url) -> Self {
        let mut call = Self {
            url,
            ..self.clone()
        };
        call.headers.remove(AUTHORIZATION);
        call
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Extends the time limit, because the service was asked to wait.
    pub(crate) fn waiting(mut self, extra: Duration) -> Self {
        self.extra = extra;
        self
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        let uri = self.url.as_str().parse();
        *request.uri_mut() =
            uri.map_err(|_| Error::Options(format!("{} is no address", self.url)))?;
        *request.headers_mut() = self.headers.clone();
        let agent = HeaderValue::from_static(USER_AGENT_TEXT);
        request.headers_mut().insert(USER_AGENT, agent);
        Ok(request)
    }
}

/// A complete, successful answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Answer(error.to_string()))
    }
}

impl Http {
    pub(crate) fn new(
        connect_limit: Duration,
        limit: Duration,
        roots_pem: &[u8],
    ) -> Result<Self, Error> {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(connect_limit));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots_pem)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client, limit })
    }

    /// The time limit for one answer, and for each piece of a long one.
    pub(crate) const fn limit(&self) -> Duration {
        self.limit
    }

    /// One exchange: returns the complete answer, or its refusal as an error.
    pub(crate) async fn exchange(&self, call: &Call) -> Result<Reply, Error> {
        let limit = self.limit + call.extra;
        let exchanged = async {
            let response = self.send(call).await?;
            let (head, body) = accepted(response).await?.into_parts();
            Ok(Reply {
                headers: head.headers,
                body: whole(body).await?,
            })
        };
        let exchanged = tokio::time::timeout(limit, exchanged).await;
        exchanged.unwrap_or(Err(Error::Timeout(limit)))
    }

    /// Reads the head of the answer within the limit, whatever its status; leaves the body unread.
    pub(crate) async fn open(&self, call: &Call) -> Result<Response<Incoming>, Error> {
        let opened = tokio::time::timeout(self.limit, self.send(call)).await;
        opened.unwrap_or(Err(Error::Timeout(self.limit)))
    }

    /// Returns `response`, or its refusal as an error.
    pub(crate) async fn accepted(
        &self,
        response: Response<Incoming>,
    ) -> Result<Response<Incoming>, Error> {
        let judged = tokio::time::timeout(self.limit, accepted(response)).await;
        judged.unwrap_or(Err(Error::Timeout(self.limit)))
    }

    async fn send(&self, call: &Call) -> Result<Response<Incoming>, Error> {
        let sent = self.client.request(call.request()?).await;
        sent.map_err(|error| {
            if error.is_connect() {
                Error::Connect {
                    origin: call.url.origin().ascii_serialization(),
                    source: innermost(error.into()),
                }
            } else {
                Error::Broken(innermost(error.into()))
            }
        })
    }
}

/// The innermost cause: "connection refused" says more than "client error (Connect)".
fn innermost(error: Box<dyn StdError + Send + Sync>) -> Box<dyn StdError + Send + Sync> {
    let mut deepest: &dyn StdError = &*error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string().into()
}

async fn whole(body: Incoming) -> Result<Bytes, Error> {
    let limited = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let collected = limited.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Error::Answer(format!("it is larger than {ANSWER_BYTES_MAX} bytes"))
        } else {
            Error::Broken(innermost(error))
        }
    })?;
    Ok(collected.to_bytes())
}

async fn accepted(response: Response<Incoming>) -> Result<Response<Incoming>, Error> {
    // Only downloads expect redirects, and handle them themselves.
    if response.status().is_success() || response.status().is_redirection() {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let body = whole(body).await?;
    Err(Error::Refused(Box::new(refusal(
        head.status.as_u16(),
        &head.headers,
        &body,
    ))))
}

#[derive(Deserialize)]
struct Envelope {
    error: Detail,
}

#[derive(Deserialize)]
struct Detail {
    message: String,
    code: String,
    param: Option<String>,
}

fn refusal(status: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let detail = serde_json::from_slice::<Envelope>(body).map_or_else(
        |_| Detail {
            message: quoted(body),
            code: String::new(),
            param: None,
        },
        |envelope| envelope.error,
    );
    Refusal {
        status,
        code: detail.code,
        message: detail.message,
        param: detail.param,
        request_id: text("x-request-id"),
        retry_after: retry::retry_after(headers),
        is_final: text("x-should-retry").as_deref() == Some("false"),
    }
}

/// The start of an unexpected body, such as the page of a proxy, on one line.
fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(QUOTED_CHARS_MAX).collect();
    if line.is_empty() {
        "The answer is empty".to_owned()
    } else {
        line
    }
}

/// TLS 1.2 and 1.3 with the public roots and those of `roots_pem`.
fn tls(roots_pem: &[u8]) -> Result<ClientConfig, Error> {
    let unusable = |error: &dyn std::fmt::Display| {
        Error::Options(format!("the root certificates cannot be used: {error}"))
    };
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let public = roots.len();
    for certificate in CertificateDer::pem_slice_iter(roots_pem) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if !roots_pem.is_empty() && roots.len() == public {
        return Err(unusable(&"there is no certificate in them"));
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
