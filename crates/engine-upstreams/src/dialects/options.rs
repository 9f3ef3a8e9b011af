//! Settings of the upstreams of one engine, for operators.

use std::sync::Arc;
use std::time::Duration;

use super::dialect::ServerDialect;
use crate::servers::ServerOptions;

/// The upstreams of one engine, and what their model takes.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The upstreams and their limits.
    pub servers: ServerOptions,
    /// Their common dialect.
    pub dialect: Arc<ServerDialect>,
    /// The upstreams' name of the model; `None` lets them choose.
    pub model: Option<String>,
    /// Whether the model has a switch for sound. Without it, sound cannot be requested.
    pub sound: bool,
    /// Whether to accept films that cannot be decoded here.
    pub keeps_undecodable: bool,
    /// Whether to keep films of another size, length or sound than requested. `None`: where each
    /// submit costs money.
    pub keeps_mismatched: Option<bool>,
    /// Origins (`https://bucket.example.com`, `https://*.example.com`), besides the upstreams' own and the
    /// dialect's, from which results may be read. They never get a key. Only one without `*` may have an address
    /// that is not public.
    pub result_origins: Vec<String>,
    /// Lower bound for the poll interval that an upstream requests.
    pub poll_every_min: Duration,
    /// Upper bound for it.
    pub poll_every_max: Duration,
    /// Whether a job that an upstream accepted and failed is submitted to another one although
    /// each submit may be charged.
    pub retry_failed_jobs: bool,
}

impl RemoteOptions {
    /// The default options for these upstreams.
    pub fn new(dialect: Arc<ServerDialect>, servers: ServerOptions) -> Self {
        Self {
            servers,
            dialect,
            model: None,
            sound: false,
            keeps_undecodable: false,
            keeps_mismatched: None,
            result_origins: Vec::new(),
            poll_every_min: Duration::from_millis(200),
            poll_every_max: Duration::from_secs(30),
            retry_failed_jobs: false,
        }
    }

    /// The time to the next poll, given the upstream's request, if any.
    pub(crate) fn poll_wait(&self, wish: Option<Duration>) -> Duration {
        let max = self.poll_every_max.max(self.poll_every_min);
        wish.unwrap_or(self.servers.poll_every)
            .clamp(self.poll_every_min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_kept_within_bounds() {
        let dialect = ServerDialect::named("kinora").unwrap();
        let options = RemoteOptions::new(dialect, ServerOptions::new(Vec::new()));
        assert_eq!(options.poll_wait(None), options.servers.poll_every);
        assert_eq!(
            options.poll_wait(Some(Duration::ZERO)),
            options.poll_every_min
        );
        assert_eq!(
            options.poll_wait(Some(Duration::from_hours(1))),
            options.poll_every_max
        );
    }
}
