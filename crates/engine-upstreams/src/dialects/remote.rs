//! All upstreams of one engine, created once and shared by all its tasks, and the probes of their health, which
//! cost no generation.

use std::fmt;
use std::sync::Arc;

use hyper::Method;
use kinora_contract::Clock;
use kinora_engine::places::Places;
use serde_json::Value;

use super::dialect::ServerDialect;
use super::encode::RemoteTicket;
use super::error::RemoteError;
use super::job::{RemoteJob, RemoteShared};
use super::options::{RemoteOptions, RemoteOptionsError, UpstreamOptions};
use super::template::{Placeholder, TemplateScope, ValueName};
use crate::servers::{
    CallError, ServerAnswer, ServerCall, ServerClient, ServerClientOptions, ServerKey,
    SpreadBackoff, UpstreamServer, WaitTimer, base_url, chain, places_of, retry_after,
};

/// Number of runtime threads that write one engine's results.
pub const DISK_THREADS: usize = 4;

/// A client of all upstreams of one engine. Cheap to clone.
#[derive(Clone)]
pub struct RemoteServers(pub(crate) Arc<RemoteShared>);

impl fmt::Debug for RemoteServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .0
            .upstreams
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        write!(
            f,
            "Remote({}: {})",
            self.0.options.dialect.name,
            names.join(", ")
        )
    }
}

impl RemoteServers {
    /// A client for the upstreams in `options`. Makes no calls yet.
    ///
    /// # Errors
    /// [`RemoteOptionsError`] if the options are invalid or a key cannot be read.
    pub fn new(
        options: RemoteOptions,
        timer: Arc<dyn WaitTimer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RemoteOptionsError> {
        options.check()?;
        let limits = ServerClientOptions {
            connect_timeout: options.connect_timeout,
            answer_bytes_max: options.answer_bytes_max,
            extra_roots_pem: options.extra_roots_pem.as_deref(),
        };
        let http = ServerClient::new(limits, clock.clone())?;
        let upstreams = options
            .upstreams
            .iter()
            .map(|one| open(one, &options, http.clone(), &clock))
            .collect::<Result<Vec<_>, _>>()?;
        let origins = options.result_origins.iter();
        let result_origins = origins
            .map(|text| text.parse().map_err(RemoteOptionsError::Origin))
            .collect::<Result<_, _>>()?;
        let backoff = SpreadBackoff::new(options.backoff_first, options.backoff_max, "upstreams");
        let places = places_of(&upstreams, options.failures_max, backoff, timer.clone());
        Ok(Self(Arc::new(RemoteShared {
            options,
            upstreams,
            result_origins,
            places,
            timer,
            clock,
            disk: kinora_system::pool::BlockingPool::new(DISK_THREADS),
        })))
    }

    /// The dialect of the upstreams.
    pub fn dialect(&self) -> &ServerDialect {
        &self.0.options.dialect
    }

    /// The upstreams as places.
    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.0.places
    }

    /// Whether a job that failed at one upstream is submitted to another. Not by default where each
    /// submit may be charged.
    pub(crate) fn repeats_failed_jobs(&self) -> bool {
        !self.dialect().is_paid() || self.0.options.retry_failed_jobs
    }

    /// The task of `ticket`, ready to poll. Makes no calls yet.
    ///
    /// # Errors
    /// [`RemoteError::Forgotten`] if its upstream is no longer configured.
    pub fn resume(&self, ticket: &RemoteTicket) -> Result<RemoteJob, RemoteError> {
        let index = self.index_of(&ticket.upstream)?;
        let visit = self.0.places.record_visit(index);
        Ok(RemoteJob::new(Arc::clone(&self.0), visit, ticket.clone()))
    }

    /// Asks the upstream of `ticket` to stop. A finished or deleted task counts as stopped.
    ///
    /// # Errors
    /// [`RemoteError::Forgotten`] if the upstream is no longer configured, otherwise those of
    /// [`RemoteJob::cancel`].
    pub async fn call_off(&self, ticket: &RemoteTicket) -> Result<(), RemoteError> {
        self.resume(ticket)?.cancel().await
    }

