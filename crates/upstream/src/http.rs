//! Bounded HTTP exchanges: every answer has a deadline and a maximum size. Connections are reused
//! for polls; a `POST` always gets a new one, since an old one may break just then. Redirects are
//! not followed, and proxies are not used.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response};
use kinora_contract::Clock;
use kinora_fetch::SystemResolver;
use kinora_http::{ClientOptions, HttpClient, Roots, RootsError};

use crate::cause::Cause;
use crate::text::shown;

/// Maximum size of a response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const IDLE: Duration = Duration::from_secs(30);
/// Maximum number of idle connections per upstream.
const IDLE_MAX: usize = 32;

/// A client that reuses connections.
#[derive(Clone, Debug)]
pub struct Http {
    keeping: HttpClient,
    fresh: HttpClient,
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

impl Http {
    /// A client with its own connections. Makes none yet.
    ///
    /// # Errors
    /// [`RootsError`] if the additional certificate authorities are unusable.
    pub fn new(options: HttpOptions<'_>, clock: Arc<dyn Clock>) -> Result<Self, RootsError> {
        let connect_timeout = options.connect_timeout;
        let roots = Roots::public().with_pem(options.extra_roots_pem)?;
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
        Ok(Self {
            keeping: HttpClient::new(tls.clone(), limits, Some(resolver.clone())),
            fresh: HttpClient::new(tls, fresh, Some(resolver)),
            answer_bytes_max: options.answer_bytes_max,
        })
    }

    /// Sends `request` and reads the complete answer within `limit`.
    ///
    /// # Errors
    /// [`Cause`] without a complete answer. Any status is an answer.
    pub async fn exchange(&self, request: Request<Bytes>, limit: Duration) -> Result<Reply, Cause> {
        let client = self.client_for(&request);
        let answer = client.exchange(request, limit, self.answer_bytes_max).await;
        let (head, body) = answer?.into_parts();
        Ok(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    /// Sends `request` and reads the head of the answer within `limit`.
    ///
    /// # Errors
    /// [`Cause`] without a head in time.
    pub async fn open(
        &self,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<Response<Incoming>, Cause> {
        Ok(self.client_for(&request).open(request, limit).await?)
    }

    fn client_for(&self, request: &Request<Bytes>) -> &HttpClient {
        if request.method() == Method::POST {
            &self.fresh
        } else {
            &self.keeping
        }
    }
}
