//! Submits a request to the chosen upstream, and to the next while it is certain that no upstream
//! accepted it. If it is uncertain, the dialect decides: a second run may be charged twice.

use std::sync::Arc;

use hyper::Method;
use kinora_upstream::{Call, Cause, Choice, Encoded, Reply, Slot, chain, retry_after};

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
        self.submit_encoded(&encoded, &request.key, None).await
    }

    pub(crate) async fn encode(&self, request: &RemoteRequest) -> Result<Encoded, RemoteError> {
        let options = &self.0.options;
        encode(request, options.dialect, options.request_bytes_max).await
    }

    /// Like [`Self::submit`]; with `only`, just at that upstream.
    pub(crate) async fn submit_encoded(
        &self,
        encoded: &Encoded,
        key: &str,
        only: Option<usize>,
    ) -> Result<Job, RemoteError> {
        let pool = &self.0.pool;
        let mut last = Cause::NoUpstream;
        loop {
            let now = self.0.timer.now();
            let choice = match only {
                Some(index) => pool.choose_only(index, now),
                None => pool.choose(now),
            };
            match choice {
                Choice::Probe(index) => self.probe(index).await,
                Choice::Wait(until) => {
                    let after = until.saturating_sub(now);
                    return Err(RemoteError::Busy { after, cause: last });
                }
                Choice::Take(slot) => match self.submit_at(slot, encoded, key).await {
                    Ok(job) => return Ok(job),
                    Err(Miss::Final(error)) => return Err(error),
                    Err(Miss::Next(cause)) => last = cause,
                },
            }
        }
    }

    async fn submit_at(&self, slot: Slot, encoded: &Encoded, key: &str) -> Result<Job, Miss> {
        let (options, index) = (&self.0.options, slot.index);
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
                    self.0.pool.succeeded(index);
                    let ticket = Ticket {
                        upstream: upstream.name.clone(),
                        id: seen.id,
                    };
                    return Ok(Job::new(Arc::clone(&self.0), slot, ticket));
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
        self.0.pool.failed(index, self.0.timer.now());
        cause
    }

    /// Handles an error status; returns whether another upstream may be tried.
    fn refused(&self, index: usize, reply: &Reply) -> Result<Cause, Miss> {
        let (pool, now) = (&self.0.pool, self.0.timer.now());
        match reply.status {
            429 | 503 => pool.hold(index, now, retry_after(&reply.headers)),
            // A wrong key, no credit, or a wrong URL.
            300..=399 | 401..=405 => pool.broke(index, now),
            408 | 500..=599 => pool.failed(index, now),
            _ => return Err(Miss::Final(RemoteError::Refused(reply.refusal()))),
        }
        Ok(reply.refusal())
    }
}
