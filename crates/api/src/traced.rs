//! The span of a submit: the root of its task's trace, or a child of the caller's span if the
//! request has `traceparent`.

use axum::http::HeaderMap;
use kinora_contract::{TraceContext, UnixMs};
use kinora_store::NewTask;
use kinora_traces::{Kind, Span};

use crate::state::Api;

/// W3C Trace Context (<https://www.w3.org/TR/trace-context/>).
const TRACEPARENT: &str = "traceparent";

/// A submit in progress.
#[derive(Debug)]
pub(crate) struct Begun {
    name: &'static str,
    caller: Option<TraceContext>,
    begun_ms: UnixMs,
}

impl Begun {
    /// Starts a span for `name`, method and route. An invalid header counts as absent, as the
    /// specification requires.
    pub(crate) fn now(api: &Api, headers: &HeaderMap, name: &'static str) -> Self {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        let only = sent.next().filter(|_| sent.next().is_none());
        Self {
            name,
            caller: only.and_then(|value| value.to_str().ok()?.parse().ok()),
            begun_ms: api.clock.now_ms(),
        }
    }

    /// The submit's span, if its trace is recorded.
    pub(crate) fn span(&self, api: &Api, new: &NewTask) -> Span {
        let span = api
            .tracer
            .begin(self.name, new.id, self.caller, self.begun_ms);
        if !span.is_recorded() {
            return span;
        }
        let mut span = span.of_kind(Kind::Server);
        if let Some((method, route)) = self.name.split_once(' ') {
            span.set("http.request.method", method);
            span.set("http.route", route);
        }
        span.set("kinora.task.id", new.id.to_string());
        span.set("kinora.model", new.spec.model.clone());
        span
    }
}
