//! The operator's certificate and key, which sign films.

use std::fmt;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use kinora_contract::{Clock, UnixMs, iso_date};
use kinora_media::{MediaError, Provenance, Sealed, Sealer};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::CredentialError;
use crate::certificate::Certificate;
use crate::cose;
use crate::key::Key;
use crate::layout::{Layout, Unsealed, manifest_box};
use crate::manifest::Manifest;

/// The hash that stands in a manifest until that of its film is known.
const NO_HASH: [u8; 32] = [0; 32];

/// Signs films with one certificate.
pub struct Signer {
    key: Key,
    /// In DER, from the signer's own upwards, without the authority at the end.
    chain: Vec<Vec<u8>>,
    name: String,
    not_before_ms: UnixMs,
    not_after_ms: UnixMs,
    clock: Arc<dyn Clock>,
}

impl Signer {
    /// A signer with the first of these certificates, which the others issued one after another, and its key; both in
    /// PEM. The present by `clock` must be within the validity of all of them.
    ///
    /// # Errors
    /// [`CredentialError`] for what cannot sign, or what validators would refuse.
    pub fn new(
        certificates_pem: &[u8],
        key_pem: &[u8],
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CredentialError> {
        let ders = CertificateDer::pem_slice_iter(certificates_pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| CredentialError::NoCertificate)?;
        let read = ders.iter().enumerate().map(|(index, der)| {
            Certificate::read(der).ok_or(CredentialError::Unreadable(index + 1))
        });
        let chain = read.collect::<Result<Vec<_>, _>>()?;
        let own = chain.first().ok_or(CredentialError::NoCertificate)?;
        if let Some(objection) = own.objection() {
            return Err(CredentialError::Profile(objection));
        }
        if let Some(at) = chain
            .windows(2)
            .position(|pair| !pair[0].is_issued_by(&pair[1]))
        {
            return Err(CredentialError::Order(at + 2));
        }
        let der = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| CredentialError::NoKey)?;
        let key = Key::of(own, &der)?;
        // Validators have the authorities that they trust.
        let sent = ders
            .iter()
            .zip(&chain)
            .filter(|(_, one)| !one.is_self_issued());
        let signer = Self {
            key,
            name: own.name().unwrap_or_default(),
            not_before_ms: chain.iter().map(|one| one.not_before_ms).max().unwrap_or(0),
            not_after_ms: chain.iter().map(|one| one.not_after_ms).min().unwrap_or(0),
            chain: sent.map(|(der, _)| der.to_vec()).collect(),
            clock,
        };
        signer.check_time()?;
        Ok(signer)
    }

    /// The common name in its certificate.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The end of its certificates' validity, in milliseconds since 1970.
    pub const fn not_after_ms(&self) -> UnixMs {
        self.not_after_ms
    }

    fn check_time(&self) -> Result<(), CredentialError> {
        let now_ms = self.clock.now_ms();
        if now_ms > self.not_after_ms {
            return Err(CredentialError::Expired(iso_date(self.not_after_ms)));
        }
        if now_ms < self.not_before_ms {
            return Err(CredentialError::NotYet(iso_date(self.not_before_ms)));
        }
        Ok(())
    }

    fn seal_in_place(&self, path: &Path, provenance: &Provenance) -> Result<(), Unsealed> {
        let no_random = || failed("the system gives no random numbers");
        let manifest = Manifest::new(provenance).ok_or_else(no_random)?;
        let boxed = |hash: &[u8], sign: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
            let store = manifest.store(hash, |claim| {
                let message = cose::to_be_signed(&self.key, &self.chain, claim);
                Some(cose::sign1(&self.key, &self.chain, sign(&message)?))
            });
            store
                .map(|store| manifest_box(&store))
                .ok_or_else(no_random)
        };
        let unsigned = vec![0; self.key.signature_bytes()];
        // No part changes its length with the hash or the signature.
        let room = boxed(&NO_HASH, &|_| Some(unsigned.clone()))?.len();
        let mut film = File::open(path)?;
        let mut layout = Layout::read(&mut film)?;
        layout.shift(room as u64)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut sealed = tempfile::Builder::new()
            .permissions(film.metadata()?.permissions())
            .tempfile_in(folder)?;
        let (gap, hash) = layout.copy(&mut film, sealed.as_file_mut(), room as u64)?;
        let manifest = boxed(&hash, &|message| self.key.sign(message))?;
        if manifest.len() != room {
            return Err(failed("the manifest changed its size"));
        }
        sealed.as_file_mut().seek(SeekFrom::Start(gap))?;
        sealed.as_file_mut().write_all(&manifest)?;
        sealed.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

fn failed(why: &str) -> Unsealed {
    Unsealed::Failed(MediaError::Mux(why.to_owned()))
}

impl Sealer for Signer {
    fn seal(&self, path: &Path, provenance: &Provenance) -> Result<Sealed, MediaError> {
        if let Err(error) = self.check_time() {
            return Ok(Sealed::Not(error.to_string()));
        }
        match self.seal_in_place(path, provenance) {
            Ok(()) => Ok(Sealed::Done),
            Err(Unsealed::Left(why)) => Ok(Sealed::Not(why.to_owned())),
            Err(Unsealed::Failed(error)) => Err(error),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
