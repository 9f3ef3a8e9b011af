//! The store for runs and fetches, and what each answer must then be.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, FailureCode, TaskId, TaskPhase, UnixMs};
use kinora_store::{
    CancelOutcome, ClaimRequest, ClaimedTask, FetchReport, FetchRequest, Lease, LeaseLost,
    LeaseRenewal, Pause, PauseStore, Pauses, ReferenceFetch, ReleasedAttempt, RunOutcome,
    StoreError, SweepRequest, WaitingFrom, WorkerStore,
};
use tokio::sync::watch;

use super::{SeenStore, told};
use crate::book::Cause;
use crate::witness::Counter;
use crate::world::{ATTEMPTS_MAX, LEASE_MS, RETENTION_MS, TOMBSTONE_MS};

impl SeenStore {
    async fn claim_now(
        &self,
        request: ClaimRequest,
        asked_ms: u64,
    ) -> Result<Vec<ClaimedTask>, StoreError> {
        let (witness, worker) = (&self.way.witness, self.way.pulse.k);
        let steady_ms = witness.clock.steady_ms();
        let paused = request.paused.clone();
        let claims = self.inner.work.claim(request).await;
        if matches!(&claims, Ok(none) if none.is_empty()) {
            return claims;
        }
        self.way
            .tell(&format!("claim {}", told(&claims.as_ref().map(Vec::len))));
        let claimed = claims.as_deref().unwrap_or_default();
        let leases = claimed.iter().map(|claim| claim.lease.clone()).collect();
        witness
            .note(Cause::Claimed {
                worker,
                leases,
                steady_ms,
            })
            .await;
        for ClaimedTask { task, lease, .. } in claimed {
            assert!(
                !paused.contains(&task.spec.model),
                "a claim of a paused model: {lease:?}"
            );
            assert!(
                witness.book().holds(lease),
                "P3: a claim is not what the store knows: {lease:?}"
            );
            witness.believes(worker, lease, asked_ms + LEASE_MS);
        }
        claims
    }

    async fn renew_now(
        &self,
        lease: &Lease,
        renewal: LeaseRenewal,
        asked_ms: u64,
    ) -> Result<(), StoreError> {
        let (witness, worker) = (&self.way.witness, self.way.pulse.k);
        let until_ms = witness.clock.steady_ms() + LEASE_MS;
        let (progress, decided) = (renewal.progress, renewal.decided.clone());
        let has_ticket = renewal.ticket.is_some();
        let held = witness.book().holds(lease);
        let done = self.inner.work.renew(lease, LEASE_MS, renewal).await;
        self.way
            .tell(&format!("renew {} {progress} {}", lease.task, told(&done)));
        let cause = Cause::Renewed {
            lease: lease.clone(),
            progress,
            decided,
            has_ticket,
            until_ms,
            told: done.is_ok(),
        };
        witness.note(cause).await;
        refused_rightly(&done, held, lease);
        if done.is_ok() {
            witness.believes(worker, lease, asked_ms + LEASE_MS);
        }
        done
    }

    async fn finish_now(&self, lease: &Lease, outcome: RunOutcome) -> Result<(), StoreError> {
        let witness = &self.way.witness;
        let held = witness.book().holds(lease);
        let done = if held && witness.takes_race() {
            self.race(lease, outcome.clone()).await
        } else {
            let finished = self.inner.work.finish(lease, outcome.clone(), RETENTION_MS);
            let done = finished.await;
            self.way
                .tell(&format!("finish {} {}", lease.task, told(&done)));
            refused_rightly(&done, held, lease);
            done
        };
        let cause = Cause::Finished {
            lease: lease.clone(),
            outcome,
            told: done.is_ok(),
        };
        witness.note(cause).await;
        done
    }

