//! Upstream settings for operators. Every time and size is limited; no switch disables a limit.

use std::sync::Arc;
use std::time::Duration;

use crate::servers::{ExchangeWatcher, KeyError, KeySource};
use kinora_http::RootsError;

use super::dialect::ServerDialect;

/// The upstreams of one engine and their limits.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Their common dialect.
    pub dialect: Arc<ServerDialect>,
    /// The upstreams' name of the model, for probes whose path names it.
    pub model: Option<String>,
    /// The upstreams; at least one.
    pub upstreams: Vec<UpstreamOptions>,
    /// Additional trusted certificate authorities, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
    /// Origins (`https://bucket.example.com`, `https://*.example.com`), besides the upstreams' own and the
    /// dialect's, from which results may be read. They never get a key. Only one without `*` may have an address
    /// that is not public.
    pub result_origins: Vec<String>,
    /// Maximum time for a connection, without the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum time for a whole submit, including its upload.
    pub submit_timeout: Duration,
    /// Maximum time for any other answer, and for the head of a result.
    pub answer_timeout: Duration,
    /// Maximum time for forwarding a cancel, and again for a submit in flight at that moment.
    pub cancel_timeout: Duration,
    /// Maximum time for probing an excluded upstream.
    pub probe_timeout: Duration,
    /// At least `rate_bytes_min` of a result must arrive in each window of this length.
    pub rate_window: Duration,
    /// See `rate_window`; the last window may have fewer.
    pub rate_bytes_min: u64,
    /// Maximum size of a submit's body, including references; it is held in memory.
    pub request_bytes_max: u64,
    /// Maximum size of an answer other than a result.
    pub answer_bytes_max: usize,
    /// Maximum size of a result.
    pub result_bytes_max: u64,
    /// Time between polls, unless the upstream requests another.
    pub poll_every: Duration,
    /// Lower bound for the poll interval that an upstream requests.
    pub poll_every_min: Duration,
    /// Upper bound for it.
    pub poll_every_max: Duration,
    /// The first wait after a failure; later waits double.
    pub backoff_first: Duration,
    /// Maximum wait after a failure, unless the upstream requests a longer one.
    pub backoff_max: Duration,
    /// Number of consecutive failures after which an upstream is excluded until a probe succeeds.
    pub failures_max: u32,
    /// Maximum time of a run without a sign of life: at most the model's progress limit.
    pub silence_max: Duration,
    /// Maximum time of a run.
    pub run_max: Duration,
    /// Maximum number of attempts to read the result.
    pub result_attempts_max: u32,
    /// Maximum number of resubmits of a task that its upstream no longer knows.
    pub resubmits_max: u32,
    /// Whether a job that an upstream accepted and failed is submitted to another one although
    /// each submit may be charged.
    pub retry_failed_jobs: bool,
    /// Is shown every exchange with the upstreams, without keys.
    pub watcher: Option<Arc<dyn ExchangeWatcher>>,
}

/// One upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// Its name in tickets and logs; must stay the same across restarts.
    pub name: String,
    /// In the form that `OpenAI`'s SDKs use: `http://10.0.0.7:8000/v1`.
    pub base_url: String,
    /// The API key.
    pub key: KeySource,
}

