//! TCP and TLS to one of the judged addresses. It dials nothing else: no name reaches the
//! operating system here, and no environment variable is asked for a proxy.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::error::Cause;
use crate::options::OptionsError;
use crate::target::Target;

/// A plain or an encrypted connection.
pub(crate) type Stream = Box<dyn Duplex>;

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// TLS 1.2 and 1.3 on the public roots and `extra_roots_pem`; no session outlives its fetch.
///
/// # Errors
/// When the PEM is not one or more certificates.
pub(crate) fn tls(extra_roots_pem: Option<&[u8]>) -> Result<TlsConnector, OptionsError> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(pem) = extra_roots_pem {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(|error| OptionsError::Pem(error.to_string()))?)?;
        }
        if roots.len() == before {
            return Err(OptionsError::NoCertificate);
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Connects to the first address that answers by `deadline`. Each attempt gets an equal share of
/// the time left, so that one filtered address does not use up all of it.
///
/// # Errors
/// The cause of the last attempt.
pub(crate) async fn connect(
    target: &Target,
    tls: &TlsConnector,
    deadline: Instant,
) -> Result<Stream, Cause> {
    let name = target.tls_name()?;
    let mut attempts_left = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
    let mut last = Cause::NoAddress(target.url.host_str().unwrap_or_default().to_owned());
    for address in &target.addresses {
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now) / attempts_left.max(1);
        last = match timeout_at(now + share, attempt(*address, name.clone(), tls)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(cause)) => cause,
            Err(_) => Cause::ConnectTimeout(address.to_string()),
        };
        attempts_left = attempts_left.saturating_sub(1);
    }
    Err(last)
}

async fn attempt(
    address: SocketAddr,
    name: Option<ServerName<'static>>,
    tls: &TlsConnector,
) -> Result<Stream, Cause> {
    let connected = TcpStream::connect(address).await;
    let stream = connected.map_err(|source| Cause::Connect { address, source })?;
    let Some(name) = name else {
        return Ok(Box::new(stream));
    };
    match tls.connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(source) => Err(Cause::Tls { address, source }),
    }
}
