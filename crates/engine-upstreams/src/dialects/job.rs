//! A task at its upstream: polled, cancelled, its result read. It holds a slot there until it is
//! dropped; dropping it tells the upstream nothing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::LOCATION;
use hyper::{Method, Response};
use kinora_contract::{Clock, FailureCode};
use kinora_engine::places::{PlaceVisit, Places};
use serde_json::{Value, json};
use url::Url;

use super::address::{OriginPattern, PathTemplate, is_path, is_private_address};
use super::answer::{AnswerError, Refusal, TaskSnapshot, object, result_url};
use super::dialect::ServerDialect;
use super::encode::{RemoteTicket, written};
use super::error::RemoteError;
use super::identity;
use super::options::RemoteOptions;
use super::shape::UpstreamPhase;
use super::template::{Placeholder, Template, TemplateScope, ValueName};
use crate::servers::{
    CallError, EncodedBody, ResultError, ResultTarget, ServerAnswer, ServerCall, UpstreamServer,
    WaitTimer, chain, poll_after, retry_after, save_result,
};

/// Maximum number of redirects of a result.
const REDIRECTS_MAX: usize = 5;

/// A task at its upstream.
pub struct RemoteJob {
    shared: Arc<RemoteShared>,
    visit: PlaceVisit,
    ticket: RemoteTicket,
}

/// The result of a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct PollAnswer {
    /// The task.
    pub snapshot: TaskSnapshot,
    /// When to poll again.
    pub after: Duration,
}

impl fmt::Debug for RemoteJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({:?})", self.ticket)
    }
}

impl RemoteJob {
    pub(crate) const fn new(
        shared: Arc<RemoteShared>,
        visit: PlaceVisit,
        ticket: RemoteTicket,
    ) -> Self {
        Self {
            shared,
            visit,
            ticket,
        }
    }

    /// The ticket to save, so that polling continues after a restart.
    pub const fn ticket(&self) -> &RemoteTicket {
        &self.ticket
    }

    fn upstream(&self) -> &UpstreamServer {
        &self.shared.upstreams[self.visit.index]
    }

    fn dialect(&self) -> &ServerDialect {
        &self.shared.options.dialect
    }

    /// The URL of `path`, for this task.
    fn url(&self, path: &PathTemplate) -> Result<Url, RemoteError> {
        let path = path.expand(self)?;
        Ok(self.upstream().url_below(&path.path, path.query.as_deref()))
    }

    fn body(&self, template: Option<&Template>) -> Result<Option<EncodedBody>, RemoteError> {
        let Some(template) = template else {
            return Ok(None);
        };
        let body = template.value(self)?.unwrap_or_else(|| json!({}));
        Ok(Some(EncodedBody::json(&body)))
    }

    /// Makes a call of the dialect about this task. The status of the answer is the one that its body means.
    async fn call(
        &self,
        method: Method,
        url: Url,
        body: Option<&EncodedBody>,
        limit: Duration,
    ) -> Result<ServerAnswer, CallError> {
        let called = self.call_plainly(method, url, body, limit).await;
        Ok(called?.0)
    }

    /// Like [`Self::call`], with the HTTP status too.
    async fn call_plainly(
        &self,
        method: Method,
        url: Url,
        body: Option<&EncodedBody>,
        limit: Duration,
    ) -> Result<(ServerAnswer, u16), CallError> {
        let call = ServerCall {
            method,
            url,
            body,
            headers: &[],
            limit,
            is_public: false,
        };
        let reply = self.upstream().call(&call).await?;
        let http_status = reply.status;
        let mut reply = self.dialect().judged(reply);
        if !reply.is_success() {
            self.upstream().conceal(&mut reply);
        }
        Ok((reply, http_status))
    }

