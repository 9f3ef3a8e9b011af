//! All upstreams of one engine, created once and shared by all its tasks, and the probes of their health, which
//! cost no generation.

use std::sync::Arc;

use hyper::Method;
use kinora_contract::Clock;
use kinora_engine::{KindError, ServerReport};
use serde_json::Value;

use super::address::{EncodedPath, OriginPattern};
use super::dialect::ServerDialect;
use super::options::RemoteOptions;
use super::template::{Placeholder, TemplateScope, ValueName};
use crate::servers::{
    CallError, ServerAnswer, ServerCall, ServerPool, UpstreamError, WaitTimer, chain, retry_after,
};

/// A client of all upstreams of one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RemoteServers(pub(crate) Arc<RemoteShared>);

/// Made once per engine.
#[derive(Debug)]
pub(crate) struct RemoteShared {
    pub(crate) options: RemoteOptions,
    pub(crate) pool: ServerPool,
    /// In addition to the upstreams' own.
    pub(crate) result_origins: Vec<OriginPattern>,
}

impl RemoteServers {
    /// A client for the upstreams in `options`. Makes no calls yet.
    ///
    /// # Errors
    /// If the options are invalid or a key cannot be read.
    pub fn new(
        options: RemoteOptions,
        timer: Arc<dyn WaitTimer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let (dialect, origins) = (&options.dialect, options.result_origins.iter());
        let scheme = dialect.auth().unwrap_or_default();
        let headers = dialect.headers().collect();
        let pool = ServerPool::open(options.servers.clone(), &scheme, &headers, timer, clock)?;
        let result_origins = origins.map(|text| text.clone().try_into().map_err(KindError));
        Ok(Self(Arc::new(RemoteShared {
            result_origins: result_origins.collect::<Result<_, _>>()?,
            options,
            pool,
        })))
    }

    /// Probes every upstream in turn.
    pub async fn ask_all(&self) -> Vec<ServerReport> {
        let mut asked = Vec::new();
        for (index, upstream) in self.0.pool.servers.iter().enumerate() {
            let refusal = match self.0.ask(index).await {
                Ok(reply) if is_welcoming(&reply) || reply.status == 429 => None,
                Ok(reply) => Some(reply.refusal().to_string()),
                Err(cause) => Some(cause.to_string()),
            };
            let server = upstream.name.clone();
            asked.push(ServerReport { server, refusal });
        }
        asked
    }
}

impl RemoteShared {
    pub(crate) fn dialect(&self) -> &ServerDialect {
        &self.options.dialect
    }

    /// Makes a call to an upstream. The status of the answer is the one that its body means.
    pub(crate) async fn call(
        &self,
        index: usize,
        call: &ServerCall<'_>,
    ) -> Result<ServerAnswer, CallError> {
        let upstream = &self.pool.servers[index];
        let mut reply = self.dialect().judged(upstream.call(call).await?);
        if !reply.is_success() {
            upstream.conceal(&mut reply);
        }
        Ok(reply)
    }

    /// The URL of a path at an upstream.
    pub(crate) fn url(&self, index: usize, path: &EncodedPath) -> url::Url {
        self.pool.servers[index].url_below(&path.path, path.query.as_deref())
    }

    /// Checks whether an excluded upstream is available again.
    pub(crate) async fn probe(&self, index: usize) {
        let (places, upstream) = (&self.pool.places, &self.pool.servers[index]);
        let cause = match self.ask(index).await {
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
        self.pool.record_outage(index, &cause);
    }

    async fn ask(&self, index: usize) -> Result<ServerAnswer, CallError> {
        let dialect = self.dialect();
        let probe = dialect.probe.as_ref();
        let path = probe.map_or(&dialect.poll.path, |probe| &probe.path);
        let model = self.options.model.as_deref();
        // Every placeholder has a value.
        let path = path.expand(&NoJob { model }).unwrap_or_default();
        let limit = self.options.servers.probe_timeout;
        let call = ServerCall::new(Method::GET, self.url(index, &path), limit);
        self.call(index, &call).await
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
    ) -> Result<Option<Value>, UpstreamError> {
        let model = self.model.filter(|_| hole.name == ValueName::Model);
        Ok(Some(model.unwrap_or("none").into()))
    }
}

fn is_welcoming(reply: &ServerAnswer) -> bool {
    reply.status < 500 && !matches!(reply.status, 401..=403 | 429)
}
