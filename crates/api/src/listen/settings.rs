//! What every listener must be told; [`super::Guards`] has the rest, with usual values.

use std::time::Duration;

/// How the listener behaves.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Connections at a time; further ones wait a little, then they are refused.
    pub connections_max: usize,
    /// From the first byte of a request to the end of its headers; also for a TLS handshake.
    pub header_timeout: Duration,
    /// After [`super::Stop::done`], how long answers that were begun may take.
    pub drain_limit: Duration,
    /// Random bytes that make request ids of this process its own.
    pub request_id_prefix: [u8; 6],
}
