//! What an operator may set about fetching, with defaults that suit the public Internet. It
//! offers no switch that turns the judgement of addresses off: exceptions are named networks.

use std::time::Duration;

use kinora_contract::limits::{
    REFERENCE_CONNECT_SECONDS, REFERENCE_FETCH_SECONDS, REFERENCE_RATE_BYTES_MIN,
    REFERENCE_RATE_WINDOW_SECONDS, REFERENCE_REDIRECTS_MAX,
};
use tokio_rustls::rustls;

use crate::network::Network;

const DURATION_MAX: Duration = Duration::from_hours(24);

/// The bounds of every fetch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses that may be dialled although they are not public, on any port.
    pub allow_networks: Vec<Network>,
    /// For the name, the connection and the TLS handshake of one hop together.
    pub connect_timeout: Duration,
    /// For everything, over all redirects.
    pub total_timeout: Duration,
    /// Within this time, `rate_min_bytes` more bytes of the body must have come.
    pub rate_window: Duration,
    /// See `rate_window`; the end of the body counts for any number of bytes.
    pub rate_min_bytes: u64,
    /// How many redirects are followed.
    pub redirects_max: usize,
    /// Certificate authorities to trust besides the public ones, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_timeout: Duration::from_secs(REFERENCE_CONNECT_SECONDS),
            total_timeout: Duration::from_secs(REFERENCE_FETCH_SECONDS),
            rate_window: Duration::from_secs(REFERENCE_RATE_WINDOW_SECONDS),
            rate_min_bytes: REFERENCE_RATE_BYTES_MIN,
            redirects_max: REFERENCE_REDIRECTS_MAX,
            extra_roots_pem: None,
        }
    }
}

/// Why options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// A limit in time that fails every fetch, or is none.
    #[error("{0} must be longer than zero and at most a day")]
    Duration(&'static str),
    /// The extra roots cannot be read.
    #[error("the extra certificate authorities are not PEM: {0}")]
    Pem(String),
    /// The extra roots hold nothing, which nobody means.
    #[error("the extra certificate authorities hold no certificate")]
    NoCertificate,
    /// A certificate that TLS does not take.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

impl Options {
    /// Refuses limits that no fetch could keep.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        for (name, limit) in [
            ("connect_timeout", self.connect_timeout),
            ("total_timeout", self.total_timeout),
            ("rate_window", self.rate_window),
        ] {
            if limit.is_zero() || limit > DURATION_MAX {
                return Err(OptionsError::Duration(name));
            }
        }
        Ok(())
    }
}
