//! What all tasks of one engine share: its card, its servers with their limits, and which of them is fit. Every
//! time and size is limited; no switch disables a limit.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use kinora_contract::Clock;
use kinora_engine::KindError;
use kinora_engine::places::Places;
use serde::Deserialize;

use super::card::WorkflowCard;
use crate::servers::{
    AuthScheme, KeySource, PatienceLimits, ServerClient, ServerClientOptions, ServerKey,
    SpreadBackoff, UpstreamServer, WaitTimer, base_url, places_of,
};

/// Number of runtime threads that write one engine's films and decode its previews.
pub const DISK_THREADS: usize = 4;

/// A client of all servers of one engine. Cheap to clone.
#[derive(Clone)]
pub struct ComfyServers(pub(crate) Arc<ComfyShared>);

/// Made once per engine.
pub(crate) struct ComfyShared {
    pub(crate) card: WorkflowCard,
    pub(crate) options: ComfyOptions,
    pub(crate) upstreams: Vec<UpstreamServer>,
    /// The servers as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) timer: Arc<dyn WaitTimer>,
    /// Measures the pace of bodies.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: kinora_system::pool::BlockingPool,
    /// Whether each server is known to have the classes of the workflow.
    fit: Mutex<Vec<bool>>,
}

impl fmt::Debug for ComfyServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comfy({})", self.0.options.servers.join(", "))
    }
}

impl ComfyServers {
    /// A client for the servers in `options`, which run `card`. Makes no calls yet.
    ///
    /// # Errors
    /// If the options are invalid or a key cannot be read.
    pub fn new(
        card: WorkflowCard,
        options: ComfyOptions,
        timer: Arc<dyn WaitTimer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let limits = ServerClientOptions {
            connect_timeout: options.connect_timeout,
            answer_bytes_max: options.answer_bytes_max,
            extra_roots_pem: None,
        };
        let http = ServerClient::new(limits, clock.clone());
        let http = http.map_err(|error| KindError(error.to_string()))?;
        let headers = headers(&options.headers)?;
        let mut upstreams = Vec::with_capacity(options.servers.len());
        for server in &options.servers {
            upstreams.push(UpstreamServer {
                name: server.clone(),
                base: base_url(server).ok_or_else(|| {
                    KindError(format!(
                        "{server:?} is not the base URL of a server, such as http://host:8188"
                    ))
                })?,
                key: ServerKey::open(options.key.clone(), AuthScheme::default(), clock.clone())
                    .map_err(|error| KindError(error.to_string()))?,
                headers: headers.clone(),
                http: http.clone(),
                watcher: None,
            });
        }
        let limits = options.limits;
        let backoff = SpreadBackoff::new(limits.backoff_first, limits.backoff_max, "servers");
        Ok(Self(Arc::new(ComfyShared {
            card,
            places: places_of(&upstreams, options.failures_max, backoff, timer.clone()),
            fit: Mutex::new(vec![false; upstreams.len()]),
            options,
            upstreams,
            timer,
            clock,
            disk: kinora_system::pool::BlockingPool::new(DISK_THREADS),
        })))
    }
}

impl ComfyShared {
    /// The server with this base URL.
    pub(crate) fn index_of(&self, server: &str) -> Option<usize> {
        self.upstreams.iter().position(|one| one.name == server)
    }

    pub(crate) fn is_fit(&self, index: usize) -> bool {
        self.fit.lock().unwrap_or_else(PoisonError::into_inner)[index]
    }

    /// Records whether a server has the classes of the workflow.
    pub(crate) fn set_fit(&self, index: usize, is_fit: bool) {
        self.fit.lock().unwrap_or_else(PoisonError::into_inner)[index] = is_fit;
    }
}

/// The headers, marked as sensitive: one of them may be a key.
pub(crate) fn headers(given: &[(String, String)]) -> Result<HeaderMap, KindError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let known = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.as_str());
        let (Ok(known), Ok(mut value)) = (known, value) else {
            return Err(KindError(format!(
                "headers: '{name}' or its value fits into no header"
            )));
        };
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

/// The servers and their limits.
#[derive(Clone, Debug)]
pub struct ComfyOptions {
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
    pub limits: PatienceLimits,
    /// Number of consecutive failures after which a server is excluded until a probe succeeds.
    pub failures_max: u32,
    /// Maximum number of attempts to read a film.
    pub film_attempts_max: u32,
    /// Maximum number of resubmits of a job that its server no longer knows.
    pub resubmits_max: u32,
    /// Maximum number of polls for the outputs of a completed job: they may come a moment later.
    pub lag_polls_max: u32,
}

impl ComfyOptions {
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
            limits: PatienceLimits {
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

/// Text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretText(pub(crate) String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
