//! The stages of one run, one effect at a time: the order of effects is that of `kinora-worker`'s
//! `references`, `publish` and `finish`, without timers, engine and encoder. Between any two
//! effects anything else may happen.

use bytes::Bytes;
use kinora_blobs::BlobError;
use kinora_contract::{Artifact, Failure, FailureCode, State, StoredFile, Task};
use kinora_store::{Attempt, StoreError, reference_keys};

use crate::book::Cause;
use crate::worker::{Next, Run, Stage, remove, told};
use crate::world::{RETENTION_MS, World};

/// As `kinora-worker`'s.
const PUT_TRIES: u32 = 4;

impl World {
    /// As `kinora-worker`'s `prepare`: a run fetches nothing.
    pub(crate) async fn prepare_step(&mut self, mut run: Run) -> Next {
        match self.missing(&run.task).await {
            Ok(missing) if missing.is_empty() => run.stage = Stage::Record,
            Ok(_) => {
                self.book.saw("references lost".to_owned());
                let _ = self.give_back(run.lease, Attempt::ReferencesLost).await;
                return Next::Ended;
            }
            Err(_) => run.stage = Stage::GiveBack,
        }
        Next::Goes(Box::new(run))
    }

    /// The keys of references that are not stored, neither for the task nor for its draft.
    async fn missing(&self, task: &Task) -> Result<Vec<String>, Ungathered> {
        let (tasks, blobs) = (self.service().tasks.clone(), self.service().blobs.clone());
        let draft = match task.spec.final_of {
            Some(draft) => tasks.get(&task.project, draft).await.map_err(ours)?,
            None => None,
        };
        let drafts = draft.map_or_else(Vec::new, |view| reference_keys(&view.task));
        let mut missing = Vec::new();
        for (index, key) in reference_keys(task).into_iter().enumerate() {
            let mut present = blobs.head(&key).await.map_err(ours)?.is_some();
            if let Some(draft) = drafts.get(index).filter(|_| !present) {
                present = blobs.head(draft).await.map_err(ours)?.is_some();
            }
            if !present {
                missing.push(key);
            }
        }
        Ok(missing)
    }

    /// As `kinora-worker`'s `References::gather`, with hosts that nearly always answer.
    pub(crate) async fn gather(&mut self, task: &Task) -> Result<(), Ungathered> {
        let blobs = self.service().blobs.clone();
        let own = reference_keys(task);
        let missing = self.missing(task).await?;
        if missing.is_empty() {
            return self.charge(task, &own).await;
        }
        let fetched = self.fetch_all(missing).await;
        let of_no_use = matches!(fetched, Err(Ungathered::Failed(_)));
        if of_no_use || !self.is_unfinished(task).await? {
            remove(&*blobs, &own).await;
        }
        fetched?;
        self.charge(task, &own).await?;
        match self.is_unfinished(task).await? {
            true => Ok(()),
            false => Err(Ungathered::Ended),
        }
    }

    async fn fetch_all(&mut self, keys: Vec<String>) -> Result<(), Ungathered> {
        for key in keys {
            if self.rng.percent(3) {
                let failure = FailureCode::ReferenceUnreachable.into();
                return Err(Ungathered::Failed(failure));
            }
            match self.put(&key).await {
                Ok(_) | Err(BlobError::Exists(_)) => {}
                Err(error) => return Err(ours(error)),
            }
        }
        Ok(())
    }

    async fn is_unfinished(&self, task: &Task) -> Result<bool, Ungathered> {
        let tasks = self.service().tasks.clone();
        let found = tasks.get_of_any_project(task.id).await.map_err(ours)?;
        Ok(found.is_some_and(|view| !view.task.state.phase().is_terminal()))
    }

    /// Counts what the task's own references take.
    async fn charge(&self, task: &Task, own: &[String]) -> Result<(), Ungathered> {
        let (tasks, blobs) = (self.service().tasks.clone(), self.service().blobs.clone());
        let mut bytes = 0;
        for key in own {
            bytes += blobs.head(key).await.map_err(ours)?.unwrap_or(0);
        }
        if !own.is_empty() {
            let charged = tasks.charge_references(task.id, bytes);
            charged.await.map_err(ours)?;
        }
        Ok(())
    }

    /// Puts a small file.
    async fn put(&mut self, key: &str) -> Result<StoredFile, BlobError> {
        let bytes: Bytes = (0..16 + self.rng.below(200))
            .map(|_| self.rng.next() as u8)
            .collect();
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

    pub(crate) async fn record_step(&mut self, mut run: Run) -> Next {
        run.progress = (run.progress + 1 + self.rng.below(60) as u8).min(99);
        if run.progress >= 60 {
            run.stage = Stage::Publish;
        }
        self.renew(run).await
    }

    pub(crate) async fn publish_step(&mut self, mut run: Run) -> Next {
        let [video, thumbnail, spritesheet] = run.lease.file_keys();
        let key = [thumbnail, spritesheet, video][run.stored.len()].clone();
        run.tries += 1;
        match self.put(&key).await {
            Ok(stored) => {
                run.tries = 0;
                run.stored.push(stored);
                if let [thumbnail, spritesheet, video] = &run.stored[..] {
                    let files = [video, thumbnail, spritesheet].map(Clone::clone);
                    run.stage = Stage::Finish(Ok(artifact(files)));
                }
            }
            Err(BlobError::Unavailable(_)) if run.tries < PUT_TRIES => {}
            Err(BlobError::Unavailable(_)) => run.stage = Stage::GiveBack,
            Err(_) => run.stage = Stage::Finish(Err(FailureCode::StorageFailed.into())),
        }
        self.observe().await;
        Next::Goes(Box::new(run))
    }

    /// As `kinora-worker`'s `give_back`: again and again, until the store takes it or the lease is lost.
    pub(crate) async fn give_back_step(&mut self, run: Run) -> Next {
        self.book
            .saw("given back for a fault of the service".to_owned());
        match self.give_back(run.lease.clone(), Attempt::Forgiven).await {
            Err(StoreError::Unavailable(_)) => Next::Goes(Box::new(run)),
            _ => Next::Ended,
        }
    }

    pub(crate) async fn finish_step(&mut self, run: Run) -> Next {
        let Stage::Finish(outcome) = &run.stage else {
            return Next::Ended;
        };
        if outcome.is_err() {
            self.withdraw(&run.lease).await;
        }
        let now_ms = self.now_ms();
        let tasks = self.service().tasks.clone();
        let held = self.book.holds(&run.lease);
        let done = tasks
            .finish(&run.lease, outcome.clone(), now_ms, now_ms + RETENTION_MS)
            .await;
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
                    (Some(State::Completed(stored)), Ok(made)) => {
                        stored.video.key == made.video.key
                    }
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
}

/// Why the references of a task are not at hand.
#[derive(Debug)]
pub(crate) enum Ungathered {
    /// One of them cannot be had: the task fails.
    Failed(Failure),
    /// The service is at fault: the task waits.
    Ours,
    /// The task has ended meanwhile.
    Ended,
}

fn ours<E>(_cause: E) -> Ungathered {
    Ungathered::Ours
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
