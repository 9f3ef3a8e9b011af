//! One `POST` to the collector, on a new connection and within a time limit. Any address is
//! allowed, since the operator chose it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use kinora_contract::Clock;
use kinora_http::{ClientOptions, ExchangeError, HttpClient, TrustedRoots, error_chain};
use kinora_http_fetch::SystemResolver;
use url::Url;

use crate::options::{TraceOptions, TraceOptionsError};

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// Time limit from the name's resolution to the head of the answer.
pub(crate) const POST_MAX: Duration = Duration::from_secs(10);
/// Maximum size of the answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Receives spans.
pub(crate) struct Collector {
    client: HttpClient,
    url: Url,
    headers: HeaderMap,
}

/// Why the collector did not accept spans.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    #[error("{}", error_chain(.0))]
    Exchange(#[from] ExchangeError),
    #[error("its answer has status {0}")]
    Status(u16),
    #[error("the request could not be made: {0}")]
    Request(#[from] hyper::http::Error),
}

impl Untaken {
    /// Whether a retry may succeed, according to OTLP.
    pub(crate) const fn is_transient(&self) -> bool {
        match self {
            Self::Exchange(_) => true,
            Self::Status(status) => matches!(status, 429 | 502 | 503 | 504),
            Self::Request(_) => false,
        }
    }
}

impl Collector {
    pub(crate) fn new(
        options: &TraceOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TraceOptionsError> {
        let limits = ClientOptions {
            // An old connection may break just when it is used.
            idle_max: 0,
            head_bytes_max: HEAD_BYTES_MAX,
            ..ClientOptions::default()
        };
        let resolver = Arc::new(SystemResolver::new(POST_MAX, clock));
        let tls = TrustedRoots::public().client_config()?;
        let client = HttpClient::new(tls, limits, Some(resolver));
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
            .body(body)?;
        request.headers_mut().extend(self.headers.clone());
        let answer = self.client.open(request, POST_MAX).await?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status => Err(Untaken::Status(status)),
        }
    }
}
