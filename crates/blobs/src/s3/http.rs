//! The HTTP client under `object_store`: the same as in the other crates (hyper, rustls with ring),
//! with its own time limits. Follows no redirects and uses no proxies. Its errors name hosts, never
//! paths, queries or headers, which may contain secrets.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    self, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
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
    client: Client<HttpsConnector<HttpConnector>, HttpRequestBody>,
    patience: Duration,
}

impl Http {
    /// A client without connections, which waits so long for an answer to begin and for each piece of it. It trusts the
    /// authorities in `ca_file`, too.
    pub(super) fn new(patience: Duration, ca_file: Option<&Path>) -> io::Result<Self> {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(CONNECT_MAX));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(ca_file)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            // Limits the bytes read ahead of a slow reader.
            .http1_max_buf_size(CHUNK_BYTES)
            .build(connector);
        Ok(Self { client, patience })
    }
}

/// TLS 1.2 and 1.3 with the public roots, which services of credentials have, and those of a file.
fn tls(ca_file: Option<&Path>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(file) = ca_file {
        add_authorities(&mut roots, file).map_err(|error| {
            let text = format!("results.s3.ca_file, {}: {error}", file.display());
            io::Error::new(ErrorKind::InvalidInput, text)
        })?;
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Adds the certificates of a PEM file, of which there must be one.
fn add_authorities(
    roots: &mut RootCertStore,
    file: &Path,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    if roots.len() == before {
        return Err("there is no certificate in it".into());
    }
    Ok(())
}

impl client::HttpConnector for Http {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
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
        let answer = match tokio::time::timeout(limit, self.client.request(request)).await {
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
fn failure(host: &str, error: &legacy::Error) -> HttpError {
    let cause = innermost(error);
    if error.is_connect() {
        let text = format!("cannot connect to {host}: {cause}");
        return failed(HttpErrorKind::Connect, ErrorKind::NotConnected, text);
    }
    let text = format!("the connection to {host} broke: {cause}");
    failed(HttpErrorKind::Request, ErrorKind::ConnectionAborted, text)
}

fn failed(kind: HttpErrorKind, io: ErrorKind, text: String) -> HttpError {
    HttpError::new(kind, io::Error::new(io, text))
}

fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
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