/// Why options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum RemoteOptionsError {
    /// There are no upstreams.
    #[error("no upstream is configured")]
    NoUpstream,
    /// A ticket could mean either one.
    #[error("two upstreams have the name {0:?}")]
    NameTwice(String),
    /// Not `http` or `https`, without a host, or with a user, a query or a fragment.
    #[error("{0:?} is not the base URL of a server, such as http://host:8000/v1")]
    BaseUrl(String),
    /// Not an origin.
    #[error("{0}")]
    Origin(String),
    /// A limit that no run could meet.
    #[error("{0} must be larger than zero")]
    Zero(&'static str),
    /// The key of an upstream.
    #[error("unusable key of upstream {name:?}: {source}")]
    Key {
        /// The upstream.
        name: String,
        /// The cause.
        #[source]
        source: KeyError,
    },
    /// The extra roots are invalid.
    #[error("unusable extra certificate authorities: {0}")]
    Roots(#[from] RootsError),
}

impl RemoteOptions {
    /// The default options for these upstreams.
    pub fn new(dialect: Arc<ServerDialect>, upstreams: Vec<UpstreamOptions>) -> Self {
        Self {
            dialect,
            model: None,
            upstreams,
            extra_roots_pem: None,
            result_origins: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(120),
            answer_timeout: Duration::from_secs(30),
            cancel_timeout: Duration::from_millis(900),
            probe_timeout: Duration::from_secs(5),
            rate_window: Duration::from_secs(10),
            rate_bytes_min: 100 * 1024,
            request_bytes_max: 64 << 20,
            answer_bytes_max: 1 << 20,
            result_bytes_max: 2 << 30,
            poll_every: Duration::from_secs(2),
            poll_every_min: Duration::from_millis(200),
            poll_every_max: Duration::from_secs(30),
            backoff_first: Duration::from_secs(1),
            backoff_max: Duration::from_mins(1),
            failures_max: 3,
            silence_max: Duration::from_mins(5),
            run_max: Duration::from_hours(2),
            result_attempts_max: 5,
            resubmits_max: 1,
            retry_failed_jobs: false,
            watcher: None,
        }
    }

    /// Refuses options that no run could use.
    pub(crate) fn check(&self) -> Result<(), RemoteOptionsError> {
        if self.upstreams.is_empty() {
            return Err(RemoteOptionsError::NoUpstream);
        }
        for (index, one) in self.upstreams.iter().enumerate() {
            if self.upstreams[..index]
                .iter()
                .any(|other| other.name == one.name)
            {
                return Err(RemoteOptionsError::NameTwice(one.name.clone()));
            }
        }
        for (name, bound) in [
            ("connect_timeout", self.connect_timeout),
            ("submit_timeout", self.submit_timeout),
            ("answer_timeout", self.answer_timeout),
            ("cancel_timeout", self.cancel_timeout),
            ("probe_timeout", self.probe_timeout),
            ("rate_window", self.rate_window),
            ("poll_every", self.poll_every),
            ("poll_every_min", self.poll_every_min),
            ("backoff_first", self.backoff_first),
            ("silence_max", self.silence_max),
            ("run_max", self.run_max),
        ] {
            if bound.is_zero() {
                return Err(RemoteOptionsError::Zero(name));
            }
        }
        for (name, bound) in [
            ("failures_max", self.failures_max),
            ("result_attempts_max", self.result_attempts_max),
        ] {
            if bound == 0 {
                return Err(RemoteOptionsError::Zero(name));
            }
        }
        Ok(())
    }

    /// The time to the next poll, given the upstream's request, if any.
    pub(crate) fn poll_wait(&self, wish: Option<Duration>) -> Duration {
        let max = self.poll_every_max.max(self.poll_every_min);
        wish.unwrap_or(self.poll_every)
            .clamp(self.poll_every_min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(name: &str) -> UpstreamOptions {
        UpstreamOptions {
            name: name.to_owned(),
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            key: KeySource::None,
        }
    }

    #[test]
    fn useless_options_are_refused() {
        let with = |names: &[&str]| {
            let upstreams = names.iter().map(|name| upstream(name)).collect();
            RemoteOptions::new(ServerDialect::named("kinora").unwrap(), upstreams)
        };
        assert!(matches!(
            with(&[]).check(),
            Err(RemoteOptionsError::NoUpstream)
        ));
        assert!(matches!(
            with(&["a", "a"]).check(),
            Err(RemoteOptionsError::NameTwice(_))
        ));
        assert!(with(&["a", "b"]).check().is_ok());
        let mut options = with(&["a"]);
        options.silence_max = Duration::ZERO;
        assert!(matches!(
            options.check(),
            Err(RemoteOptionsError::Zero("silence_max"))
        ));
    }

    #[test]
    fn a_wish_is_kept_within_bounds() {
        let options = RemoteOptions::new(ServerDialect::named("kinora").unwrap(), Vec::new());
        assert_eq!(options.poll_wait(None), options.poll_every);
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
