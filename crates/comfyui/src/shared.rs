//! The parts of an engine that all its tasks share: its card, its servers, and who of them is fit.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use kinora_contract::Clock;
use kinora_engine::KindError;
use kinora_engine::places::Places;
use kinora_upstream::{Backoff, Http, HttpOptions, Key, Timer, Upstream, base_url, places_of};

use crate::card::Card;
use crate::options::Options;

/// Number of runtime threads that write one engine's films and decode its previews.
pub const DISK_THREADS: usize = 4;

/// A client of all servers of one engine. Cheap to clone.
#[derive(Clone)]
pub struct Comfy(pub(crate) Arc<Shared>);

/// Made once per engine.
pub(crate) struct Shared {
    pub(crate) card: Card,
    pub(crate) options: Options,
    pub(crate) upstreams: Vec<Upstream>,
    /// The servers as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) timer: Arc<dyn Timer>,
    /// Measures the pace of bodies.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: kinora_pool::Pool,
    /// Whether each server is known to have the classes of the workflow.
    fit: Mutex<Vec<bool>>,
}

impl fmt::Debug for Comfy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comfy({})", self.0.options.servers.join(", "))
    }
}

impl Comfy {
    /// A client for the servers in `options`, which run `card`. Makes no calls yet.
    ///
    /// # Errors
    /// If the options are invalid or a key cannot be read.
    pub fn new(
        card: Card,
        options: Options,
        timer: Arc<dyn Timer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let limits = HttpOptions {
            connect_timeout: options.connect_timeout,
            answer_bytes_max: options.answer_bytes_max,
            extra_roots_pem: None,
        };
        let wrong = |error: &dyn fmt::Display| KindError(error.to_string());
        let http = Http::new(limits, clock.clone()).map_err(|error| wrong(&error))?;
        let headers = headers(&options.headers)?;
        let mut upstreams = Vec::with_capacity(options.servers.len());
        for server in &options.servers {
            upstreams.push(Upstream {
                name: server.clone(),
                base: base_url(server).ok_or_else(|| {
                    KindError(format!(
                        "{server:?} is not the base URL of a server, such as http://host:8188"
                    ))
                })?,
                key: Key::open(options.key.clone()).map_err(|error| wrong(&error))?,
                headers: headers.clone(),
                http: http.clone(),
            });
        }
        let limits = options.limits;
        let backoff = Backoff::new(limits.backoff_first, limits.backoff_max, "servers");
        Ok(Self(Arc::new(Shared {
            card,
            places: places_of(&upstreams, options.failures_max, backoff, timer.clone()),
            fit: Mutex::new(vec![false; upstreams.len()]),
            options,
            upstreams,
            timer,
            clock,
            disk: kinora_pool::Pool::new(DISK_THREADS),
        })))
    }
}

impl Shared {
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
        let wrong = || {
            KindError(format!(
                "headers: '{name}' or its value fits into no header"
            ))
        };
        let known = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}
