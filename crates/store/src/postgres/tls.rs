//! TLS for the driver, with the library that the rest of the program uses.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kinora_http::TrustedRoots;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

use super::address::ServerAddress;
use crate::OpenError;

/// Advice to operators on a failed encryption.
pub(super) fn advice(error: &tokio_postgres::Error) -> Option<&'static str> {
    let mut cause = error.source();
    while let Some(one) = cause {
        // The driver has no other way to tell this error from the rest.
        if one.to_string() == "server does not support TLS" {
            return Some(
                "switch `ssl` on in PostgreSQL, or remove `sslmode` from the address where the network is safe",
            );
        }
        let inner = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(rustls::Error::InvalidCertificate(why)) =
            inner.and_then(|inner| inner.downcast_ref())
        {
            return Some(match why {
                // A bad signature results if the trusted authority has the same name but another key.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "name the certificate of the authority that signed the server's with `sslrootcert` in the address"
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    "connect by a name that the server's certificate has"
                }
                _ => "give the server a certificate that is valid now",
            });
        }
        cause = one.source();
    }
    None
}

/// Makes encrypted connections to servers whose certificate is trusted.
#[derive(Clone)]
pub(super) struct TlsSettings(Arc<ClientConfig>);

impl TlsSettings {
    /// Builds it from the address.
    pub(super) fn from_address(address: &ServerAddress) -> Result<Self, OpenError> {
        let roots = match &address.roots {
            None => TrustedRoots::public(),
            Some(file) => TrustedRoots::none().with_file(file).map_err(|error| {
                let text = format!("the certificates in {}: {error}", file.display());
                OpenError::Unavailable(text.into())
            })?,
        };
        let config = roots.client_config();
        let config = config.map_err(|error| OpenError::Unavailable(error.into()))?;
        Ok(Self(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for TlsSettings
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, Self::Error> {
        Ok(TlsHandshake {
            connector: TlsConnector::from(self.0.clone()),
            name: ServerName::try_from(host.to_owned())?,
        })
    }
}

/// One handshake.
pub(super) struct TlsHandshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for TlsHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            Ok(EncryptedStream(stream))
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream<S>(Encrypted<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
