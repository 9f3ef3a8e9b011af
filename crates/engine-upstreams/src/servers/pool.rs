//! The servers of one engine, created once and shared by all its tasks: the choice among them, what an answer says
//! of a server's health, and a film as a new file.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{HeaderMap, Response};
use kinora_contract::Clock;
use kinora_engine::KindError;
use kinora_engine::places::{PlaceRules, Places};
use kinora_http::{ExchangeError, read_body};
use kinora_http_fetch::{ContentCoding, MinimumPace, SaveError, SaveTarget, save};
use kinora_system::pool::BlockingPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::auth::AuthScheme;
use super::cause::{CallError, chain};
use super::error::UpstreamError;
use super::key::ServerKey;
use super::options::{ServerOptions, base_url, not_a_server};
use super::patience::{SpreadBackoff, TaskPatience, WaitTimer};
use super::upstream::{ServerAnswer, ServerClient, UpstreamServer};

/// Number of runtime threads that write one engine's films and decode its previews.
pub(crate) const DISK_THREADS: usize = 4;

/// Maximum bytes read of a refusal in place of a film.
const REFUSAL_BYTES_MAX: usize = 4096;

/// The servers of one engine.
pub(crate) struct ServerPool {
    pub(crate) servers: Vec<UpstreamServer>,
    /// The servers as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) options: ServerOptions,
    pub(crate) timer: Arc<dyn WaitTimer>,
    /// Measures the pace of films.
    clock: Arc<dyn Clock>,
    pub(crate) disk: BlockingPool,
}

impl fmt::Debug for ServerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.servers.iter().map(|one| &one.name))
            .finish()
    }
}

impl ServerPool {
    /// The servers of `options`, each with its key loaded. Makes no calls yet.
    ///
    /// # Errors
    /// If a URL or a certificate authority is unusable, or the key cannot be read.
    pub(crate) fn open(
        options: ServerOptions,
        scheme: &AuthScheme,
        headers: &HeaderMap,
        timer: Arc<dyn WaitTimer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let http = ServerClient::new(&options, clock.clone());
        let http = http.map_err(|error| {
            KindError(format!("unusable extra certificate authorities: {error}"))
        })?;
        let mut servers = Vec::with_capacity(options.servers.len());
        for server in &options.servers {
            let key = ServerKey::open(options.key.clone(), scheme.clone(), clock.clone());
            servers.push(UpstreamServer {
                name: server.name.clone(),
                base: base_url(&server.base_url).ok_or_else(|| not_a_server(&server.base_url))?,
                key: key?,
                headers: headers.clone(),
                http: http.clone(),
                watcher: options.watcher.clone(),
            });
        }
        let backoff = SpreadBackoff::new(&options, "servers");
        let rules = PlaceRules {
            // A server queues its jobs itself.
            jobs_max: None,
            failures_max: options.failures_max,
            pause: Box::new(move |failures| backoff.wait(failures.saturating_sub(1))),
            probes: true,
            are_shared: true,
        };
        let names = servers.iter().map(|one| one.name.clone()).collect();
        let now = timer.clone();
        Ok(Self {
            servers,
            places: Places::new(names, rules, move || now.now()),
            options,
            timer,
            clock,
            disk: BlockingPool::new(DISK_THREADS),
        })
    }

    /// The patience of a run that starts now; its waits are spread by `key`.
    pub(crate) fn patience<'a>(
        &'a self,
        cancel: &'a CancellationToken,
        key: &str,
    ) -> TaskPatience<'a> {
        TaskPatience::new(&*self.timer, &self.options, cancel, key)
    }

    /// The index of the server with this name, unless it is no longer configured.
    pub(crate) fn index_of(&self, name: &str) -> Result<usize, UpstreamError> {
        let index = self.servers.iter().position(|one| one.name == name);
        index.ok_or_else(|| UpstreamError::Forgotten(name.to_owned()))
    }

    pub(crate) fn record_outage(&self, index: usize, cause: &CallError) {
        self.places.record_outage(index, &chain(cause));
    }

    /// No answer: the server is at fault, unless the request cannot even be written.
    pub(crate) fn unreachable(&self, index: usize, cause: CallError) -> UpstreamError {
        if !matches!(cause, CallError::Request(_)) {
            self.record_outage(index, &cause);
        }
        UpstreamError::later(cause)
    }

    /// No answer about one job. Its content may be at fault, so the server is only if it cannot be connected to.
    pub(crate) fn unusable(&self, index: usize, cause: CallError) -> UpstreamError {
        match cause {
            CallError::Exchange(ExchangeError::Connect(_)) => self.unreachable(index, cause),
            cause => UpstreamError::later(cause),
        }
    }

    /// Waits for `cancelling`, which stops a job at a server, within its limit. A failure is only logged.
    pub(crate) async fn pass_cancel_on(
        &self,
        index: usize,
        cancelling: impl Future<Output = Result<(), UpstreamError>>,
    ) {
        let limit = self.options.cancel_timeout;
        let error = match timeout(limit, cancelling).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("no answer within {limit:?}"),
        };
        tracing::warn!(
            upstream = self.servers[index].name,
            error,
            "server did not accept the cancel and may still work on the job"
        );
    }

    /// Saves the film in `response` of a server to the new file `to`, without syncing it, and returns its length in
    /// bytes; reports the length of each piece to `on_bytes`. Unless this returns `Ok` there is no such file, even if
    /// the future is dropped. The bytes are not inspected.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] if a retry may succeed; [`UpstreamError::NoResult`],
    /// [`UpstreamError::ResultTooLarge`] for more than the maximum declared or sent, [`UpstreamError::Storage`].
    pub(crate) async fn save_film(
        &self,
        index: usize,
        response: Response<Incoming>,
        to: &Path,
        on_bytes: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, UpstreamError> {
        let options = &self.options;
        let (head, body) = response.into_parts();
        if head.status.as_u16() != 200 {
            let read = timeout(options.answer_timeout, read_body(body, REFUSAL_BYTES_MAX)).await;
            let body = read.ok().and_then(Result::ok);
            let mut reply = ServerAnswer::new(head, body.unwrap_or_default());
            self.servers[index].conceal(&mut reply);
            return Err(reply.busy());
        }
        let saving = SaveTarget {
            to,
            bytes_max: options.result_bytes_max,
            coding: ContentCoding::of(&head.headers),
            is_plain: |head| head.get(4..8) == Some(b"ftyp"),
            pace: MinimumPace {
                window: options.rate_window,
                bytes_min: options.rate_bytes_min,
            },
            disk: &self.disk,
            clock: &self.clock,
        };
        let saved = save(body, saving, on_bytes).await;
        Err(match saved {
            Ok(0) => {
                let removed = tokio::fs::remove_file(to).await;
                removed.map_err(UpstreamError::Storage)?;
                UpstreamError::later(CallError::Empty)
            }
            Ok(bytes) => return Ok(bytes),
            Err(SaveError::TooLarge) => UpstreamError::ResultTooLarge(options.result_bytes_max),
            // It was not asked for, and would come again.
            Err(SaveError::Encoded(name)) => UpstreamError::NoResult(CallError::Encoding(name)),
            Err(SaveError::Damaged(error)) => UpstreamError::later(CallError::Damaged(error)),
            Err(SaveError::Storage(error)) => UpstreamError::Storage(error),
            Err(SaveError::Broken(error)) => UpstreamError::later(CallError::broken(error)),
            Err(SaveError::TooSlow(pace)) => UpstreamError::later(CallError::Rate {
                bytes_min: pace.bytes_min,
                window: pace.window,
            }),
        })
    }
}