    pub(crate) fn index_of(&self, upstream: &str) -> Result<usize, RemoteError> {
        let index = self.0.upstreams.iter().position(|one| one.name == upstream);
        index.ok_or_else(|| RemoteError::Forgotten(upstream.to_owned()))
    }
}

/// The upstream of `options`, with its key loaded.
fn open(
    options: &UpstreamOptions,
    all: &RemoteOptions,
    http: ServerClient,
    clock: &Arc<dyn Clock>,
) -> Result<UpstreamServer, RemoteOptionsError> {
    let scheme = all.dialect.auth().unwrap_or_default();
    let key = ServerKey::open(options.key.clone(), scheme, clock.clone());
    let key = key.map_err(|source| RemoteOptionsError::Key {
        name: options.name.clone(),
        source,
    })?;
    Ok(UpstreamServer {
        name: options.name.clone(),
        base: base_url(&options.base_url)
            .ok_or_else(|| RemoteOptionsError::BaseUrl(options.base_url.clone()))?,
        key,
        headers: all.dialect.headers().collect(),
        http,
        watcher: all.watcher.clone(),
    })
}

impl RemoteServers {
    /// Probes every upstream in turn; returns each name with the result.
    pub async fn ask_all(&self) -> Vec<(String, Result<(), CallError>)> {
        let mut asked = Vec::new();
        for (index, upstream) in self.0.upstreams.iter().enumerate() {
            let answer = match self.ask(index).await {
                Ok(reply) if is_welcoming(&reply) || reply.status == 429 => Ok(()),
                Ok(reply) => Err(reply.refusal()),
                Err(cause) => Err(cause),
            };
            asked.push((upstream.name.clone(), answer));
        }
        asked
    }

    /// Checks whether an excluded upstream is available again.
    pub(crate) async fn probe(&self, index: usize) {
        let (places, upstream) = (&self.0.places, &self.0.upstreams[index]);
        let replied = self.ask(index).await;
        let cause = match replied {
            Ok(reply) if reply.status == 429 => {
                return places.record_pause(index, retry_after(&reply.headers));
            }
            Ok(reply) if is_welcoming(&reply) => {
                tracing::info!(upstream = upstream.name, "upstream available again");
                return places.record_recovery(index);
            }
            Ok(reply) => reply.refusal(),
            Err(cause) => cause,
        };
        tracing::debug!(
            upstream = upstream.name,
            error = chain(&cause),
            "upstream still excluded"
        );
        places.record_outage(index, &chain(&cause));
    }

    async fn ask(&self, index: usize) -> Result<ServerAnswer, CallError> {
        let (upstream, dialect) = (&self.0.upstreams[index], self.dialect());
        let path = dialect
            .probe
            .as_ref()
            .map_or(&dialect.poll.path, |probe| &probe.path);
        let model = self.0.options.model.as_deref();
        // Every placeholder has a value.
        let path = path.expand(&NoJob { model }).unwrap_or_default();
        let call = ServerCall {
            method: Method::GET,
            url: upstream.url_below(&path.path, path.query.as_deref()),
            body: None,
            headers: &[],
            limit: self.0.options.probe_timeout,
            is_public: false,
        };
        let mut reply = dialect.judged(upstream.call(&call).await?);
        if !reply.is_success() {
            upstream.conceal(&mut reply);
        }
        Ok(reply)
    }
}

/// The values of a job that does not exist: a server that would serve us does not know it.
pub(crate) struct NoJob<'a> {
    pub(crate) model: Option<&'a str>,
}

impl TemplateScope for NoJob<'_> {
    fn value(
        &self,
        hole: &Placeholder,
        _item: Option<usize>,
    ) -> Result<Option<Value>, RemoteError> {
        let model = self.model.filter(|_| hole.name == ValueName::Model);
        Ok(Some(model.unwrap_or("none").into()))
    }
}

fn is_welcoming(reply: &ServerAnswer) -> bool {
    reply.status < 500 && !matches!(reply.status, 401..=403 | 429)
}
