//! What the listener guards against, with values that suit a service on the open network.

use std::time::Duration;

use super::Tls;
use crate::cors::Cors;
use crate::proxies::TrustedProxies;

/// Bounds and manners of a listener beyond [`super::ListenSettings`].
#[derive(Clone, Debug)]
pub struct Guards {
    /// From the start of a connection to its first byte.
    pub first_byte_timeout: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub idle_timeout: Duration,
    /// From the end of a request's headers to the end of its body.
    pub request_timeout: Duration,
    /// How long a client may leave an answer untaken.
    pub write_timeout: Duration,
    /// Connections of one client address at a time; of one client behind a trusted proxy,
    /// requests at a time.
    pub connections_per_address_max: usize,
    /// Bytes of bodies, unread answers and grown buffers that all connections together may hold in
    /// memory; one client, a quarter of it.
    pub buffered_bytes_max: u64,
    /// Requests per minute of a key without a limit of its own; 0 is none.
    pub requests_per_minute: u32,
    /// Whose word on a client's address is taken.
    pub trusted_proxies: TrustedProxies,
    /// Which other origins' pages may call.
    pub cors: Cors,
    /// Serves under TLS, and then only so.
    pub tls: Option<Tls>,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            first_byte_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            connections_per_address_max: 1000,
            buffered_bytes_max: 256 << 20,
            requests_per_minute: 0,
            trusted_proxies: TrustedProxies::none(),
            cors: Cors::default(),
            tls: None,
        }
    }
}
