//! The HTTP client under `object_store`: the same as in the other crates (hyper, rustls with ring),
//! with its own time limits. Follows no redirects and uses no proxies. Its errors name hosts, never
//! paths, queries or headers, which may contain secrets.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use kinora_http::{ClientOptions, ExchangeError, TrustedRoots, innermost};
use object_store::ClientOptions as StoreOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use tokio::time::Sleep;

/// Maximum number of bytes that a reader gets at once.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A request with this many bytes may take twice as long as one without a body.
const SLOW_BYTES: u64 = 4 << 20;
/// Shorter than servers keep idle connections.
const IDLE: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS_MAX: usize = 32;

/// Sends requests. Clones share their connections.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: kinora_http::HttpClient,
    patience: Duration,
}

impl Http {
    /// A client without connections, which waits so long for an answer to begin and for each piece of it. It trusts the
    /// authorities in `ca_file`, too.
    pub(super) fn new(patience: Duration, ca_file: Option<&Path>) -> io::Result<Self> {
        // Services of credentials have certificates of public authorities.
        let mut roots = TrustedRoots::public();
        if let Some(file) = ca_file {
            roots = roots.with_file(file).map_err(|error| {
                let text = format!("results.s3.ca_file, {}: {error}", file.display());
                io::Error::new(ErrorKind::InvalidInput, text)
            })?;
        }
        let tls = roots.client_config().map_err(io::Error::other)?;
        let options = ClientOptions {
            connect_timeout: Some(CONNECT_MAX),
            idle_timeout: IDLE,
            idle_max: IDLE_CONNECTIONS_MAX,
            // Limits the bytes read ahead of a slow reader.
            head_bytes_max: CHUNK_BYTES,
            ..ClientOptions::default()
        };
        let client = kinora_http::HttpClient::new(tls, options, None);
        Ok(Self { client, patience })
    }
}

impl HttpConnector for Http {
    fn connect(&self, _: &StoreOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Http {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let bytes = request.body().content_length() as u64;
        let limit = self
            .patience
            .mul_f64(1.0 + bytes as f64 / SLOW_BYTES as f64);
        let host = request.uri().host().unwrap_or_default().to_owned();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let answer = match tokio::time::timeout(limit, self.client.send(request)).await {
            Ok(answer) => answer.map_err(|error| failure(&host, &error))?,
            Err(_) => {
                let text = format!("no answer from {host} within {limit:.1?}");
                return Err(failed(HttpErrorKind::Timeout, ErrorKind::TimedOut, text));
            }
        };
        let (head, from) = answer.into_parts();
        let body = HttpResponseBody::new(Timed {
            from,
            patience: self.patience,
            silence: None,
        });
        Ok(HttpResponse::from_parts(head, body))
    }
}

/// All of them may be retried: our puts are judged by the key's content afterwards.
fn failure(host: &str, error: &ExchangeError) -> HttpError {
    let cause = innermost(error);
    if let ExchangeError::Connect(_) = error {
        let text = format!("cannot connect to {host}: {cause}");
        return failed(HttpErrorKind::Connect, ErrorKind::NotConnected, text);
    }
    let text = format!("the connection to {host} broke: {cause}");
    failed(HttpErrorKind::Request, ErrorKind::ConnectionAborted, text)
}

fn failed(kind: HttpErrorKind, io: ErrorKind, text: String) -> HttpError {
    HttpError::new(kind, io::Error::new(io, text))
}

/// A body that fails when a reader waits too long for the next piece.
#[derive(Debug)]
struct Timed {
    from: Incoming,
    patience: Duration,
    /// Set while a reader waits.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Body for Timed {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.from).poll_frame(context) {
            self.silence = None;
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))
            }));
        }
        let patience = self.patience;
        let silence = self
            .silence
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        silence.as_mut().poll(context).map(|()| {
            let text = format!("no further part of the answer within {patience:.1?}");
            Some(Err(failed(
                HttpErrorKind::Timeout,
                ErrorKind::TimedOut,
                text,
            )))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.from.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.from.size_hint()
    }
}
