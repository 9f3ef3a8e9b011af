//! A worker, one effect at a time: the order of effects is that of `kinora-worker`'s `run`,
//! `references`, `publish`, `finish` and `sweep`, whose timers and engine are left out. Between
//! any two effects anything else may happen.

use bytes::Bytes;
use kinora_blobs::{BlobError, BlobStore};
use kinora_contract::{Artifact, Failure, FailureCode, Phase, State, StoredFile, Task};
use kinora_store::{Claim, ClaimRequest, Lease, LeaseLost, Renewed, StoreError, SweepRequest, reference_keys};

use crate::book::Cause;
use crate::world::{ATTEMPTS_MAX, LEASE_MS, RETENTION_MS, TOMBSTONE_MS, World};

const SLOTS: usize = 2;
/// As `kinora-worker`'s.
const PUT_TRIES: u32 = 4;

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
    progress: u8,
    tries: u32,
    stored: Vec<StoredFile>,
}

/// What comes next.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Gather,
    Record,
    /// One of the three files, in the order of publishing.
    Publish,
    Finish(Result<Artifact, Failure>),
}

impl Stage {
    const fn name(&self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Record => "record",
            Self::Publish => "publish",
            Self::Finish(Ok(_)) => "finish",
            Self::Finish(Err(_)) => "finish as failed",
        }
    }
}

