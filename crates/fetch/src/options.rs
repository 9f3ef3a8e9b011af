//! What an operator may set about fetching, with defaults that suit the public Internet. It
//! offers no switch that turns the judgement of addresses off: exceptions are named networks.

use std::time::Duration;

use kinora_contract::limits::{
    REFERENCE_CONNECT_SECONDS, REFERENCE_FETCH_BASE_SECONDS, REFERENCE_FETCH_SECONDS,
    REFERENCE_FETCH_UNSIZED_SECONDS, REFERENCE_LOOKUP_SECONDS, REFERENCE_RATE_BYTES_MIN,
    REFERENCE_RATE_WINDOW_SECONDS, REFERENCE_REDIRECTS_MAX, REFERENCE_TURN_SECONDS,
};
use tokio_rustls::rustls;

use crate::network::Network;
use crate::policy::Allowed;

const DURATION_MAX: Duration = Duration::from_hours(24);
const HOST_CONNECTIONS_MAX: usize = 4;

/// The bounds of every fetch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses that may be dialled although they are not public, or are this machine's.
    pub allow_networks: Vec<Allowed>,
    /// Addresses that are never dialled, also where `allow_networks` names them.
    pub deny_networks: Vec<Network>,
    /// Connections to one host name, and to one address, of all fetches together.
    pub host_connections_max: usize,
    /// How long a fetch waits for its turn at a host, in all.
    pub turn_timeout: Duration,
    /// Bytes that one project may have fetched in an hour; none: no bound.
    pub project_bytes_per_hour: Option<u64>,
    /// For looking up the name of one hop; a look-up may wait as long for its turn before that.
    pub lookup_timeout: Duration,
    /// For the connection and the TLS handshake of one hop together.
    pub connect_timeout: Duration,
    /// For everything, over all redirects, without the waits for turns.
    pub total_timeout: Duration,
    /// The same while the size is not known, and for bodies that do not declare it.
    pub unsized_timeout: Duration,
    /// For a body that declares its size: this, and its size at the minimum rate.
    pub base_timeout: Duration,
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
            deny_networks: Vec::new(),
            host_connections_max: HOST_CONNECTIONS_MAX,
            turn_timeout: Duration::from_secs(REFERENCE_TURN_SECONDS),
            project_bytes_per_hour: None,
            lookup_timeout: Duration::from_secs(REFERENCE_LOOKUP_SECONDS),
            connect_timeout: Duration::from_secs(REFERENCE_CONNECT_SECONDS),
            total_timeout: Duration::from_secs(REFERENCE_FETCH_SECONDS),
            unsized_timeout: Duration::from_secs(REFERENCE_FETCH_UNSIZED_SECONDS),
            base_timeout: Duration::from_secs(REFERENCE_FETCH_BASE_SECONDS),
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
    /// No connection at all.
    #[error("host_connections_max must be at least 1")]
    NoConnections,
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
            ("turn_timeout", self.turn_timeout),
            ("lookup_timeout", self.lookup_timeout),
            ("connect_timeout", self.connect_timeout),
            ("total_timeout", self.total_timeout),
            ("unsized_timeout", self.unsized_timeout),
            ("base_timeout", self.base_timeout),
            ("rate_window", self.rate_window),
        ] {
            if limit.is_zero() || limit > DURATION_MAX {
                return Err(OptionsError::Duration(name));
            }
        }
        if self.host_connections_max == 0 {
            return Err(OptionsError::NoConnections);
        }
        Ok(())
    }

    /// How long a body of `bytes` may take: the base, and its bytes at the minimum rate. More
    /// than `total_timeout` is left to that.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        let rate = self.rate_min_bytes as f64 / self.rate_window.as_secs_f64();
        let seconds = bytes as f64 / rate.max(1.0);
        let steady = Duration::try_from_secs_f64(seconds).unwrap_or(DURATION_MAX);
        self.base_timeout.saturating_add(steady.min(DURATION_MAX))
    }
}
