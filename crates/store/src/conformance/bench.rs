//! Shorthand for the most frequent steps of the cases.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::lifecycle::CallOff;
use kinora_contract::{Clock, Task};
use tokio::sync::watch;

use super::Site;
use super::fixtures::{
    LEASE_MS, MODELS, RETENTION_MS, artifact, cancelled, claiming, fetching, id, sweep_at, task,
};
use crate::{
    CancelOutcome, Chore, ChoreKind, ChoreRequest, ChoreWork, ClaimedTask, FetchReport,
    InsertOutcome, Lease, LeaseRenewal, NewTask, ReferenceFetch, StoreError, SweepReport,
    SweepRequest,
};

/// Only a failing case waits this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of chore leases.
pub const CHORE_LEASE_MS: u64 = 60_000;

/// Shorthand for the cases.
#[allow(async_fn_in_trait, reason = "for the cases alone")]
pub trait Bench {
    /// Lets time pass, by both clocks, until the wall clock shows `now_ms`, which is not in the
    /// past.
    fn pass_until(&self, now_ms: u64);
    /// Inserts a task that must be accepted.
    async fn submit(&self, number: u64, project: &str) -> Arc<Task>;
    /// Inserts tasks that must be accepted.
    async fn submit_all(&self, tasks: impl IntoIterator<Item = NewTask>);
    /// Claims up to `count` tasks of any model.
    async fn claim(&self, count: usize) -> Vec<ClaimedTask>;
    /// Claims the one task that must exist.
    async fn claim_one(&self) -> ClaimedTask;
    /// Takes fetches of any model, up to two of one project.
    async fn take(&self, count: usize) -> Vec<ReferenceFetch>;
    /// Fetches every missing reference.
    async fn fetch_all(&self);
    /// The task, which must exist.
    async fn task(&self, project: &str, number: u64) -> Arc<Task>;
    /// How many tasks are expected to start before this one.
    async fn position(&self, number: u64) -> Option<u64>;
    /// Extends a lease by [`LEASE_MS`] from now.
    async fn renew(&self, lease: &Lease, renewal: LeaseRenewal) -> Result<(), StoreError>;
    /// Whether a lease holds.
    async fn check(&self, lease: &Lease) -> Result<(), StoreError>;
    /// Finishes successfully, with files named after the token.
    async fn complete(&self, claim: &ClaimedTask) -> Result<(), StoreError>;
    /// Cancels a task that must exist and be unfinished, and keeps it for `retention_ms`.
    async fn cancel(&self, project: &str, number: u64, retention_ms: u64) -> Arc<Task>;
    /// Lets time pass until `now_ms`, and sweeps as usual.
    async fn sweep(&self, now_ms: u64) -> SweepReport;
    /// Lets time pass until the request's current time, if it has one, and sweeps.
    async fn sweep_by(&self, request: SweepRequest) -> SweepReport;
    /// Leases the due chores of this kind, at most 100.
    async fn take_chores(&self, kind: ChoreKind) -> Vec<Chore>;
    /// The files to remove, in due order; they stay due.
    async fn files_due(&self) -> Vec<String>;
    /// The same, and removes them for good.
    async fn remove_files(&self) -> Vec<String>;
    /// The upstream jobs to cancel, oldest task first; they stay due.
    async fn call_offs_due(&self) -> Vec<CallOff>;
}

impl Bench for Site {
    fn pass_until(&self, now_ms: u64) {
        let by_ms = now_ms.checked_sub(self.clock.now_ms());
        self.clock.advance(by_ms.expect("time does not run back"));
    }

    async fn submit(&self, number: u64, project: &str) -> Arc<Task> {
        match self.tasks.insert(task(number, project)).await.unwrap() {
            InsertOutcome::Inserted(task) => task,
            other => panic!("not inserted: {other:?}"),
        }
    }

    async fn submit_all(&self, tasks: impl IntoIterator<Item = NewTask>) {
        for new in tasks {
            let inserted = self.tasks.insert(new).await.unwrap();
            assert!(
                matches!(inserted, InsertOutcome::Inserted(_)),
                "{inserted:?}"
            );
        }
    }

    async fn claim(&self, count: usize) -> Vec<ClaimedTask> {
        self.work.claim(claiming(count)).await.unwrap()
    }

    async fn claim_one(&self) -> ClaimedTask {
        self.claim(1).await.pop().expect("a task to claim")
    }

    async fn take(&self, count: usize) -> Vec<ReferenceFetch> {
        self.work.lease_fetches(fetching(count)).await.unwrap()
    }

