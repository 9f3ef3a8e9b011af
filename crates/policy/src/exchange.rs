//! One `POST` on a new connection, with the complete answer, bounded. The caller limits the time.
//! Any address is allowed, since the operator chose it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use kinora_contract::Clock;
use kinora_contract::limits::POLICY_ANSWER_BYTES_MAX;
use kinora_http::{ClientOptions, HttpClient, TrustedRoots, read_body};
use kinora_http_fetch::SystemResolver;
use url::Url;

use crate::error::{PolicyError, PolicyOptionsError};
use crate::options::PolicyOptions;

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// Maximum size of the answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The policy service's endpoint.
pub(crate) struct PolicyEndpoint {
    pub(crate) url: Url,
    authorization: Option<HeaderValue>,
    client: HttpClient,
}

impl PolicyEndpoint {
    pub(crate) fn new(
        options: &PolicyOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, PolicyOptionsError> {
        let limits = ClientOptions {
            // An old connection may break just when it is used, and a question is not repeated.
            idle_max: 0,
            ..ClientOptions::default()
        };
        let resolver = Arc::new(SystemResolver::new(options.timeout, clock));
        let tls = TrustedRoots::public().client_config()?;
        Ok(Self {
            url: options.parsed_url()?,
            authorization: options.authorization()?,
            client: HttpClient::new(tls, limits.with_head(HEAD_BYTES_MAX), Some(resolver)),
        })
    }

    /// Sends `question`, which is JSON, and returns the answer's body.
    ///
    /// # Errors
    /// If there is no answer with status 200, or it exceeds its limit.
    pub(crate) async fn ask(&self, question: Bytes, limit: Duration) -> Result<Bytes, PolicyError> {
        let answer = self.client.open(self.request(question)?, limit).await?;
        if answer.status() != StatusCode::OK {
            return Err(PolicyError::Status(answer.status().as_u16()));
        }
        Ok(read_body(answer.into_body(), POLICY_ANSWER_BYTES_MAX).await?)
    }

    fn request(&self, question: Bytes) -> Result<Request<Bytes>, hyper::http::Error> {
        let mut request = Request::post(self.url.as_str())
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(question)
    }
}
