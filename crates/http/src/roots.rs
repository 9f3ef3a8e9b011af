//! The certificate authorities that a client trusts: the public ones, an operator's own, or both. The
//! only place where a client's TLS is configured: versions 1.2 and 1.3, with ring.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore, crypto};

/// Trusted certificate authorities.
#[derive(Debug)]
pub struct TrustedRoots(RootCertStore);

/// Why certificate authorities are unusable.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file cannot be read, or is not PEM.
    #[error("{0}")]
    Pem(pem::Error),
    /// There is no certificate, which is surely a mistake.
    #[error("no certificate found")]
    Empty,
    /// TLS refused a certificate or its own settings.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl TrustedRoots {
    /// The authorities that browsers trust.
    pub fn public() -> Self {
        Self(RootCertStore::from_iter(
            webpki_roots::TLS_SERVER_ROOTS.iter().cloned(),
        ))
    }

    /// No authorities: those that are added are the only ones.
    pub fn none() -> Self {
        Self(RootCertStore::empty())
    }

    /// Adds the certificates of a PEM text. `None` adds nothing.
    ///
    /// # Errors
    /// [`RootsError`] if the text has no usable certificate.
    pub fn with_pem(self, pem: Option<&[u8]>) -> Result<Self, RootsError> {
        match pem {
            Some(pem) => self.with_certificates(CertificateDer::pem_slice_iter(pem)),
            None => Ok(self),
        }
    }

    /// Adds the certificates of a PEM file. Blocks while reading it.
    ///
    /// # Errors
    /// [`RootsError`] if the file has no usable certificate.
    pub fn with_file(self, path: &Path) -> Result<Self, RootsError> {
        self.with_certificates(CertificateDer::pem_file_iter(path).map_err(RootsError::Pem)?)
    }

    fn with_certificates(
        mut self,
        certificates: impl Iterator<Item = Result<CertificateDer<'static>, pem::Error>>,
    ) -> Result<Self, RootsError> {
        let before = self.0.len();
        for certificate in certificates {
            self.0.add(certificate.map_err(RootsError::Pem)?)?;
        }
        if self.0.len() == before {
            return Err(RootsError::Empty);
        }
        Ok(self)
    }

    /// The configuration of a client that trusts these authorities and has no certificate itself.
    ///
    /// # Errors
    /// [`RootsError::Tls`] if the library was built without the usual versions of TLS.
    pub fn client_config(self) -> Result<ClientConfig, RootsError> {
        // Named, not the process's default: a dependency that brings another provider would make the
        // default ambiguous, and rustls panics then.
        let provider = Arc::new(crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(config.with_root_certificates(self.0).with_no_client_auth())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_usable_certificate_is_refused() {
        let added = |pem: &[u8]| TrustedRoots::public().with_pem(Some(pem));
        assert!(matches!(added(b""), Err(RootsError::Empty)));
        assert!(matches!(
            added(b"-----BEGIN CERTIFICATE-----\nno\n"),
            Err(RootsError::Pem(_))
        ));
        let no_certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(added(no_certificate), Err(RootsError::Tls(_))));
        assert!(
            TrustedRoots::none()
                .with_file(Path::new("/no/such/file"))
                .is_err()
        );
        TrustedRoots::public().client_config().unwrap();
    }
}
