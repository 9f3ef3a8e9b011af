//! A task at its upstream: polled, cancelled, its result read. It holds a slot there until it is
//! dropped; dropping it tells the upstream nothing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::LOCATION;
use hyper::{Method, Response};
use kinora_engine::places::PlaceVisit;
use serde_json::{Value, json};
use url::Url;

use super::address::{OriginPattern, PathTemplate, is_path, is_private_address};
use super::answer::{Refusal, TaskSnapshot, object, result_url};
use super::dialect::ServerDialect;
use super::encode::{RemoteTicket, written};
use super::identity;
use super::remote::{RemoteServers, RemoteShared};
use super::shape::UpstreamPhase;
use super::template::{Placeholder, Template, TemplateScope, ValueName};
use crate::servers::{
    AnswerError, CallError, EncodedBody, ServerAnswer, ServerCall, UpstreamError, UpstreamServer,
    poll_after, retry_after,
};

/// Maximum number of redirects of a result.
const REDIRECTS_MAX: usize = 5;

/// A task at its upstream.
pub struct RemoteJob {
    pub(crate) shared: Arc<RemoteShared>,
    /// The slot at the upstream.
    pub(crate) visit: PlaceVisit,
    pub(crate) ticket: RemoteTicket,
}

impl RemoteServers {
    /// The task of `ticket`, ready to poll. Makes no calls yet.
    ///
    /// # Errors
    /// [`UpstreamError::Forgotten`] if its upstream is no longer configured.
    pub fn resume(&self, ticket: &RemoteTicket) -> Result<RemoteJob, UpstreamError> {
        let index = self.0.pool.index_of(&ticket.upstream)?;
        Ok(RemoteJob {
            shared: Arc::clone(&self.0),
            visit: self.0.pool.places.record_visit(index),
            ticket: ticket.clone(),
        })
    }

    /// Asks the upstream of `ticket` to stop. A finished or deleted task counts as stopped.
    ///
    /// # Errors
    /// [`UpstreamError::Forgotten`] if the upstream is no longer configured, otherwise those of
    /// [`RemoteJob::cancel`].
    pub async fn call_off(&self, ticket: &RemoteTicket) -> Result<(), UpstreamError> {
        self.resume(ticket)?.cancel().await
    }
}

impl fmt::Debug for RemoteJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({:?})", self.ticket)
    }
}

impl RemoteJob {
    /// The ticket to save, so that polling continues after a restart.
    pub const fn ticket(&self) -> &RemoteTicket {
        &self.ticket
    }

    fn upstream(&self) -> &UpstreamServer {
        &self.shared.pool.servers[self.visit.index]
    }

    fn dialect(&self) -> &ServerDialect {
        self.shared.dialect()
    }

    /// The URL of `path`, for this task.
    fn url(&self, path: &PathTemplate) -> Result<Url, UpstreamError> {
        Ok(self.shared.url(self.visit.index, &path.expand(self)?))
    }

    fn body(&self, template: Option<&Template>) -> Result<Option<EncodedBody>, UpstreamError> {
        let Some(template) = template else {
            return Ok(None);
        };
        let body = template.value(self)?.unwrap_or_else(|| json!({}));
        Ok(Some(EncodedBody::json(&body)))
    }

