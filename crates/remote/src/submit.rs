//! A request to the upstream that is chosen, and on to the next while it is certain that nobody took
//! it. Where that is not certain, the dialect decides: a second run may be paid twice.

use std::sync::Arc;

use hyper::Method;

use crate::answer::Snapshot;
use crate::dialect::Resubmit;
use crate::encode::{Encoded, encode};
use crate::error::{Cause, RemoteError};
use crate::hints;
use crate::http::Reply;
use crate::job::Job;
use crate::pool::{Choice, Slot};
use crate::remote::Remote;
use crate::request::{RemoteRequest, Ticket};
use crate::text::chain;
use crate::upstream::Call;

/// What follows from one attempt that gave no task.
enum Miss {
    /// Nobody took it here: ask the next one.
    Next(Cause),
    /// No other upstream may be asked.
    Final(RemoteError),
}

impl Remote {
    /// Submits `request` to the least busy upstream that takes it. Each is asked once at most.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] when nobody can take it now, [`RemoteError::Unsettled`] when one may
    /// have taken it without saying so, [`RemoteError::Refused`] when the request is wrong,
    /// and what keeps the request from being written.
    pub async fn submit(&self, request: &RemoteRequest) -> Result<Job, RemoteError> {
        let encoded = self.encode(request).await?;
        self.submit_encoded(&encoded, &request.key, None).await
    }

    pub(crate) async fn encode(&self, request: &RemoteRequest) -> Result<Encoded, RemoteError> {
        let options = &self.0.options;
        encode(request, options.dialect, options.request_bytes_max).await
    }

    /// As [`Self::submit`]; with `only`, at that upstream and no other.
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
            Resubmit::WithKey(name) => Some((name, key)),
            Resubmit::Freely | Resubmit::Never => None,
        };
        let call = Call {
            method: Method::POST,
            url: upstream.url(&[]),
            body: Some(encoded),
            header,
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
                Err(error) => self.failed(index, error.into()),
            },
            Ok(reply) => self.refused(index, &reply)?,
            Err(cause) => self.failed(index, cause),
        };
        tracing::warn!(
            upstream = upstream.name,
            error = chain(&cause),
            "a submit was not taken"
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

    /// What a status that says no means for the upstream, and whether another may be asked.
    fn refused(&self, index: usize, reply: &Reply) -> Result<Cause, Miss> {
        let (pool, now) = (&self.0.pool, self.0.timer.now());
        match reply.status {
            429 | 503 => pool.hold(index, now, hints::retry_after(&reply.headers)),
            // A wrong key, no credit, a wrong address.
            300..=399 | 401..=405 => pool.broke(index, now),
            408 | 500..=599 => pool.failed(index, now),
            _ => return Err(Miss::Final(RemoteError::Refused(reply.refusal()))),
        }
        Ok(reply.refusal())
    }
}
