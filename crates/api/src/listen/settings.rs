//! The settings that every listener needs; [`super::Guards`] has the rest, with defaults.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;

/// How the listener behaves.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Maximum number of connections; further ones wait a little, then they are refused.
    pub connections_max: usize,
    /// From the first byte of a request to the end of its headers; also for a TLS handshake.
    pub header_timeout: Duration,
    /// Maximum time for answers in progress after [`super::Stop::done`].
    pub drain_limit: Duration,
    /// Random bytes that make this process's request ids unique.
    pub request_id_prefix: [u8; 6],
    /// Measures outages for the log. Deadlines follow the runtime's timers.
    pub clock: Arc<dyn Clock>,
}