    /// Queries the state of the task, and when to do so again.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] without a usable answer, [`UpstreamError::Forgotten`] if the upstream
    /// does not know the task.
    pub async fn poll(&self) -> Result<(TaskSnapshot, Duration), UpstreamError> {
        let (dialect, index) = (self.dialect(), self.visit.index);
        let (url, body) = (
            self.url(&dialect.poll.path)?,
            self.body(dialect.poll.body.as_ref())?,
        );
        let limit = self.shared.pool.options.answer_timeout;
        let call = ServerCall::new(dialect.poll.method.into(), url, limit);
        let called = self
            .shared
            .call(index, &call.with_body(body.as_ref()))
            .await;
        let reply = called.map_err(|cause| self.shared.pool.unreachable(index, cause))?;
        let seen = TaskSnapshot::read(&reply.body, dialect);
        let seen = seen.and_then(|seen| match &seen.id {
            Some(id) if !identity::is_same(&self.ticket.id, id) => Err(AnswerError::OtherJob),
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
            Err(_) if reply.status == 202 => {
                let phase = UpstreamPhase::Running;
                let silent = TaskSnapshot {
                    phase,
                    ..TaskSnapshot::default()
                };
                Ok(self.seen(silent, &reply))
            }
            Err(error) if reply.is_success() => Err(UpstreamError::later(error.into())),
            seen => match (self.poll_refused(&reply), seen) {
                // A film that was made and is withheld is charged.
                (UpstreamError::Failed { code, .. }, Ok(snapshot)) if snapshot.cost.is_some() => {
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

    fn seen(&self, mut snapshot: TaskSnapshot, reply: &ServerAnswer) -> (TaskSnapshot, Duration) {
        let told = [&mut snapshot.error_code, &mut snapshot.error_message];
        let texts = told.into_iter().flatten().chain([&mut snapshot.word]);
        texts.for_each(|text| self.upstream().key.conceal(text));
        self.shared.pool.places.record_answer(self.visit.index);
        let after = self.shared.options.poll_wait(poll_after(&reply.headers));
        (snapshot, after)
    }

    fn poll_refused(&self, reply: &ServerAnswer) -> UpstreamError {
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

    fn forgotten(&self) -> UpstreamError {
        UpstreamError::Forgotten(self.ticket.upstream.clone())
    }

    /// Asks the upstream to stop. A finished or deleted task counts as stopped.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] without an answer, [`UpstreamError::Refused`] for a refusal that another attempt may not
    /// get.
    pub async fn cancel(&self) -> Result<(), UpstreamError> {
        let Some(cancel) = &self.dialect().cancel else {
            tracing::warn!(
                upstream = self.ticket.upstream,
                "upstream has no cancel and works on"
            );
            return Ok(());
        };
        let (url, body) = (self.url(&cancel.path)?, self.body(cancel.body.as_ref())?);
        let limit = self.shared.pool.options.cancel_timeout;
        let call = ServerCall::new(cancel.method.into(), url, limit).with_body(body.as_ref());
        let called = self.shared.call(self.visit.index, &call).await;
        let reply = called.map_err(|cause| self.unusable(cause))?;
        // Another one would be answered alike. A refusal with a status of success may mean anything.
        let is_final =
            matches!(reply.status, 400 | 404 | 409 | 410) && reply.status == reply.http_status;
        if reply.is_success() || is_final {
            return Ok(());
        }
        Err(UpstreamError::Refused(reply.refusal()))
    }

    /// Saves the result of `snapshot` to the new file `to`, without syncing it, and returns its
    /// length in bytes; reports the length of each piece to `on_bytes`. Unless this returns `Ok`
    /// there is no such file, even if the future is dropped. The bytes are not inspected.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] if a retry may succeed; [`UpstreamError::ResultTooLarge`] for more than
    /// the maximum declared or sent, [`UpstreamError::ForeignResult`], [`UpstreamError::Storage`].
    pub async fn fetch_result(
        &self,
        snapshot: &TaskSnapshot,
        to: &Path,
        on_bytes: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, UpstreamError> {
        let response = self.open_result(self.result_place(snapshot).await?).await?;
        let (pool, index) = (&self.shared.pool, self.visit.index);
        pool.save_film(index, response, to, on_bytes).await
    }

    /// Opens the result, and follows its redirects if the dialect has any.
    async fn open_result(&self, mut place: ResultUrl) -> Result<Response<Incoming>, UpstreamError> {
        let follows = self.dialect().result.redirects;
        for _ in 0..=REDIRECTS_MAX {
            let limit = self.shared.pool.options.answer_timeout;
            let call = ServerCall {
                is_public: place.is_public,
                ..ServerCall::new(Method::GET, place.url.clone(), limit)
            };
            let is_own = self.upstream().is_own(&place.url);
            let response = match self.upstream().open(&call).await {
                Ok(response) => response,
                Err(cause) if is_own => return Err(self.unusable(cause)),
                // Another server's trouble says nothing about the upstream.
                Err(cause) => return Err(UpstreamError::later(cause)),
            };
            let next = follows.then(|| redirect(&response)).flatten();
            let Some(next) = next else {
                return Ok(response);
            };
            let next = place.url.join(&next).map_err(CallError::from);
            place = self.permitted(next.map_err(UpstreamError::NoResult)?)?;
            // Another server must not choose what is asked with the key.
            if !is_own && self.upstream().is_own(&place.url) {
                let origin = place.url.origin().ascii_serialization();
                return Err(UpstreamError::ForeignResult(origin));
            }
        }
        Err(UpstreamError::NoResult(CallError::Redirects(REDIRECTS_MAX)))
    }

    /// Where the result is: at the address in an answer, or below the base URL.
    async fn result_place(&self, snapshot: &TaskSnapshot) -> Result<ResultUrl, UpstreamError> {
        let place = &self.dialect().result;
        let address = match (&snapshot.url, &place.lookup) {
            (Some(url), _) => Some(url.clone()),
            (None, Some(path)) => self.look_up(path).await?,
            (None, None) => None,
        };
        match (address, &place.path) {
            (Some(address), _) => {
                let url = self.upstream().base.join(&address);
                self.permitted(url.map_err(|error| UpstreamError::Refused(error.into()))?)
            }
            (None, Some(path)) => Ok(ResultUrl {
                url: self.url(path)?,
                is_public: false,
            }),
            (None, None) => Err(UpstreamError::NoResult(CallError::NoAddress)),
        }
    }

    /// Asks for the address of the result.
    async fn look_up(&self, path: &PathTemplate) -> Result<Option<String>, UpstreamError> {
        let limit = self.shared.pool.options.answer_timeout;
        let call = ServerCall::new(Method::GET, self.url(path)?, limit);
        let called = self.shared.call(self.visit.index, &call).await;
        let reply = called.map_err(|cause| self.unusable(cause))?;
        if reply.is_success() {
            let sent = object(&reply.body);
            let sent = sent.map_err(|error| UpstreamError::later(error.into()));
            return Ok(result_url(&sent?, self.dialect()));
        }
        let told = Refusal::read(&reply, self.dialect()).failure_at(reply.status, self.dialect());
        Err(told.unwrap_or_else(|| self.look_up_refused(&reply)))
    }

    /// The answer is about one job: the upstream is at fault only if it refuses the key, or asks to wait.
    fn look_up_refused(&self, reply: &ServerAnswer) -> UpstreamError {
        match reply.status {
            401..=403 | 429 => self.refused(reply),
            404 | 408 | 425 => reply.busy(),
            // The answer tells why there is no result.
            400..=499 => Refusal::read(reply, self.dialect()).failed(self.dialect()),
            _ => reply.busy(),
        }
    }

    /// `url`, which comes from an answer, if results may be read from its origin.
    fn permitted(&self, url: Url) -> Result<ResultUrl, UpstreamError> {
        let origin = url.origin().ascii_serialization();
        let of_operator = &self.shared.result_origins;
        let exact =
            |one: &OriginPattern| matches!(one, OriginPattern::Exact(one) if *one == origin);
        if self.upstream().is_own(&url) || of_operator.iter().any(exact) {
            return Ok(ResultUrl {
                url,
                is_public: false,
            });
        }
        let mut patterns = of_operator.iter().chain(&self.dialect().result.origins);
        if !patterns.any(|pattern| pattern.covers(&url)) || is_private_address(&url) {
            return Err(UpstreamError::ForeignResult(origin));
        }
        Ok(ResultUrl {
            url,
            is_public: true,
        })
    }

    fn unusable(&self, cause: CallError) -> UpstreamError {
        self.shared.pool.unusable(self.visit.index, cause)
    }

    /// An error status of a poll: retry later.
    fn refused(&self, reply: &ServerAnswer) -> UpstreamError {
        let (places, index) = (&self.shared.pool.places, self.visit.index);
        let refusal = reply.refusal().to_string();
        match reply.status {
            429 => places.record_pause(index, retry_after(&reply.headers)),
            401..=403 => places.record_breakage(index, &refusal),
            500..=599 => places.record_outage(index, &refusal),
            _ => {}
        }
        reply.busy()
    }
}

/// Whether a status can be about the job: not of a wrong key, of a server in trouble, or of the gateway before it.
const fn is_about_job(status: u16) -> bool {
    !matches!(status, 401..=403 | 408 | 429 | 502..=504)
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
    ) -> Result<Option<Value>, UpstreamError> {
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
