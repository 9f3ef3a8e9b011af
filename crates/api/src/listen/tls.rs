//! TLS for HTTP/1.1: certificate and key from PEM files, one cryptographic provider (ring),
//! versions 1.2 and 1.3, no client certificates. The files can be reloaded while serving, since
//! certificates are renewed more often than services restart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// A certificate and its key, ready to serve. Clones share them.
#[derive(Clone)]
pub struct ServerTls {
    acceptor: TlsAcceptor,
    files: Arc<TlsFiles>,
    current: Arc<CurrentCertificate>,
}

/// Why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or contains no item of the expected kind.
    #[error("{file} contains no {what} in PEM format")]
    File {
        /// The file.
        file: String,
        /// The expected kind of item.
        what: &'static str,
        /// The cause.
        source: pem::Error,
    },
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("certificate and key do not match or are not supported")]
    Pair(#[from] rustls::Error),
}

struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// The key and certificate that handshakes currently use.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ServerTls {
    /// Reads the certificate chain, the service's own certificate first, and its `key`.
    ///
    /// # Errors
    /// [`TlsError`] if a file cannot be read or the two do not match.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = TlsFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(files.read()?))));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            files: Arc::new(files),
            current,
        })
    }

    /// Reloads the files for new connections.
    ///
    /// # Errors
    /// As [`ServerTls::from_files`]; the previous certificate stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        // Read before the lock is taken, and swapped as a pair: a handshake never sees a new
        // certificate with an old key, and a failed read changes nothing.
        let fresh = Arc::new(self.files.read()?);
        *self
            .current
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl TlsFiles {
    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let failed = |path: &Path, what| {
            let file = path.display().to_string();
            move |source| TlsError::File { file, what, source }
        };
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .and_then(|chain| {
                let some = !chain.is_empty();
                some.then_some(chain).ok_or(pem::Error::NoItemsFound)
            })
            .map_err(failed(&self.certificate, "certificate"))?;
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(failed(&self.key, "private key"))?;
        Ok(CertifiedKey::from_der(
            chain,
            key,
            &ring::default_provider(),
        )?)
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_certificate(folder: &Path) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_renewed_certificate_is_served_and_a_broken_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        write_certificate(folder.path());
        let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        let tls = ServerTls::from_files(&certificate, &key).unwrap();
        let served = || tls.current.0.read().unwrap().cert.clone();
        let first = served();

        write_certificate(folder.path());
        assert_eq!(served(), first);
        tls.reload().unwrap();
        let second = served();
        assert_ne!(second, first);

        std::fs::write(&certificate, "no certificate").unwrap();
        let error = tls.reload().unwrap_err();
        assert!(error.to_string().contains("cert.pem"), "{error}");
        assert_eq!(served(), second);
    }
}
