//! Settings of a listener: those that every listener needs, and limits with defaults that suit a
//! service on the open network.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, limits};
use kinora_store::AllowanceStore;

use super::ServerTls;
use crate::cors::CorsPolicy;
use crate::trusted_proxies::TrustedProxies;

/// How the listener behaves.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Maximum number of connections; further ones wait a little, then they are refused.
    pub connections_max: usize,
    /// Limit from the first byte of a request to the end of its headers; also for a TLS handshake.
    pub header_timeout: Duration,
    /// Maximum time for answers in progress after [`crate::listen::ListenerStop::done`].
    pub drain_limit: Duration,
    /// Random bytes that make this process's request ids unique.
    pub request_id_prefix: [u8; 6],
    /// Measures outages for the log. Deadlines follow the runtime's timers.
    pub clock: Arc<dyn Clock>,
}

/// Limits and options of a listener beyond [`super::ListenSettings`].
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Limit from the start of a connection to its first byte.
    pub first_byte_timeout: Duration,
    /// Limit from the end of an answer to the first byte of the next request.
    pub idle_timeout: Duration,
    /// Limit from the end of a request's headers to the end of its body.
    pub request_timeout: Duration,
    /// The same limit for a body with a file, which must also keep a minimum rate.
    pub upload_timeout: Duration,
    /// Whether the form of a submit may have files.
    pub form_uploads: bool,
    /// How long a client may leave an answer unread.
    pub write_timeout: Duration,
    /// Maximum number of connections per client address; behind a trusted proxy, maximum number of
    /// concurrent requests per client.
    pub connections_per_address_max: usize,
    /// Maximum bytes of bodies, unread answers and grown buffers that all connections together may
    /// hold in memory; one client may hold a quarter of it.
    pub buffered_bytes_max: u64,
    /// Requests per minute of a key without its own limit; 0 is unlimited.
    pub requests_per_minute: u32,
    /// Shares all keys' limits with other processes, if there are any.
    pub allowances: Option<Arc<dyn AllowanceStore>>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// Other origins whose pages may call the API.
    pub cors: CorsPolicy,
    /// Serves TLS only, if set.
    pub tls: Option<ServerTls>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            first_byte_timeout: Duration::from_secs(limits::CONNECTION_FIRST_BYTE_SECONDS),
            idle_timeout: Duration::from_secs(limits::CONNECTION_IDLE_SECONDS),
            request_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_secs(limits::UPLOAD_SECONDS),
            form_uploads: false,
            write_timeout: Duration::from_secs(limits::CONNECTION_WRITE_SECONDS),
            connections_per_address_max: 1000,
            buffered_bytes_max: 256 << 20,
            requests_per_minute: 0,
            allowances: None,
            trusted_proxies: TrustedProxies::none(),
            cors: CorsPolicy::default(),
            tls: None,
        }
    }
}