    async fn fetch_all(&self) {
        loop {
            let fetches = self.take(100).await;
            if fetches.is_empty() {
                return;
            }
            for fetch in fetches {
                let settled = self.work.complete_fetch(&fetch, FetchReport::AtHand);
                settled.await.unwrap();
            }
        }
    }

    async fn task(&self, project: &str, number: u64) -> Arc<Task> {
        let found = self.tasks.get(project, id(number)).await.unwrap();
        found.expect("the task is there")
    }

    async fn position(&self, number: u64) -> Option<u64> {
        let positions = self.tasks.positions(&[id(number)]).await.unwrap();
        let [position] = positions[..] else {
            panic!("{positions:?}")
        };
        position
    }

    async fn renew(&self, lease: &Lease, renewal: LeaseRenewal) -> Result<(), StoreError> {
        self.work.renew(lease, LEASE_MS, renewal).await
    }

    async fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        let lost = self.work.find_lost(std::slice::from_ref(lease)).await?;
        match lost[..] {
            [] => Ok(()),
            [(0, how)] => Err(StoreError::LeaseLost(how)),
            _ => panic!("{lost:?}"),
        }
    }

    async fn complete(&self, claim: &ClaimedTask) -> Result<(), StoreError> {
        let result = artifact(&format!("token-{}", claim.lease.token));
        let finish = self.work.finish(&claim.lease, Ok(result), RETENTION_MS);
        finish.await
    }

    async fn cancel(&self, project: &str, number: u64, retention_ms: u64) -> Arc<Task> {
        let cancel = self
            .tasks
            .cancel(project, id(number), cancelled(), retention_ms);
        match cancel.await.unwrap() {
            CancelOutcome::Cancelled(task) => task,
            other => panic!("not cancelled: {other:?}"),
        }
    }

    async fn sweep(&self, now_ms: u64) -> SweepReport {
        self.sweep_by(sweep_at(now_ms)).await
    }

    async fn sweep_by(&self, request: SweepRequest) -> SweepReport {
        if let Some(now_ms) = request.due_ms {
            self.pass_until(now_ms);
        }
        self.chores.sweep(request).await.unwrap()
    }

    async fn take_chores(&self, kind: ChoreKind) -> Vec<Chore> {
        let request = ChoreRequest {
            kind,
            count: 100,
            lease_ms: CHORE_LEASE_MS,
        };
        self.chores.lease_chores(request).await.unwrap()
    }

    async fn files_due(&self) -> Vec<String> {
        let chores = self.take_chores(ChoreKind::RemoveFile).await;
        let keys = keys(&chores);
        let back = chores.into_iter().map(|chore| chore.again(0)).collect();
        self.chores.complete_chores(back).await.unwrap();
        keys
    }

    async fn remove_files(&self) -> Vec<String> {
        let chores = self.take_chores(ChoreKind::RemoveFile).await;
        let keys = keys(&chores);
        let done = chores.into_iter().map(Chore::done).collect();
        self.chores.complete_chores(done).await.unwrap();
        keys
    }

    async fn call_offs_due(&self) -> Vec<CallOff> {
        let chores = self.take_chores(any_call_off()).await;
        let mut due: Vec<CallOff> = chores.iter().map(call_off).collect();
        due.sort_by_key(|call_off| call_off.task);
        let back = chores.into_iter().map(|chore| chore.again(0)).collect();
        self.chores.complete_chores(back).await.unwrap();
        due
    }
}

/// Chores of any model that cancel upstream jobs.
pub fn any_call_off() -> ChoreKind {
    ChoreKind::CallOff {
        models: MODELS.map(str::to_owned).into(),
    }
}

/// The files of chores that remove files.
pub fn keys(chores: &[Chore]) -> Vec<String> {
    let key = |chore: &Chore| match &chore.work {
        ChoreWork::RemoveFile(key) => key.clone(),
        other => panic!("not a file: {other:?}"),
    };
    chores.iter().map(key).collect()
}

/// The upstream job of a chore that cancels one.
pub fn call_off(chore: &Chore) -> CallOff {
    match &chore.work {
        ChoreWork::CallOff(call_off) => call_off.clone(),
        other => panic!("not a call-off: {other:?}"),
    }
}

/// Waits until a hint has moved. It may come from another process.
pub async fn heard(hints: &mut watch::Receiver<u64>, what: &str) {
    let moved = tokio::time::timeout(PATIENCE, hints.changed()).await;
    assert!(matches!(moved, Ok(Ok(()))), "not heard of {what}");
}

/// Whether a lease was lost.
pub const fn is_lost(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::LeaseLost(_)))
}