    /// Queries the state of the task.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] without a usable answer, [`RemoteError::Forgotten`] if the upstream
    /// does not know the task.
    pub async fn poll(&self) -> Result<PollAnswer, RemoteError> {
        let (options, dialect) = (&self.shared.options, self.dialect());
        let (url, body) = (
            self.url(&dialect.poll.path)?,
            self.body(dialect.poll.body.as_ref())?,
        );
        let method = dialect.poll.method.into();
        let called = self.call(method, url, body.as_ref(), options.answer_timeout);
        let reply = match called.await {
            Ok(reply) => reply,
            Err(cause) => return Err(self.unreachable(cause)),
        };
        let seen = TaskSnapshot::read(&reply.body, dialect);
        let seen = seen.and_then(|seen| match &seen.id {
            Some(id) if !identity::is_same(&self.ticket.id, id) => Err(AnswerError::OtherTask),
            _ => Ok(seen),
        });
        match seen {
            Ok(snapshot)
                if is_about_job(reply.status)
                    && dialect.poll.forgotten.contains(&snapshot.word) =>
            {
                Err(self.forgotten())
            }
            // Some servers answer for a failed task with the status of its failure; others' errors have no id.
            Ok(snapshot)
                if reply.is_success()
                    || (snapshot.phase == UpstreamPhase::Failed && snapshot.id.is_some()) =>
            {
                Ok(self.seen(snapshot, &reply))
            }
            // Accepted, and nothing to say yet.
            Err(_) if reply.status == 202 => Ok(self.seen(TaskSnapshot::silent(), &reply)),
            Err(error) if reply.is_success() => Err(later(CallError::Answer(error.into()))),
            seen => match (self.poll_refused(&reply), seen) {
                // A film that was made and is withheld is charged.
                (RemoteError::Failed { code, .. }, Ok(snapshot)) if snapshot.cost.is_some() => {
                    let (phase, failure) = (UpstreamPhase::Failed, Some(code));
                    let snapshot = TaskSnapshot {
                        phase,
                        failure,
                        ..snapshot
                    };
                    Ok(self.seen(snapshot, &reply))
                }
                (refusal, _) => Err(refusal),
            },
        }
    }

    fn seen(&self, mut snapshot: TaskSnapshot, reply: &ServerAnswer) -> PollAnswer {
        let told = [&mut snapshot.error_code, &mut snapshot.error_message];
        let texts = told.into_iter().flatten().chain([&mut snapshot.word]);
        texts.for_each(|text| self.upstream().key.conceal(text));
        self.shared.places.record_answer(self.visit.index);
        let after = self.shared.options.poll_wait(poll_after(&reply.headers));
        PollAnswer { snapshot, after }
    }

    fn poll_refused(&self, reply: &ServerAnswer) -> RemoteError {
        let dialect = self.dialect();
        let told = Refusal::read(reply, dialect);
        if is_about_job(reply.status) && told.has_any(&dialect.poll.forgotten) {
            return self.forgotten();
        }
        match (told.failure_at(reply.status, dialect), reply.status) {
            (Some(failure), _) => failure,
            (None, 404 | 410) => self.forgotten(),
            _ => self.refused(reply),
        }
    }

    fn forgotten(&self) -> RemoteError {
        RemoteError::Forgotten(self.ticket.upstream.clone())
    }

    /// The upstream's place, by its index.
    pub(crate) const fn place(&self) -> usize {
        self.visit.index
    }

    /// Asks the upstream to stop. A finished or deleted task counts as stopped.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] without an answer, [`RemoteError::Refused`] for a refusal that another attempt may not
    /// get.
    pub async fn cancel(&self) -> Result<(), RemoteError> {
        let Some(cancel) = &self.dialect().cancel else {
            tracing::warn!(
                upstream = self.ticket.upstream,
                "upstream has no cancel and works on"
            );
            return Ok(());
        };
        let (url, body) = (self.url(&cancel.path)?, self.body(cancel.body.as_ref())?);
        let limit = self.shared.options.cancel_timeout;
        let method = cancel.method.into();
        let called = self.call_plainly(method, url, body.as_ref(), limit).await;
        let (reply, http_status) = called.map_err(|cause| self.unusable(cause))?;
        // Another one would be answered alike. A refusal with a status of success may mean anything.
        let is_final = matches!(reply.status, 400 | 404 | 409 | 410) && reply.status == http_status;
        if reply.is_success() || is_final {
            return Ok(());
        }
        Err(RemoteError::Refused(reply.refusal()))
    }

