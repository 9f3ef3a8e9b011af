//! Settings of the servers of one engine. Every time and size is limited; no switch disables a limit.

use std::time::Duration;

use kinora_upstream::{KeySource, Limits};

/// The servers and their limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Base URLs: `http://10.0.0.7:8188`. They are the names of the servers, in tickets and logs.
    pub servers: Vec<String>,
    /// Headers of every call, and of the websocket.
    pub headers: Vec<(String, String)>,
    /// The key of every server, as `Authorization: Bearer`.
    pub key: KeySource,
    /// Maximum time for a connection.
    pub connect_timeout: Duration,
    /// Maximum time for a submit, and for each upload.
    pub submit_timeout: Duration,
    /// Maximum time for any other answer, and for the head of a film.
    pub answer_timeout: Duration,
    /// Maximum time for forwarding a cancel, and again for a submit in flight at that moment.
    pub cancel_timeout: Duration,
    /// Maximum time for probing an excluded server.
    pub probe_timeout: Duration,
    /// At least `rate_bytes_min` of a film must arrive in each window of this length.
    pub rate_window: Duration,
    /// See `rate_window`; the last window may have fewer.
    pub rate_bytes_min: u64,
    /// Maximum size of an uploaded file; ComfyUI takes 100 MB by default.
    pub upload_bytes_max: u64,
    /// Maximum size of an answer other than a film: the list of a class's models can be long.
    pub answer_bytes_max: usize,
    /// Maximum size of a film.
    pub film_bytes_max: u64,
    /// Time between polls.
    pub poll_every: Duration,
    /// The limits of a run.
    pub limits: Limits,
    /// Number of consecutive failures after which a server is excluded until a probe succeeds.
    pub failures_max: u32,
    /// Maximum number of attempts to read a film.
    pub film_attempts_max: u32,
    /// Maximum number of resubmits of a job that its server no longer knows.
    pub resubmits_max: u32,
    /// Maximum number of polls for the outputs of a completed job: they may come a moment later.
    pub lag_polls_max: u32,
}

impl Options {
    /// The default options for these servers.
    pub fn new(servers: Vec<String>) -> Self {
        Self {
            servers,
            headers: Vec::new(),
            key: KeySource::None,
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(120),
            answer_timeout: Duration::from_secs(30),
            cancel_timeout: Duration::from_millis(900),
            probe_timeout: Duration::from_secs(5),
            rate_window: Duration::from_secs(10),
            rate_bytes_min: 100 * 1024,
            upload_bytes_max: 100 << 20,
            answer_bytes_max: 16 << 20,
            film_bytes_max: 2 << 30,
            poll_every: Duration::from_secs(1),
            limits: Limits {
                backoff_first: Duration::from_secs(1),
                backoff_max: Duration::from_mins(1),
                silence_max: Duration::from_mins(10),
                run_max: Duration::from_hours(2),
            },
            failures_max: 3,
            film_attempts_max: 5,
            resubmits_max: 3,
            lag_polls_max: 10,
        }
    }
}
