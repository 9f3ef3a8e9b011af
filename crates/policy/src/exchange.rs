//! One `POST` on a new connection, with the complete answer, bounded. The caller limits the time.
//! Any address is allowed, since the operator chose it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use kinora_contract::limits::POLICY_ANSWER_BYTES_MAX;
use kinora_fetch::{Resolve, SystemResolver};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto};
use url::{Host, Position, Url};

use crate::error::NoAnswer;

const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// Owner of the look-ups: there is only one service.
const LOOK_UPS: &str = "policy";
/// Maximum size of the answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of header lines: as many of 8 bytes, such as `a: bcd`, as a head has room for.
const HEADERS_MAX: usize = HEAD_BYTES_MAX / 8;

/// A plain or encrypted connection.
type Stream = Box<dyn Duplex>;

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// The policy service's endpoint.
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) resolver: SystemResolver,
    pub(crate) tls: TlsConnector,
}

/// TLS 1.2 and 1.3 with the public roots.
pub(crate) fn tls() -> Result<TlsConnector, rustls::Error> {
    let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl Endpoint {
    /// Sends `question`, which is JSON, and returns the answer's body.
    ///
    /// # Errors
    /// If there is no answer with status 200, or it exceeds its limit.
    pub(crate) async fn ask(&self, question: Bytes) -> Result<Bytes, NoAnswer> {
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(self.connect().await?))
            .await?;
        // Dropped with this future, which closes the connection.
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The reader of the response sees the same error.
            let _ = connection.await;
        });
        let answer = sender.send_request(self.request(question)?).await?;
        if answer.status() != StatusCode::OK {
            return Err(NoAnswer::Status(answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), POLICY_ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(NoAnswer::Body)?;
        Ok(body.to_bytes())
    }

    fn request(&self, question: Bytes) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let url = &self.url;
        let mut request = Request::post(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Full::new(question))
    }

    async fn connect(&self) -> Result<Stream, NoAnswer> {
        let addresses = self.addresses().await?;
        // Always set: both schemes have a default port.
        let port = self.url.port_or_known_default().unwrap_or_default();
        let sockets: Vec<_> = addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect();
        let tcp = TcpStream::connect(&*sockets).await?;
        tcp.set_nodelay(true)?;
        if self.url.scheme() != "https" {
            return Ok(Box::new(tcp));
        }
        let host = self.url.host_str().unwrap_or_default();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(std::io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, tcp).await?))
    }

    async fn addresses(&self) -> Result<Vec<IpAddr>, NoAnswer> {
        Ok(match self.url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => self.resolver.resolve(LOOK_UPS, name).await?,
            None => Vec::new(),
        })
    }
}