    /// Saves the result of `snapshot` to the new file `to`, without syncing it, and returns its
    /// length in bytes; reports the length of each piece to `on_bytes`. Unless this returns `Ok`
    /// there is no such file, even if the future is dropped. The bytes are not inspected.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] if a retry may succeed; [`RemoteError::ResultTooLarge`] for more than
    /// `bytes_max` declared or sent, [`RemoteError::ForeignResult`], [`RemoteError::Storage`].
    pub async fn fetch_result(
        &self,
        snapshot: &TaskSnapshot,
        to: &Path,
        bytes_max: u64,
        on_bytes: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, RemoteError> {
        let options = &self.shared.options;
        let response = self.open_result(self.result_place(snapshot).await?).await?;
        let saved = ResultTarget {
            to,
            bytes_max,
            answer_timeout: options.answer_timeout,
            rate_window: options.rate_window,
            rate_bytes_min: options.rate_bytes_min,
            disk: &self.shared.disk,
            clock: &self.shared.clock,
        };
        let saved = save_result(response, saved, on_bytes).await;
        saved.map_err(|error| match error {
            ResultError::Refused(mut reply) => {
                self.upstream().conceal(&mut reply);
                busy(&reply)
            }
            // It was not asked for, and would come again.
            ResultError::Broken(cause @ CallError::Encoding(_)) => RemoteError::NoResult(cause),
            ResultError::Broken(cause) => later(cause),
            ResultError::TooLarge => RemoteError::ResultTooLarge(bytes_max),
            ResultError::Storage(error) => RemoteError::Storage(error),
        })
    }

    /// Opens the result, and follows its redirects if the dialect has any.
    async fn open_result(&self, mut place: ResultUrl) -> Result<Response<Incoming>, RemoteError> {
        let follows = self.dialect().result.redirects;
        for _ in 0..=REDIRECTS_MAX {
            let call = ServerCall {
                method: Method::GET,
                url: place.url.clone(),
                body: None,
                headers: &[],
                limit: self.shared.options.answer_timeout,
                is_public: place.is_public,
            };
            let is_own = self.upstream().is_own(&place.url);
            let response = match self.upstream().open(&call).await {
                Ok(response) => response,
                Err(cause) if is_own => return Err(self.unusable(cause)),
                // Another server's trouble says nothing about the upstream.
                Err(cause) => return Err(later(cause)),
            };
            let next = follows.then(|| redirect(&response)).flatten();
            let Some(next) = next else {
                return Ok(response);
            };
            let next = place.url.join(&next).map_err(CallError::from);
            place = self.permitted(next.map_err(RemoteError::NoResult)?)?;
            // Another server must not choose what is asked with the key.
            if !is_own && self.upstream().is_own(&place.url) {
                let origin = place.url.origin().ascii_serialization();
                return Err(RemoteError::ForeignResult(origin));
            }
        }
        Err(RemoteError::NoResult(CallError::Redirects(REDIRECTS_MAX)))
    }

    /// Where the result is: at the address in an answer, or below the base URL.
    async fn result_place(&self, snapshot: &TaskSnapshot) -> Result<ResultUrl, RemoteError> {
        let place = &self.dialect().result;
        let address = match (&snapshot.url, &place.lookup) {
            (Some(url), _) => Some(url.clone()),
            (None, Some(path)) => self.look_up(path).await?,
            (None, None) => None,
        };
        match (address, &place.path) {
            (Some(address), _) => {
                let url = self.upstream().join(&address);
                self.permitted(url.map_err(RemoteError::Refused)?)
            }
            (None, Some(path)) => Ok(ResultUrl {
                url: self.url(path)?,
                is_public: false,
            }),
            (None, None) => Err(RemoteError::NoResult(CallError::NoAddress)),
        }
    }

    /// Asks for the address of the result.
    async fn look_up(&self, path: &PathTemplate) -> Result<Option<String>, RemoteError> {
        let limit = self.shared.options.answer_timeout;
        let called = self.call(Method::GET, self.url(path)?, None, limit);
        let reply = match called.await {
            Ok(reply) => reply,
            Err(cause) => return Err(self.unusable(cause)),
        };
        match reply.status {
            200..=299 => {
                let sent =
                    object(&reply.body).map_err(|error| later(CallError::Answer(error.into())))?;
                Ok(result_url(&sent, self.dialect()))
            }
            status => {
                let told = Refusal::read(&reply, self.dialect());
                Err(match told.failure_at(status, self.dialect()) {
                    Some(failure) => failure,
                    None => self.look_up_refused(&reply),
                })
            }
        }
    }

    /// The answer is about one job: the upstream is at fault only if it refuses the key, or asks to wait.
    fn look_up_refused(&self, reply: &ServerAnswer) -> RemoteError {
        match reply.status {
            401..=403 | 429 => self.refused(reply),
            404 | 408 | 425 => busy(reply),
            // The answer tells why there is no result.
            400..=499 => Refusal::read(reply, self.dialect()).failed(self.dialect()),
            _ => busy(reply),
        }
    }

    /// `url`, which comes from an answer, if results may be read from its origin.
    fn permitted(&self, url: Url) -> Result<ResultUrl, RemoteError> {
        let origin = url.origin().ascii_serialization();
        let of_operator = &self.shared.result_origins;
        let exact =
            |one: &OriginPattern| matches!(one, OriginPattern::Exact(one) if *one == origin);
        if self.upstream().is_own(&url) || of_operator.iter().any(exact) {
            let is_public = false;
            return Ok(ResultUrl { url, is_public });
        }
        let mut patterns = of_operator.iter().chain(&self.dialect().result.origins);
        if !patterns.any(|pattern| pattern.covers(&url)) || is_private_address(&url) {
            return Err(RemoteError::ForeignResult(origin));
        }
        let is_public = true;
        Ok(ResultUrl { url, is_public })
    }

    /// The failure that `snapshot` reports.
    pub(crate) fn failure(&self, snapshot: &TaskSnapshot) -> RemoteError {
        let code = snapshot.error_code.as_ref().unwrap_or(&snapshot.word);
        RemoteError::Failed {
            code: snapshot.failure.unwrap_or(FailureCode::GenerationFailed),
            upstream_code: code.clone(),
            text: snapshot.error_message.clone().unwrap_or_default(),
        }
    }

    /// No answer to a poll: the upstream is at fault.
    fn unreachable(&self, cause: CallError) -> RemoteError {
        if !matches!(cause, CallError::Request(_)) {
            let places = &self.shared.places;
            places.record_outage(self.visit.index, &chain(&cause));
        }
        later(cause)
    }

    /// No answer about this one task. Its content may be at fault, so the upstream is only if it
    /// cannot be connected to.
    fn unusable(&self, cause: CallError) -> RemoteError {
        match cause {
            CallError::Connect(_) => self.unreachable(cause),
            cause => later(cause),
        }
    }

    /// An error status of a poll: retry later.
    fn refused(&self, reply: &ServerAnswer) -> RemoteError {
        let (places, index) = (&self.shared.places, self.visit.index);
        let refusal = reply.refusal().to_string();
        match reply.status {
            429 => places.record_pause(index, retry_after(&reply.headers)),
            401..=403 => places.record_breakage(index, &refusal),
            500..=599 => places.record_outage(index, &refusal),
            _ => {}
        }
        busy(reply)
    }
}

/// Whether a status can be about the job: not of a wrong key, of a server in trouble, or of the gateway before it.
const fn is_about_job(status: u16) -> bool {
    !matches!(status, 401..=403 | 408 | 429 | 502..=504)
}

/// Retry when the server wishes; it is not at fault.
fn busy(reply: &ServerAnswer) -> RemoteError {
    RemoteError::Busy {
        after: retry_after(&reply.headers).unwrap_or_default(),
        cause: reply.refusal(),
    }
}

/// Retry when it suits; the upstream is not at fault.
const fn later(cause: CallError) -> RemoteError {
    RemoteError::Busy {
        after: Duration::ZERO,
        cause,
    }
}

/// An address from which the result may be read.
struct ResultUrl {
    url: Url,
    /// Whether its host must have a public address.
    is_public: bool,
}

/// The target of a redirect, if `response` is one.
fn redirect(response: &Response<Incoming>) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    Some(location.to_str().ok()?.to_owned())
}

/// The values after a submit.
impl TemplateScope for RemoteJob {
    fn value(
        &self,
        hole: &Placeholder,
        _item: Option<usize>,
    ) -> Result<Option<Value>, RemoteError> {
        let ticket = &self.ticket;
        let value = match hole.name {
            ValueName::Id => Some(json!(ticket.id)),
            ValueName::Path => ticket
                .path
                .as_ref()
                .filter(|path| is_path(path))
                .map(|path| json!(path)),
            ValueName::Model => ticket.model.as_ref().map(|model| json!(model)),
            _ => None,
        };
        written(value, hole, self.dialect())
    }
}

/// Made once per engine.
pub(crate) struct RemoteShared {
    pub(crate) options: RemoteOptions,
    pub(crate) upstreams: Vec<UpstreamServer>,
    /// In addition to the upstreams' own.
    pub(crate) result_origins: Vec<OriginPattern>,
    /// The upstreams as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) timer: Arc<dyn WaitTimer>,
    /// Measures the pace of bodies and the age of look-ups.
    pub(crate) clock: Arc<dyn Clock>,
    /// Writes results.
    pub(crate) disk: kinora_system::pool::BlockingPool,
}
