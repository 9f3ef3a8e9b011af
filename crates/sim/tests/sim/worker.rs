//! Workers: what each holds in its memory, how it claims, keeps its leases, fetches and stops. The
//! order of effects is that of `kinora-worker`'s `claim`, `fetching`, `heartbeat` and `run`.

use kinora_blobs::BlobStore;
use kinora_contract::{Artifact, Clock, Failure, FailureCode, Phase, StoredFile, Task};
use kinora_store::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Renewal,
    StoreError,
};

use crate::book::Cause;
use crate::clocks::WrongClock;
use crate::steps::Ungathered;
use crate::world::{ATTEMPTS_MAX, LEASE_MS, RETENTION_MS, World};

const SLOTS: usize = 2;
/// Tasks whose references are fetched at a time, and of one project.
const FETCHES: usize = 4;
const PROJECT_FETCHES: usize = 3;

/// What a worker holds in its memory.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its own, which may be wrong.
    pub(crate) clock: WrongClock,
    pub(crate) runs: Vec<Run>,
    pub(crate) hung: bool,
}

impl Worker {
    pub(crate) const fn at(clock: WrongClock) -> Self {
        Self {
            clock,
            runs: Vec::new(),
            hung: false,
        }
    }

    /// As its process's death does.
    pub(crate) fn forget(&mut self) {
        self.runs.clear();
        self.hung = false;
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
    /// Its lease ends no sooner, by the worker's own clock.
    pub(crate) until_ms: u64,
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
        let steady_ms = self.clock.steady_ms();
        let asked_ms = self.workers[k].clock.steady_ms();
        let request = ClaimRequest {
            worker: format!("worker-{k}"),
            models: ["kinora-a1", "kinora-b1"].map(str::to_owned).into(),
            count: SLOTS - self.workers[k].runs.len(),
            slots: SLOTS,
            project_slots_max: 0,
            attempts_max: ATTEMPTS_MAX,
            lease_ms: LEASE_MS,
        };
        let claims = self.service().seen.work.claim(request).await;
        self.trace.result(&told(&claims.as_ref().map(Vec::len)));
        let claims = claims.unwrap_or_default();
        self.book.note(Cause::Claimed {
            worker: k,
            leases: claims.iter().map(|claim| claim.lease.clone()).collect(),
            steady_ms,
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
                until_ms: asked_ms + LEASE_MS,
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
            Stage::Record => self.record_step(k, run).await,
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
                false => self.renew(k, run).await,
            };
            if let Next::Goes(run) = next {
                self.workers[k].runs.push(*run);
            }
        }
    }

    pub(crate) async fn renew(&mut self, k: usize, mut run: Run) -> Next {
        let work = self.service().seen.work.clone();
        let lost = work.lost(std::slice::from_ref(&run.lease)).await;
        if let Some((_, how)) = lost.unwrap_or_default().pop() {
            return self.give_up(run, how).await;
        }
        let asked_ms = self.workers[k].clock.steady_ms();
        self.is_not_deceived(&run, asked_ms);
        let until_ms = self.clock.steady_ms() + LEASE_MS;
        let renewal = Renewal {
            progress: run.progress,
            engine: Some("puppet/1".to_owned()),
            ..Renewal::default()
        };
        let done = work.renew(&run.lease, LEASE_MS, renewal).await;
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
            Ok(()) => run.until_ms = asked_ms + LEASE_MS,
            Err(StoreError::LeaseLost(how)) => {
                assert!(!held, "P10: a good lease was refused: {run:?}");
                return self.give_up(run, how).await;
            }
            // Another worker may have the task by now.
            Err(_) if run.until_ms <= asked_ms => {
                self.book.saw("lease ran out unrenewed".to_owned());
                run.stage = Stage::GiveBack;
            }
            Err(_) => {}
        }
        Next::Goes(Box::new(run))
    }

    /// However wrong a worker's own clock is, it believes in its lease no longer than the store does.
    fn is_not_deceived(&self, run: &Run, own_ms: u64) {
        let known = self.book.tasks.get(&run.lease.task);
        let known = known.filter(|known| known.is_held_by(&run.lease));
        let Some(held) = known.and_then(|known| known.held.as_ref()) else {
            return;
        };
        let now_ms = self.clock.steady_ms();
        let over = held.untils_ms.iter().any(|until_ms| *until_ms <= now_ms);
        assert!(
            !over || run.until_ms <= own_ms,
            "P10: a worker relies on a lease that is over: {run:?}"
        );
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
        let work = self.service().seen.work.clone();
        let done = work.release(&lease, attempt).await;
        self.trace.result(&told(&done));
        self.book.note(Cause::Released {
            lease,
            attempt,
            told: done.is_ok(),
        });
        self.observe().await;
        done
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
            lease_ms: LEASE_MS,
        };
        let work = self.service().seen.work.clone();
        let taken = work.take_fetches(request).await;
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
        let id = fetch.task.id;
        self.trace.result(&format!("references of {id}"));
        let fetched = match self.gather(&fetch.task).await {
            Ok(()) => Fetched::AtHand,
            Err(Ungathered::Ended) => return self.observe().await,
            Err(Ungathered::Ours) => Fetched::Back { pause_ms: 500 },
            Err(Ungathered::Failed(failure)) => {
                self.book.note(Cause::FetchFailed {
                    task: id,
                    failure: failure.clone(),
                });
                Fetched::Failed {
                    failure,
                    retention_ms: RETENTION_MS,
                }
            }
        };
        let holds = self.book.phase(id) == Some(Phase::Waiting)
            && self.fetch_tokens.get(&id) == Some(&fetch.token);
        let work = self.service().seen.work.clone();
        // One that cannot be settled now is taken again when its lease is over.
        let settled = work.settle_fetch(&fetch, fetched).await;
        self.trace.result(&told(&settled));
        match settled {
            Ok(()) => assert!(holds, "P3: a stale fetch was obeyed: {fetch:?}"),
            Err(StoreError::LeaseLost(_)) => self.book.saw("stale fetch refused".to_owned()),
            Err(_) => {}
        }
        self.observe().await;
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