    /// A finish, a cancel and a sweep at once, in one transaction.
    async fn race(&self, lease: &Lease, outcome: RunOutcome) -> Result<(), StoreError> {
        let witness = &self.way.witness;
        let project = {
            let book = witness.book();
            book.tasks[&lease.task].task.project.clone()
        };
        let failure: kinora_contract::Failure = FailureCode::Cancelled.into();
        let finish = self.inner.work.finish(lease, outcome, RETENTION_MS);
        let tasks = &self.inner.tasks;
        let cancel = tasks.cancel(&project, lease.task, failure.clone(), RETENTION_MS);
        let request = SweepRequest {
            due_ms: None,
            keys_kept_ms: 0,
            waiting_from: WaitingFrom::default(),
            attempts_max: ATTEMPTS_MAX,
            lease_ms: LEASE_MS,
            spares_leases: false,
            waiting_ms_max: None,
            retention_ms: RETENTION_MS,
            unreadable_ms: RETENTION_MS,
            tombstone_ms: TOMBSTONE_MS,
            batch: 200,
        };
        let sweep = self.inner.chores.sweep(request);
        let steady_ms = witness.clock.steady_ms();
        let (finished, cancelled, swept) = if witness.percent(50) {
            tokio::join!(finish, cancel, sweep)
        } else {
            let (swept, cancelled, finished) = tokio::join!(sweep, cancel, finish);
            (finished, cancelled, swept)
        };
        self.way.tell(&format!(
            "race for {}: {}, {}",
            lease.task,
            told(&finished),
            cancelled.is_ok()
        ));
        let both = finished.is_ok() && matches!(cancelled, Ok(CancelOutcome::Cancelled(_)));
        assert!(!both, "P2: {} was both finished and cancelled", lease.task);
        let mut book = witness.book();
        book.saw("finish raced".to_owned());
        book.note(Cause::Cancelled {
            task: lease.task,
            failure,
        });
        book.note(Cause::Swept {
            request,
            steady_ms,
            told: swept.is_ok(),
            well_since_ms: witness.well_since_ms(),
        });
        finished
    }

    async fn release_now(&self, lease: &Lease, attempt: ReleasedAttempt) -> Result<(), StoreError> {
        let (witness, pulse) = (&self.way.witness, &self.way.pulse);
        let held = witness.book().holds(lease);
        let done = self.inner.work.release(lease, attempt).await;
        self.way.tell(&format!(
            "release {} {attempt:?} {}",
            lease.task,
            told(&done)
        ));
        if attempt == ReleasedAttempt::Forgiven && !pulse.stops() {
            self.gave_back_rightly(lease);
        }
        let cause = Cause::Released {
            lease: lease.clone(),
            attempt,
            told: done.is_ok(),
        };
        witness.note(cause).await;
        refused_rightly(&done, held, lease);
        done
    }

    /// A task is given back for a fault of the service, or where its lease could not be renewed.
    fn gave_back_rightly(&self, lease: &Lease) {
        let (witness, k) = (&self.way.witness, self.way.pulse.k);
        let until_ms = witness.believed_until_ms(k, &lease.task.to_string());
        let well_since_ms = witness.well_since_ms()[k].unwrap_or(u64::MAX);
        let ran_out = until_ms <= witness.clock.steady_ms();
        assert!(
            !ran_out || well_since_ms >= until_ms.saturating_sub(LEASE_MS),
            "P5: worker {k}, which is well, let its lease run out: {lease:?}"
        );
        let what = match ran_out {
            true => "lease ran out unrenewed",
            false => "given back for a fault of the service",
        };
        witness.book().saw(what.to_owned());
    }

    async fn take_fetches_now(
        &self,
        request: FetchRequest,
    ) -> Result<Vec<ReferenceFetch>, StoreError> {
        let witness = &self.way.witness;
        let taken = self.inner.work.lease_fetches(request).await;
        let fetches = taken.as_deref().unwrap_or_default();
        for fetch in fetches {
            self.way.tell(&format!("fetch {}", fetch.task.id));
            witness.book().enter_fetch(fetch);
        }
        if !fetches.is_empty() || taken.is_err() {
            witness.observe().await;
        }
        taken
    }

