//! HTTP exchanges with time and size limits, over reused connections. Uses no proxy and follows no
//! redirect.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use kinora_http::{
    ClientOptions, ExchangeError, HttpClient, RequestBody, TrustedRoots, innermost, read_body,
};
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
pub(crate) struct ServiceConnections {
    client: HttpClient,
    /// The time limit for one answer, and for each piece of a long one.
    pub(crate) limit: Duration,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct ApiCall {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    extra: Duration,
}

impl ApiCall {
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

    fn request(&self) -> Result<Request<Bytes>, Error> {
        let mut request = Request::new(self.body.clone());
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
pub(crate) struct ApiReply {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ApiReply {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Answer(error.to_string()))
    }
}

impl ServiceConnections {
    pub(crate) fn new(
        connect_limit: Duration,
        limit: Duration,
        roots_pem: &[u8],
    ) -> Result<Self, Error> {
        let extra = Some(roots_pem).filter(|pem| !pem.is_empty());
        let roots = TrustedRoots::public().with_pem(extra);
        let tls = roots
            .and_then(TrustedRoots::client_config)
            .map_err(|error| {
                Error::Options(format!("the root certificates cannot be used: {error}"))
            })?;
        let options = ClientOptions {
            connect_timeout: Some(connect_limit),
            ..ClientOptions::default()
        };
        let client = HttpClient::new(tls, options, None);
        Ok(Self { client, limit })
    }

    /// One exchange: returns the complete answer, or its refusal as an error.
    pub(crate) async fn exchange(&self, call: &ApiCall) -> Result<ApiReply, Error> {
        let limit = self.limit + call.extra;
        let exchanging = self
            .client
            .exchange(call.request()?, limit, ANSWER_BYTES_MAX);
        let answer = exchanging
            .await
            .map_err(|error| failure(error, &call.url))?;
        let (head, body) = answer.into_parts();
        if !is_accepted(head.status) {
            return Err(refused(&head, &body));
        }
        let headers = head.headers;
        Ok(ApiReply { headers, body })
    }

    /// Like [`Self::exchange`], with a body that is made while it is sent.
    pub(crate) async fn upload(
        &self,
        call: &ApiCall,
        body: RequestBody,
    ) -> Result<ApiReply, Error> {
        let limit = self.limit + call.extra;
        let sending = self.client.send(call.request()?.map(|_| body));
        let sent = tokio::time::timeout(limit, sending).await;
        let response = sent
            .map_err(|_| Error::Timeout(limit))?
            .map_err(|error| failure(error, &call.url))?;
        let (head, body) = self.accepted(response).await?.into_parts();
        let (headers, body) = (head.headers, self.read(body).await?);
        Ok(ApiReply { headers, body })
    }

    /// Reads the head of the answer within the limit, whatever its status; leaves the body unread.
    pub(crate) async fn open(&self, call: &ApiCall) -> Result<Response<Incoming>, Error> {
        let opened = self.client.open(call.request()?, self.limit).await;
        opened.map_err(|error| failure(error, &call.url))
    }

    /// Returns `response`, or its refusal as an error.
    pub(crate) async fn accepted(
        &self,
        response: Response<Incoming>,
    ) -> Result<Response<Incoming>, Error> {
        if is_accepted(response.status()) {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        Err(refused(&head, &self.read(body).await?))
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, Error> {
        let read = tokio::time::timeout(self.limit, read_body(body, ANSWER_BYTES_MAX)).await;
        Ok(read.map_err(|_| Error::Timeout(self.limit))??)
    }
}

/// Only downloads expect redirects, and handle them themselves.
fn is_accepted(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// The error of an exchange with `url`, by its innermost cause.
fn failure(error: ExchangeError, url: &Url) -> Error {
    match error {
        ExchangeError::Connect(error) => Error::Connect {
            origin: url.origin().ascii_serialization(),
            source: innermost(&*error).to_string().into(),
        },
        other => other.into(),
    }
}

impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Timeout(limit) => Self::Timeout(limit),
            ExchangeError::TooLarge(max) => Self::Answer(format!("it is larger than {max} bytes")),
            ExchangeError::Broken(error) | ExchangeError::Connect(error) => {
                Self::Broken(innermost(&*error).to_string().into())
            }
        }
    }
}

#[derive(Deserialize)]
struct ErrorEnvelope {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    message: String,
    code: String,
    param: Option<String>,
}

fn refused(head: &Parts, body: &[u8]) -> Error {
    let text = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let detail = serde_json::from_slice::<ErrorEnvelope>(body).map_or_else(
        |_| ErrorDetail {
            message: quoted(body),
            code: String::new(),
            param: None,
        },
        |envelope| envelope.error,
    );
    Error::Refused(Box::new(Refusal {
        status: head.status.as_u16(),
        code: detail.code,
        message: detail.message,
        param: detail.param,
        request_id: text("x-request-id"),
        retry_after: retry::retry_after(&head.headers),
        is_final: text("x-should-retry").as_deref() == Some("false"),
    }))
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
