//! Submits a request to the chosen upstream, and to the next while it is certain that no upstream
//! accepted it. If it is uncertain, the dialect decides: a second run may be charged twice.

use std::sync::Arc;

use hyper::Method;
use kinora_engine::places::{Choice, Visit, Wish};
use kinora_upstream::{Call, Cause, Encoded, Reply, chain, retry_after};

use crate::answer::Snapshot;
use crate::dialect::Resubmit;
use crate::encode::encode;
use crate::error::RemoteError;
use crate::job::Job;
use crate::remote::Remote;
use crate::request::{RemoteRequest, Ticket};

/// The consequence of a failed attempt.
enum Miss {
    /// This upstream did not accept it: try the next.
    Next(Cause),
    /// No other upstream may be tried.
    Final(RemoteError),
}

impl Remote {
    /// Submits `request` to the least busy upstream that accepts it. Tries each at most once.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] if none is available, [`RemoteError::Unsettled`] if one may have
    /// accepted it without answering, [`RemoteError::Refused`] if the request is invalid, and
    /// errors of encoding the request.
    pub async fn submit(&self, request: &RemoteRequest) -> Result<Job, RemoteError> {
        let encoded = self.encode(request).await?;
        self.submit_encoded(&encoded, request, None).await
    }

    pub(crate) async fn encode(&self, request: &RemoteRequest) -> Result<Encoded, RemoteError> {
        let options = &self.0.options;
        encode(request, options.dialect, options.request_bytes_max).await
    }

    /// Like [`Self::submit`]; with `only`, just at that upstream.
    pub(crate) async fn submit_encoded(
        &self,
        encoded: &Encoded,
        request: &RemoteRequest,
        only: Option<usize>,
    ) -> Result<Job, RemoteError> {
        let places = &self.0.places;
        let mut last = Cause::NoUpstream;
        loop {
            let choice = match only {
                Some(index) => places.choose_only(index),
                None => places.choose(&Wish {
                    may: &|_| true,
                    prefers: &|_| false,
                    avoid: &request.avoid,
                }),
            };
            match choice {
                Choice::Probe(probe) => self.probe(probe.index).await,
                Choice::Wait(until) => {
                    let after = until.saturating_sub(self.0.timer.now());
                    return Err(RemoteError::Busy { after, cause: last });
                }
                Choice::Take(visit) => match self.submit_at(visit, encoded, &request.key).await {
                    Ok(job) => return Ok(job),
                    Err(Miss::Final(error)) => return Err(error),
                    Err(Miss::Next(cause)) => last = cause,
                },
            }
        }
    }

    async fn submit_at(&self, visit: Visit, encoded: &Encoded, key: &str) -> Result<Job, Miss> {
        let (options, index) = (&self.0.options, visit.index);
        let upstream = &self.0.upstreams[index];
        let header = match options.dialect.resubmit {
            Resubmit::WithKey(name) => &[(name, key)][..],
            Resubmit::Freely | Resubmit::Never => &[],
        };
        let call = Call {
            method: Method::POST,
            url: upstream.url(&["videos"]),
            body: Some(encoded),
            headers: header,
            limit: options.submit_timeout,
        };
        let replied = upstream.call(&call).await;
        let cause = match replied {
            Ok(reply) if reply.is_success() => match Snapshot::read(&reply.body, options.dialect) {
                Ok(seen) => {
                    self.0.places.answered(index);
                    let ticket = Ticket {
                        upstream: upstream.name.clone(),
                        id: seen.id,
                    };
                    return Ok(Job::new(Arc::clone(&self.0), visit, ticket));
                }
                Err(error) => self.failed(index, Cause::Answer(error.into())),
            },
            Ok(reply) => self.refused(index, &reply)?,
            Err(cause) => self.failed(index, cause),
        };
        tracing::warn!(
            upstream = upstream.name,
            error = chain(&cause),
            "submit failed"
        );
        if cause.is_ambiguous() && options.dialect.resubmit != Resubmit::Freely {
            return Err(Miss::Final(RemoteError::Unsettled {
                upstream: upstream.name.clone(),
                cause,
            }));
        }
        Err(Miss::Next(cause))
    }

    fn failed(&self, index: usize, cause: Cause) -> Cause {
        self.0.places.outage(index, &chain(&cause));
        cause
    }

    /// Handles an error status; returns whether another upstream may be tried.
    fn refused(&self, index: usize, reply: &Reply) -> Result<Cause, Miss> {
        let (places, refusal) = (&self.0.places, reply.refusal());
        match reply.status {
            429 | 503 => places.hold(index, retry_after(&reply.headers)),
            // A wrong key, no credit, or a wrong URL.
            300..=399 | 401..=405 => places.broke(index, &refusal.to_string()),
            408 | 500..=599 => places.outage(index, &refusal.to_string()),
            _ => return Err(Miss::Final(RemoteError::Refused(refusal))),
        }
        Ok(refusal)
    }
}
