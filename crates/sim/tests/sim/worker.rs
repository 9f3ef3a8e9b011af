//! Workers: what each holds in its memory, how it claims, keeps its leases, sweeps and stops. The
//! order of effects is that of `kinora-worker`'s `claim`, `fetching`, `heartbeat`, `sweep` and `run`.

use kinora_blobs::BlobStore;
use kinora_contract::{Artifact, Failure, FailureCode, Phase, StoredFile, Task};
use kinora_store::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Renewed,
    StoreError, SweepRequest,
};

use crate::book::Cause;
use crate::steps::Ungathered;
use crate::world::{ATTEMPTS_MAX, LEASE_MS, RETENTION_MS, TOMBSTONE_MS, World};

const SLOTS: usize = 2;
/// Tasks whose references are fetched at a time, and of one project.
const FETCHES: usize = 4;
const PROJECT_FETCHES: usize = 3;

/// What a worker holds in its memory.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) runs: Vec<Run>,
    pub(crate) hung: bool,
}

impl Worker {
    /// As its process's death does.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_free(&self) -> bool {
        !self.hung && self.runs.len() < SLOTS
    }

    pub(crate) fn is_at_work(&self) -> bool {
        !self.hung && !self.runs.is_empty()
    }
}

/// A claimed task on its way.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) task: Task,
    pub(crate) lease: Lease,
    pub(crate) stage: Stage,
    pub(crate) progress: u8,
    pub(crate) tries: u32,
    pub(crate) stored: Vec<StoredFile>,
}

/// What comes next.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Prepare,
    Record,
    /// One of the three files, in the order of publishing.
    Publish,
    Finish(Result<Artifact, Failure>),
    /// The service was at fault: the task goes back to the queue.
    GiveBack,
}

impl Stage {
    const fn name(&self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Record => "record",
            Self::Publish => "publish",
            Self::Finish(Ok(_)) => "finish",
            Self::Finish(Err(_)) => "finish as failed",
            Self::GiveBack => "give back",
        }
    }

    /// Whether only the end of the run has to be written: nobody watches it any more.
    const fn is_last(&self) -> bool {
        matches!(self, Self::Finish(_) | Self::GiveBack)
    }
}

/// What became of a step.
pub(crate) enum Next {
    Goes(Box<Run>),
    Ended,
}

impl World {
    /// Worker `k` asks for as many tasks as it has free slots.
    pub(crate) async fn claim(&mut self, k: usize) {
        let now_ms = self.now_ms();
        let request = ClaimRequest {
            worker: format!("worker-{k}"),
            models: ["kinora-a1", "kinora-b1"].map(str::to_owned).into(),
            count: SLOTS - self.workers[k].runs.len(),
            slots: SLOTS,
            project_slots_max: 0,
            now_ms,
            lease_ms: LEASE_MS,
        };
        let claims = self.service().tasks.claim(request).await;
        self.trace.result(&told(&claims.as_ref().map(Vec::len)));
        let claims = claims.unwrap_or_default();
        self.book.note(Cause::Claimed {
            leases: claims.iter().map(|claim| claim.lease.clone()).collect(),
            now_ms,
        });
        self.observe().await;
        for Claim { task, lease, .. } in claims {
            assert!(
                self.book.holds(&lease),
                "P3: a claim is not what the store knows: {lease:?}"
            );
            self.workers[k].runs.push(Run {
                progress: 0,
                stage: Stage::Prepare,
                tries: 0,
                stored: Vec::new(),
                task,
                lease,
            });
        }
    }

    /// One effect of one run of worker `k`.
    pub(crate) async fn step(&mut self, k: usize) {
        let at = self.rng.below(self.workers[k].runs.len() as u64) as usize;
        let run = self.workers[k].runs.remove(at);
        self.trace
            .result(&format!("{} {}", run.lease.task, run.stage.name()));
        let next = match &run.stage {
            Stage::Prepare => self.prepare_step(run).await,
            Stage::Record => self.record_step(run).await,
            Stage::Publish => self.publish_step(run).await,
            Stage::Finish(_) => self.finish_step(run).await,
            Stage::GiveBack => self.give_back_step(run).await,
        };
        if let Next::Goes(run) = next {
            self.workers[k].runs.insert(at, *run);
        }
    }

