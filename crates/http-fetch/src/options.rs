//! Fetch settings for operators, with defaults that suit the public Internet. There is no switch to
//! disable address checks: exceptions are named networks.

use std::time::Duration;

use kinora_contract::limits::{
    REFERENCE_CONNECT_SECONDS, REFERENCE_FETCH_BASE_SECONDS, REFERENCE_FETCH_SECONDS,
    REFERENCE_FETCH_UNSIZED_SECONDS, REFERENCE_HOST_CONNECTIONS_MAX, REFERENCE_LOOKUP_SECONDS,
    REFERENCE_RATE_BYTES_MIN, REFERENCE_RATE_WINDOW_SECONDS, REFERENCE_REDIRECTS_MAX,
    REFERENCE_TURN_SECONDS,
};
use kinora_http::RootsError;

use crate::network::Network;
use crate::policy::AllowedNetwork;

const DURATION_MAX: Duration = Duration::from_hours(24);

/// The limits of every fetch.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Addresses that may be dialled although they are not public or belong to this machine.
    pub allow_networks: Vec<AllowedNetwork>,
    /// Addresses that are never dialled, even if `allow_networks` contains them.
    pub deny_networks: Vec<Network>,
    /// Maximum number of connections per host name, and per address, across all fetches.
    pub host_connections_max: usize,
    /// Maximum total wait of a fetch for turns at hosts.
    pub turn_timeout: Duration,
    /// Maximum bytes that one project may fetch per hour; `None`: no limit.
    pub project_bytes_per_hour: Option<u64>,
    /// Maximum time to look up the name of one hop, not counting an equally long wait for a thread.
    pub lookup_timeout: Duration,
    /// Maximum time for the connection and TLS handshake of one hop together.
    pub connect_timeout: Duration,
    /// Maximum time for the whole fetch with all redirects, not counting the waits for turns.
    pub total_timeout: Duration,
    /// Like `total_timeout`, while the size is unknown or if the body does not declare it.
    pub unsized_timeout: Duration,
    /// Base time for a body that declares its size; the time at the minimum rate is added.
    pub base_timeout: Duration,
    /// At least `rate_min_bytes` of the body must arrive in each window of this length.
    pub rate_window: Duration,
    /// See `rate_window`; the last window may have fewer.
    pub rate_min_bytes: u64,
    /// Maximum number of redirects.
    pub redirects_max: usize,
    /// Additional trusted certificate authorities, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            deny_networks: Vec::new(),
            // As a browser's few: a host that serves pictures to people need not know us.
            host_connections_max: REFERENCE_HOST_CONNECTIONS_MAX as usize,
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

/// Why options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum FetchOptionsError {
    /// A time limit of zero, or longer than a day.
    #[error("{0} must be longer than zero and at most a day")]
    Duration(&'static str),
    /// No connections are allowed.
    #[error("host_connections_max must be at least 1")]
    NoConnections,
    /// The extra roots are unusable.
    #[error("the extra certificate authorities cannot be used: {0}")]
    Roots(#[from] RootsError),
}

impl FetchOptions {
    /// Refuses limits that no fetch could meet.
    pub(crate) fn check(&self) -> Result<(), FetchOptionsError> {
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
                return Err(FetchOptionsError::Duration(name));
            }
        }
        if self.host_connections_max == 0 {
            return Err(FetchOptionsError::NoConnections);
        }
        Ok(())
    }

    /// Maximum time for a body of `bytes`: the base plus its time at the minimum rate.
    /// `total_timeout` applies in addition.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        let rate = self.rate_min_bytes as f64 / self.rate_window.as_secs_f64();
        let seconds = bytes as f64 / rate.max(1.0);
        let steady = Duration::try_from_secs_f64(seconds).unwrap_or(DURATION_MAX);
        self.base_timeout.saturating_add(steady.min(DURATION_MAX))
    }
}
