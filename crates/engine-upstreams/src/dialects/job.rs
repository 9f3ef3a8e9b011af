//! A task at its upstream: polled, cancelled, its result read. It holds a slot there until it is
//! dropped; dropping it tells the upstream nothing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use kinora_contract::{Clock, FailureCode};
use kinora_engine::places::{PlaceVisit, Places};
use url::Url;

use super::answer::{AnswerError, TaskSnapshot};
use super::dialect::{CancelMethod, ResultLocation, UpstreamPhase};
use super::encode::RemoteTicket;
use super::error::RemoteError;
use super::identity;
use super::options::RemoteOptions;
use crate::servers::{
    CallError, ResultError, ResultTarget, ServerAnswer, ServerCall, UpstreamServer, WaitTimer,
    chain, poll_after, retry_after, save_result,
};

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

    /// The URL of tasks followed by `segments`.
    fn url(&self, segments: &[&str]) -> Url {
        self.upstream().url(&[&["videos"], segments].concat())
    }

    fn call(&self, method: Method, segments: &[&str], limit: Duration) -> ServerCall<'static> {
        ServerCall {
            method,
            url: self.url(segments),
            body: None,
            headers: &[],
            limit,
        }
    }

    /// Queries the state of the task.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] without a usable answer, [`RemoteError::Forgotten`] if the upstream
    /// does not know the task.
    pub async fn poll(&self) -> Result<PollAnswer, RemoteError> {
        let options = &self.shared.options;
        let call = self.call(Method::GET, &[&self.ticket.id], options.answer_timeout);
        let reply = match self.upstream().call(&call).await {
            Ok(reply) => reply,
            Err(cause) => return Err(self.unreachable(cause)),
        };
        let seen = TaskSnapshot::read(&reply.body, options.dialect);
        let seen = seen.and_then(|seen| {
            if identity::is_same(&self.ticket.id, &seen.id) {
                Ok(seen)
            } else {
                Err(AnswerError::OtherTask)
            }
        });
        match seen {
            // Some servers answer for a failed task with the status of its failure.
            Ok(snapshot) if reply.is_success() || snapshot.phase == UpstreamPhase::Failed => {
                self.shared.places.record_answer(self.visit.index);
                let after = options.poll_wait(poll_after(&reply.headers));
                Ok(PollAnswer { snapshot, after })
            }
            Err(error) if reply.is_success() => Err(later(CallError::Answer(error.into()))),
            _ if matches!(reply.status, 404 | 410) => {
                Err(RemoteError::Forgotten(self.ticket.upstream.clone()))
            }
            _ => Err(self.refused(&reply)),
        }
    }

    /// The upstream's place, by its index.
    pub(crate) const fn place(&self) -> usize {
        self.visit.index
    }

    /// Asks the upstream to stop. A finished or deleted task counts as stopped.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] without an answer, [`RemoteError::Refused`] for a refusal.
    pub async fn cancel(&self) -> Result<(), RemoteError> {
        let limit = self.shared.options.cancel_timeout;
        let id = self.ticket.id.as_str();
        let call = match self.shared.options.dialect.cancel {
            CancelMethod::Post => self.call(Method::POST, &[id, "cancel"], limit),
            CancelMethod::Delete => self.call(Method::DELETE, &[id], limit),
        };
        match self.upstream().call(&call).await {
            Ok(reply) if reply.is_success() || matches!(reply.status, 404 | 409 | 410) => Ok(()),
            Ok(reply) => Err(RemoteError::Refused(reply.refusal())),
            Err(cause) => Err(self.unusable(cause)),
        }
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
        let call = ServerCall {
            url: self.result_url(snapshot)?,
            ..self.call(Method::GET, &[], options.answer_timeout)
        };
        let response = match self.upstream().open(&call).await {
            Ok(response) => response,
            Err(cause) => return Err(self.unusable(cause)),
        };
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
            ResultError::Refused(reply) => RemoteError::Busy {
                after: retry_after(&reply.headers).unwrap_or_default(),
                cause: reply.refusal(),
            },
            // It was not asked for, and would come again.
            ResultError::Broken(cause @ CallError::Encoding(_)) => RemoteError::NoResult(cause),
            ResultError::Broken(cause) => later(cause),
            ResultError::TooLarge => RemoteError::ResultTooLarge(bytes_max),
            ResultError::Storage(error) => RemoteError::Storage(error),
        })
    }

    /// The URL of the result: one that comes from an answer must have a known origin.
    fn result_url(&self, snapshot: &TaskSnapshot) -> Result<Url, RemoteError> {
        let upstream = self.upstream();
        let (ResultLocation::UrlElseContent, Some(address)) =
            (self.shared.options.dialect.result, &snapshot.url)
        else {
            return Ok(self.url(&[&self.ticket.id, "content"]));
        };
        let url = upstream.join(address).map_err(RemoteError::Refused)?;
        let origin = url.origin().ascii_serialization();
        if upstream.is_own(&url) || self.shared.result_origins.contains(&origin) {
            return Ok(url);
        }
        Err(RemoteError::ForeignResult(origin))
    }

    /// The failure that `snapshot` reports.
    pub(crate) fn failure(&self, snapshot: &TaskSnapshot) -> RemoteError {
        let told = snapshot.error_code.as_deref();
        let shared = told.filter(|_| self.shared.options.dialect.shares_failure_codes);
        RemoteError::Failed {
            code: shared
                .and_then(FailureCode::from_code)
                .filter(|code| is_the_request_s(*code))
                .unwrap_or(FailureCode::GenerationFailed),
            upstream_code: told.unwrap_or(&snapshot.word).to_owned(),
            text: snapshot.error_message.clone().unwrap_or_default(),
        }
    }

    /// No answer to a poll: the upstream is at fault.
    fn unreachable(&self, cause: CallError) -> RemoteError {
        let places = &self.shared.places;
        places.record_outage(self.visit.index, &chain(&cause));
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
        let (wish, refusal) = (retry_after(&reply.headers), reply.refusal());
        match reply.status {
            429 => places.record_pause(index, wish),
            401..=403 => places.record_breakage(index, &refusal.to_string()),
            500..=599 => places.record_outage(index, &refusal.to_string()),
            _ => {}
        }
        RemoteError::Busy {
            after: wish.unwrap_or_default(),
            cause: refusal,
        }
    }
}

/// Retry when it suits; the upstream is not at fault.
const fn later(cause: CallError) -> RemoteError {
    RemoteError::Busy {
        after: Duration::ZERO,
        cause,
    }
}

/// Whether a failure at the upstream is about the request rather than about the upstream.
const fn is_the_request_s(code: FailureCode) -> bool {
    !matches!(
        code,
        FailureCode::Cancelled
            | FailureCode::WorkerLost
            | FailureCode::StorageFailed
            | FailureCode::TaskExpired
    )
}

/// Made once per engine.
pub(crate) struct RemoteShared {
    pub(crate) options: RemoteOptions,
    pub(crate) upstreams: Vec<UpstreamServer>,
    /// In addition to the upstreams' own.
    pub(crate) result_origins: Vec<String>,
    /// The upstreams as places, by the same indices.
    pub(crate) places: Arc<Places>,
    pub(crate) timer: Arc<dyn WaitTimer>,
    /// Measures the pace of bodies and the age of look-ups.
    pub(crate) clock: Arc<dyn Clock>,
    /// Writes results.
    pub(crate) disk: kinora_system::pool::BlockingPool,
}