    /// The heartbeat of worker `k`: every run whose lease is lost is given up.
    pub(crate) async fn heartbeat(&mut self, k: usize) {
        for run in std::mem::take(&mut self.workers[k].runs) {
            let next = match run.stage.is_last() {
                true => Next::Goes(Box::new(run)),
                false => self.renew(run).await,
            };
            if let Next::Goes(run) = next {
                self.workers[k].runs.push(*run);
            }
        }
    }

    pub(crate) async fn renew(&mut self, run: Run) -> Next {
        let tasks = self.service().tasks.clone();
        if let Err(StoreError::LeaseLost(how)) = tasks.check(&run.lease).await {
            return self.give_up(run, how).await;
        }
        let until_ms = self.now_ms() + LEASE_MS;
        let renewed = Renewed {
            progress: run.progress,
            engine: Some("puppet/1".to_owned()),
            until_ms,
            decided: None,
            kept: None,
            warnings: None,
            preview: None,
        };
        let done = tasks.renew(&run.lease, renewed).await;
        self.trace.result(&told(&done));
        let held = self.book.holds(&run.lease);
        self.book.note(Cause::Renewed {
            lease: run.lease.clone(),
            progress: run.progress,
            until_ms,
            told: done.is_ok(),
        });
        self.observe().await;
        match done {
            Err(StoreError::LeaseLost(how)) => {
                assert!(!held, "P10: a good lease was refused: {run:?}");
                self.give_up(run, how).await
            }
            _ => Next::Goes(Box::new(run)),
        }
    }

    async fn give_up(&mut self, run: Run, how: LeaseLost) -> Next {
        assert!(
            !self.book.holds(&run.lease),
            "P10: a live lease was called lost, {how}: {run:?}"
        );
        self.withdraw(&run.lease).await;
        Next::Ended
    }

    /// Removes what the run may have published, as far as that works now.
    pub(crate) async fn withdraw(&mut self, lease: &Lease) {
        let blobs = self.service().blobs.clone();
        remove(&*blobs, &lease.file_keys()).await;
        self.observe().await;
    }

    /// The engine of one run of worker `k` fails.
    pub(crate) fn fail(&mut self, k: usize) {
        let at = self.rng.below(self.workers[k].runs.len() as u64) as usize;
        let run = &mut self.workers[k].runs[at];
        if !run.stage.is_last() {
            run.stage = Stage::Finish(Err(FailureCode::GenerationFailed.into()));
        }
    }

    /// The process that the engine of one run of worker `k` is in comes to its end: another attempt
    /// is to be made, while there is one.
    pub(crate) async fn crash(&mut self, k: usize) {
        let at = self.rng.below(self.workers[k].runs.len() as u64) as usize;
        let run = &mut self.workers[k].runs[at];
        if run.stage.is_last() {
            return;
        }
        if run.task.attempt < ATTEMPTS_MAX {
            let run = self.workers[k].runs.remove(at);
            // What is not given back runs out.
            let _ = self.give_back(run.lease, Attempt::Counts).await;
        } else {
            run.stage = Stage::Finish(Err(FailureCode::GenerationFailed.into()));
        }
    }

    /// Worker `k` stops in order: it gives back what it runs.
    pub(crate) async fn release(&mut self, k: usize) {
        for run in std::mem::take(&mut self.workers[k].runs) {
            if let Stage::Finish(Ok(_)) = run.stage {
                // Its last try may have been written: its files stay, its lease runs out.
                continue;
            }
            let _ = self.give_back(run.lease, Attempt::Forgiven).await;
        }
    }

    pub(crate) async fn give_back(
        &mut self,
        lease: Lease,
        attempt: Attempt,
    ) -> Result<(), StoreError> {
        self.withdraw(&lease).await;
        let tasks = self.service().tasks.clone();
        let done = tasks.release(&lease, attempt).await;
        self.trace.result(&told(&done));
        self.book.note(Cause::Released {
            lease,
            attempt,
            told: done.is_ok(),
        });
        self.observe().await;
        done
    }

