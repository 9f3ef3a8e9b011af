//! The operator's certificate for C2PA and its key: opened at a start, and looked at by `kinora doctor`.

use std::sync::Arc;

use kinora_contract::iso_date;
use kinora_media::Sealer;

use crate::config::{Config, Provenance};
use crate::failure::Failure;

/// How long before its end a certificate is complained of.
pub(crate) const RENEWAL_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// An opened certificate.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) sealer: Arc<dyn Sealer>,
    /// The name in it.
    pub(crate) name: String,
    pub(crate) not_after_ms: u64,
}

/// The certificate and key of the configuration, if videos are to be signed.
pub(crate) fn open(config: &Config) -> Result<Option<Credentials>, Failure> {
    let provenance = &config.provenance;
    provenance.signs().then(|| opened(provenance)).transpose()
}

/// The same for a worker, which says in the log who signs its videos.
pub(crate) fn sealer(config: &Config, now_ms: u64) -> Result<Option<Arc<dyn Sealer>>, Failure> {
    let Some(credentials) = open(config)? else {
        return Ok(None);
    };
    let (name, until) = (&credentials.name, iso_date(credentials.not_after_ms));
    if credentials.not_after_ms < now_ms + RENEWAL_MS {
        tracing::warn!(
            name,
            until,
            "the C2PA certificate expires soon: videos are unsigned from then on"
        );
    } else {
        tracing::info!(name, until, "signing videos");
    }
    Ok(Some(credentials.sealer))
}

#[cfg(feature = "c2pa")]
fn opened(provenance: &Provenance) -> Result<Credentials, Failure> {
    let pem = provenance.pem()?;
    let clock = Arc::new(crate::system::SystemClock);
    let signer = kinora_c2pa::Signer::new(pem.certificates.as_bytes(), pem.key.as_bytes(), clock)
        .map_err(|error| Failure::because("The section [provenance] is wrong", error))?;
    Ok(Credentials {
        name: signer.name().to_owned(),
        not_after_ms: signer.not_after_ms(),
        sealer: Arc::new(signer),
    })
}

#[cfg(not(feature = "c2pa"))]
fn opened(_: &Provenance) -> Result<Credentials, Failure> {
    Err(Failure::new(
        "The section [provenance] names a certificate, and this executable cannot sign: build it with \
         `--features c2pa`, or leave provenance.certificate_file and provenance.key_file empty.",
    ))
}