/// What became of a step.
enum Next {
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
        for Claim { task, lease } in claims {
            assert!(self.book.holds(&lease), "P3: a claim is not what the store knows: {lease:?}");
            self.workers[k].runs.push(Run {
                progress: task.progress,
                stage: Stage::Gather,
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
        self.trace.result(&format!("{} {}", run.lease.task, run.stage.name()));
        let next = match &run.stage {
            Stage::Gather => self.gather_step(run).await,
            Stage::Record => self.record_step(run).await,
            Stage::Publish => self.publish_step(run).await,
            Stage::Finish(_) => self.finish_step(run).await,
        };
        if let Next::Goes(run) = next {
            self.workers[k].runs.insert(at, *run);
        }
    }

    /// The heartbeat of worker `k`: every run whose lease is lost is given up.
    pub(crate) async fn heartbeat(&mut self, k: usize) {
        for run in std::mem::take(&mut self.workers[k].runs) {
            let next = match run.stage {
                // Nobody watches a run that only has its outcome to write.
                Stage::Finish(_) => Next::Goes(Box::new(run)),
                _ => self.renew(run).await,
            };
            if let Next::Goes(run) = next {
                self.workers[k].runs.push(*run);
            }
        }
    }

    async fn renew(&mut self, run: Run) -> Next {
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
        assert!(!self.book.holds(&run.lease), "P10: a live lease was called lost, {how}: {run:?}");
        self.withdraw(&run.lease).await;
        Next::Ended
    }

    /// Removes what the run may have published, as far as that works now.
    async fn withdraw(&mut self, lease: &Lease) {
        let blobs = self.service().blobs.clone();
        remove(&*blobs, &lease.file_keys()).await;
        self.observe().await;
    }

    async fn gather_step(&mut self, mut run: Run) -> Next {
        run.stage = match self.gather(&run.task).await {
            Ok(()) => Stage::Record,
            Err(failure) => Stage::Finish(Err(failure)),
        };
        Next::Goes(Box::new(run))
    }

    /// As `kinora-worker`'s `References::gather`, with hosts that nearly always answer.
    pub(crate) async fn gather(&mut self, task: &Task) -> Result<(), Failure> {
        let (tasks, blobs) = (self.service().tasks.clone(), self.service().blobs.clone());
        let ours = |_| -> Failure { FailureCode::StorageFailed.into() };
        let ours_too = |_| -> Failure { FailureCode::StorageFailed.into() };
        let draft = match task.spec.final_of {
            Some(draft) => tasks.get(&task.project, draft).await.map_err(ours)?,
            None => None,
        };
        let drafts = draft.map_or_else(Vec::new, |view| reference_keys(&view.task));
        let own = reference_keys(task);
        let mut missing = Vec::new();
        for (index, key) in own.iter().enumerate() {
            let mut present = blobs.head(key).await.map_err(ours_too)?.is_some();
            if let Some(draft) = drafts.get(index).filter(|_| !present) {
                present = blobs.head(draft).await.map_err(ours_too)?.is_some();
            }
            if !present {
                missing.push(key);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut fetched: Result<(), Failure> = Ok(());
        for key in missing {
            if self.rng.percent(3) {
                fetched = Err(FailureCode::ReferenceUnreachable.into());
                break;
            }
            let ended = self.book.phase(task.id).is_none_or(Phase::is_terminal);
            match self.put(key, ended).await {
                Ok(_) | Err(BlobError::Exists(_)) => {}
                Err(_) => fetched = Err(FailureCode::StorageFailed.into()),
            }
        }
        let unfinished = tasks.get_of_any_project(task.id).await.map(|found| {
            found.is_some_and(|view| !view.task.state.phase().is_terminal())
        });
        if fetched.is_err() || !*unfinished.as_ref().unwrap_or(&true) {
            remove(&*blobs, &own).await;
        }
        fetched?;
        if unfinished.map_err(ours)? { Ok(()) } else { Err(FailureCode::StorageFailed.into()) }
    }

    /// Puts a small file; `late` when whoever asked for it is not wanted any more.
    async fn put(&mut self, key: &str, late: bool) -> Result<StoredFile, BlobError> {
        if late {
            self.book.late.insert(key.to_owned());
        }
        let bytes: Bytes = (0..16 + self.rng.below(200)).map(|_| self.rng.next() as u8).collect();
        let blobs = self.service().blobs.clone();
        if !key.ends_with(".mp4") {
            return blobs.put_bytes(key, bytes).await;
        }
        let staged = blobs.staging_dir().join(key.replace('/', "-"));
        // A second try finds its file, unless the first one was done after all.
        if !staged.exists() {
            std::fs::write(&staged, &bytes).unwrap();
        }
        let put = blobs.put_file(key, &staged).await;
        if put.is_ok() {
            assert!(!staged.exists(), "P4: a published file stays behind");
        }
        put
    }

    async fn record_step(&mut self, mut run: Run) -> Next {
        run.progress = (run.progress + 1 + self.rng.below(60) as u8).min(99);
        if run.progress >= 60 {
            run.stage = Stage::Publish;
        }
        self.renew(run).await
    }

    async fn publish_step(&mut self, mut run: Run) -> Next {
        let [video, thumbnail, spritesheet] = run.lease.file_keys();
        let key = [thumbnail, spritesheet, video][run.stored.len()].clone();
        let late = !self.book.holds(&run.lease);
        run.tries += 1;
        match self.put(&key, late).await {
            Ok(stored) => {
                run.tries = 0;
                run.stored.push(stored);
                if let [thumbnail, spritesheet, video] = &run.stored[..] {
                    let files = [video, thumbnail, spritesheet].map(Clone::clone);
                    run.stage = Stage::Finish(Ok(artifact(files)));
                }
            }
            Err(BlobError::Unavailable(_)) if run.tries < PUT_TRIES => {}
            Err(_) => run.stage = Stage::Finish(Err(FailureCode::StorageFailed.into())),
        }
        self.observe().await;
        Next::Goes(Box::new(run))
    }

    async fn finish_step(&mut self, run: Run) -> Next {
        let Stage::Finish(outcome) = &run.stage else { return Next::Ended };
        if outcome.is_err() {
            self.withdraw(&run.lease).await;
        }
        let now_ms = self.now_ms();
        let tasks = self.service().tasks.clone();
        let held = self.book.holds(&run.lease);
        let done = tasks.finish(&run.lease, outcome.clone(), now_ms, now_ms + RETENTION_MS).await;
        self.trace.result(&told(&done));
        self.book.note(Cause::Finished {
            lease: run.lease.clone(),
            outcome: outcome.clone(),
            told: done.is_ok(),
        });
        self.observe().await;
        match done {
            Ok(()) => Next::Ended,
            Err(StoreError::LeaseLost(_)) => {
                assert!(!held, "P10: a good lease was refused: {run:?}");
                let Ok(found) = tasks.get_of_any_project(run.lease.task).await else {
                    return Next::Goes(Box::new(run));
                };
                let stands = match (found.map(|view| view.task.state.clone()), outcome) {
                    (Some(State::Completed(stored)), Ok(made)) => stored.video.key == made.video.key,
                    _ => false,
                };
                if !stands {
                    self.withdraw(&run.lease).await;
                }
                Next::Ended
            }
            Err(_) => Next::Goes(Box::new(run)),
        }
    }

    /// The engine of one run of worker `k` fails.
    pub(crate) fn fail(&mut self, k: usize) {
        let at = self.rng.below(self.workers[k].runs.len() as u64) as usize;
        let run = &mut self.workers[k].runs[at];
        if !matches!(run.stage, Stage::Finish(_)) {
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
            self.withdraw(&run.lease).await;
            let tasks = self.service().tasks.clone();
            let done = tasks.release(&run.lease).await;
            self.trace.result(&told(&done));
            self.book.note(Cause::Released {
                lease: run.lease,
                told: done.is_ok(),
            });
            self.observe().await;
        }
    }

    /// One sweep, by whichever worker.
    pub(crate) async fn sweep(&mut self) {
        let now_ms = self.now_ms();
        let tasks = self.service().tasks.clone();
        let swept = tasks.sweep(sweep_at(now_ms)).await;
        self.trace.result(&told(&swept));
        self.book.note(Cause::Swept {
            now_ms,
            told: swept.is_ok(),
        });
        self.observe().await;
        let Ok(swept) = swept else { return };
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

    /// Fetches the references of waiting tasks ahead, as `kinora-worker`'s `prefetch`.
    pub(crate) async fn prefetch(&mut self) {
        let tasks = self.service().tasks.clone();
        let found = tasks.waiting_with_references(0, 2).await.unwrap_or_default();
        for (_, task) in found {
            let Err(failure) = self.gather(&task).await else { continue };
            if failure.code == FailureCode::StorageFailed.as_str() {
                continue;
            }
            let now_ms = self.now_ms();
            self.book.note(Cause::Cancelled {
                task: task.id,
                failure: failure.clone(),
            });
            let end_ms = now_ms + RETENTION_MS;
            let _ = tasks.cancel(&task.project, task.id, failure, now_ms, end_ms).await;
            self.observe().await;
        }
        self.observe().await;
    }
}

pub(crate) const fn sweep_at(now_ms: u64) -> SweepRequest {
    SweepRequest {
        now_ms,
        lease_ahead_max_ms: 2 * LEASE_MS,
        attempts_max: ATTEMPTS_MAX,
        retention_ms: RETENTION_MS,
        tombstone_ms: TOMBSTONE_MS,
        batch: 500,
    }
}

async fn remove(blobs: &dyn BlobStore, keys: &[String]) {
    for key in keys {
        // What stays was noted as garbage when the lease or the task ended.
        let _ = blobs.delete(key).await;
    }
}

fn artifact([video, thumbnail, spritesheet]: [StoredFile; 3]) -> Artifact {
    Artifact {
        video,
        thumbnail,
        spritesheet,
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 1280,
        height: 720,
        has_audio: true,
    }
}

fn told<T: std::fmt::Debug, E: std::fmt::Display>(done: &Result<T, E>) -> String {
    match done {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.to_string(),
    }
}
