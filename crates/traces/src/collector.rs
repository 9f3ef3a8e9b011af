//! One `POST` to the collector, on a new connection and within a time limit. Any address is
//! allowed, since the operator chose it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kinora_contract::Clock;
use kinora_fetch::Names;
use rustls::{ClientConfig, RootCertStore, crypto};
use url::Url;

use crate::options::{Options, OptionsError};

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// Time limit from the name's resolution to the head of the answer.
pub(crate) const POST_MAX: Duration = Duration::from_secs(10);
/// Maximum size of the answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Receives spans.
pub(crate) struct Collector {
    client: Client<HttpsConnector<HttpConnector<Names>>, Full<Bytes>>,
    url: Url,
    headers: HeaderMap,
}

/// Why the collector did not accept spans.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    #[error("no answer in time")]
    Timeout,
    #[error("the exchange failed: {0}")]
    Exchange(String),
    #[error("its answer has status {0}")]
    Status(u16),
    #[error("the request could not be made: {0}")]
    Request(#[from] hyper::http::Error),
}

impl Untaken {
    /// Whether a retry may succeed, according to OTLP.
    pub(crate) const fn is_transient(&self) -> bool {
        match self {
            Self::Timeout | Self::Exchange(_) => true,
            Self::Status(status) => matches!(status, 429 | 502 | 503 | 504),
            Self::Request(_) => false,
        }
    }
}

impl Collector {
    pub(crate) fn new(options: &Options, clock: Arc<dyn Clock>) -> Result<Self, OptionsError> {
        let mut plain = HttpConnector::new_with_resolver(Names::new(POST_MAX, clock));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            // An old connection may break just when it is used.
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .build(connector);
        let mut headers = options.header_map()?;
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self {
            client,
            url: options.url()?,
            headers,
        })
    }

    /// Sends a body. Does not read the answer's.
    pub(crate) async fn post(&self, body: Bytes) -> Result<(), Untaken> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.url.as_str())
            .body(Full::new(body))?;
        request.headers_mut().extend(self.headers.clone());
        let sent = tokio::time::timeout(POST_MAX, self.client.request(request)).await;
        let answer = sent
            .map_err(|_| Untaken::Timeout)?
            .map_err(|error| Untaken::Exchange(with_causes(&error)))?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status => Err(Untaken::Status(status)),
        }
    }
}

/// The client's own message only names the failed step.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// TLS 1.2 and 1.3 with the public roots.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