    /// One sweep, by whichever worker.
    pub(crate) async fn sweep(&mut self) {
        let now_ms = self.now_ms();
        let tasks = self.service().tasks.clone();
        let swept = tasks.sweep(sweep_at(now_ms)).await;
        self.trace.result(&told(&swept.as_ref().map(|swept| {
            (
                swept.requeued,
                swept.lost,
                swept.expired,
                swept.forgotten,
                swept.files.len(),
            )
        })));
        self.book.note(Cause::Swept {
            now_ms,
            told: swept.is_ok(),
        });
        self.observe().await;
        let Ok(mut swept) = swept else { return };
        // A store that was opened again names them in no fixed order; equal seeds shall live alike.
        swept.files.sort_unstable();
        let blobs = self.service().blobs.clone();
        let mut gone = Vec::new();
        for key in swept.files {
            if blobs.delete(&key).await.is_ok() {
                gone.push(key);
            }
        }
        if !gone.is_empty() {
            // What is not crossed out now comes up again.
            let _ = tasks.forget_files(&gone).await;
        }
        self.observe().await;
    }

    /// One effect of `kinora-worker`'s `fetching`: tasks are taken, or the references of one are brought.
    pub(crate) async fn fetch(&mut self) {
        if self.fetches.is_empty() || self.rng.percent(40) {
            self.take_fetches().await;
        } else {
            let at = self.rng.below(self.fetches.len() as u64) as usize;
            let fetch = self.fetches.remove(at);
            self.bring(fetch).await;
        }
    }

    /// Takes as many tasks as there are free places.
    pub(crate) async fn take_fetches(&mut self) {
        let request = FetchRequest {
            models: ["kinora-a1", "kinora-b1"].map(str::to_owned).into(),
            count: FETCHES.saturating_sub(self.fetches.len()),
            project_max: PROJECT_FETCHES,
            now_ms: self.now_ms(),
            lease_ms: LEASE_MS,
        };
        let tasks = self.service().tasks.clone();
        let taken = tasks.take_fetches(request).await;
        self.trace.result(&told(&taken.as_ref().map(Vec::len)));
        for fetch in taken.unwrap_or_default() {
            let earlier = self.fetch_tokens.insert(fetch.task.id, fetch.token);
            assert!(
                earlier.is_none_or(|token| token < fetch.token),
                "P3: the token of a fetch was given out again: {fetch:?}"
            );
            self.fetches.push(fetch);
        }
        self.observe().await;
    }

    /// Brings the references of one task, and settles its fetch; its lease may have run out meanwhile.
    pub(crate) async fn bring(&mut self, fetch: Fetch) {
        let (id, now_ms) = (fetch.task.id, self.now_ms());
        self.trace.result(&format!("references of {id}"));
        let fetched = match self.gather(&fetch.task).await {
            Ok(()) => Fetched::AtHand,
            Err(Ungathered::Ended) => return self.observe().await,
            Err(Ungathered::Ours) => Fetched::Back {
                not_before_ms: now_ms + 500,
            },
            Err(Ungathered::Failed(failure)) => {
                self.book.note(Cause::FetchFailed {
                    task: id,
                    failure: failure.clone(),
                });
                Fetched::Failed {
                    failure,
                    now_ms,
                    expires_at_ms: now_ms + RETENTION_MS,
                }
            }
        };
        let holds = self.book.phase(id) == Some(Phase::Waiting)
            && self.fetch_tokens.get(&id) == Some(&fetch.token);
        let tasks = self.service().tasks.clone();
        // One that cannot be settled now is taken again when its lease is over.
        let settled = tasks.settle_fetch(&fetch, fetched).await;
        self.trace.result(&told(&settled));
        match settled {
            Ok(()) => assert!(holds, "P3: a stale fetch was obeyed: {fetch:?}"),
            Err(StoreError::LeaseLost(_)) => self.book.saw("stale fetch refused".to_owned()),
            Err(_) => {}
        }
        self.observe().await;
    }
}

pub(crate) const fn sweep_at(now_ms: u64) -> SweepRequest {
    SweepRequest {
        now_ms,
        lease_ahead_max_ms: 2 * LEASE_MS,
        attempts_max: ATTEMPTS_MAX,
        spares_leases: false,
        waiting_ms_max: None,
        retention_ms: RETENTION_MS,
        tombstone_ms: TOMBSTONE_MS,
        batch: 500,
    }
}

pub(crate) async fn remove(blobs: &dyn BlobStore, keys: &[String]) {
    for key in keys {
        // What stays was noted as garbage when the lease or the task ended.
        let _ = blobs.delete(key).await;
    }
}

pub(crate) fn told<T: std::fmt::Debug, E: std::fmt::Display>(done: &Result<T, E>) -> String {
    match done {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.to_string(),
    }
}