    async fn settle_fetch_now(
        &self,
        fetch: &ReferenceFetch,
        fetched: FetchReport,
    ) -> Result<(), StoreError> {
        let (witness, id) = (&self.way.witness, fetch.task.id);
        let holds = {
            let mut book = witness.book();
            if let FetchReport::Failed { failure, .. } = &fetched {
                book.note(Cause::FetchFailed {
                    task: id,
                    failure: failure.clone(),
                });
            }
            book.phase(id) == Some(TaskPhase::Waiting) && book.is_fetched_by(fetch)
        };
        let settled = self.inner.work.complete_fetch(fetch, fetched.clone()).await;
        self.way
            .tell(&format!("fetched {id} {fetched:?} {}", told(&settled)));
        match &settled {
            Ok(()) => assert!(holds, "P3: a stale fetch was obeyed: {fetch:?}"),
            Err(StoreError::LeaseLost(_)) => witness.book().saw("stale fetch refused".to_owned()),
            Err(_) => {}
        }
        witness.observe().await;
        settled
    }
}

/// A lease that is the task's is not refused.
fn refused_rightly(done: &Result<(), StoreError>, held: bool, lease: &Lease) {
    let refused = matches!(done, Err(StoreError::LeaseLost(_)));
    assert!(
        !refused || !held,
        "P10: a good lease was refused: {lease:?}"
    );
}

#[async_trait]
impl WorkerStore for SeenStore {
    async fn lease_fetches(
        &self,
        request: FetchRequest,
    ) -> Result<Vec<ReferenceFetch>, StoreError> {
        let call = self.take_fetches_now(request);
        self.way.there_and_back(call).await
    }

    async fn complete_fetch(
        &self,
        fetch: &ReferenceFetch,
        fetched: FetchReport,
    ) -> Result<(), StoreError> {
        let call = self.settle_fetch_now(fetch, fetched);
        self.way.there_and_back(call).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let call = self.inner.work.charge_references(task, bytes);
        self.way.there_and_back(call).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        let asked_ms = self.way.witness.clock.steady_ms();
        let call = self.claim_now(request, asked_ms);
        self.way.there_and_back(call).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        let call = self.inner.work.has_claimable(request);
        self.way.there_and_back(call).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: LeaseRenewal,
    ) -> Result<(), StoreError> {
        assert_eq!(lease_ms, LEASE_MS);
        let asked_ms = self.way.witness.clock.steady_ms();
        let call = self.renew_now(lease, renewal, asked_ms);
        self.way.there_and_back(call).await
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let call = self.inner.work.put_preview(lease, preview);
        self.way.there_and_back(call).await
    }

    async fn find_lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let call = async {
            let lost = self.inner.work.find_lost(leases).await;
            for (place, how) in lost.as_deref().unwrap_or_default() {
                let lease = &leases[*place];
                assert!(
                    !self.way.witness.book().holds(lease),
                    "P10: a live lease was called lost, {how}: {lease:?}"
                );
            }
            lost
        };
        self.way.there_and_back(call).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: RunOutcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        assert_eq!(retention_ms, RETENTION_MS);
        let call = self.finish_now(lease, outcome);
        self.way.there_and_back(call).await
    }

    async fn release(&self, lease: &Lease, attempt: ReleasedAttempt) -> Result<(), StoreError> {
        let call = self.release_now(lease, attempt);
        self.way.there_and_back(call).await
    }

    fn unclean_starts(&self) -> Option<u64> {
        self.inner.work.unclean_starts()
    }

    async fn confirm_start(&self) -> Result<(), StoreError> {
        let call = self.inner.work.confirm_start();
        self.way.there_and_back(call).await
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        let real = self.inner.work.work_hints();
        self.way.witness.hint(Counter::Work, real)
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        let real = self.inner.work.withdrawals();
        self.way.witness.hint(Counter::Withdrawals, real)
    }
}

#[async_trait]
impl PauseStore for SeenStore {
    async fn pauses(&self) -> Result<Pauses, StoreError> {
        self.way.there_and_back(self.inner.pauses.pauses()).await
    }

    async fn pause(&self, pause: Pause) -> Result<(), StoreError> {
        self.way
            .there_and_back(self.inner.pauses.pause(pause))
            .await
    }

    async fn resume(&self, model: Option<&str>, now_ms: UnixMs) -> Result<bool, StoreError> {
        let call = self.inner.pauses.resume(model, now_ms);
        self.way.there_and_back(call).await
    }
}
