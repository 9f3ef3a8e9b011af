//! The stages of one run, one effect at a time: the order of effects is that of `kinora-worker`'s
//! `references`, `publish` and `finish`, without timers, engine and encoder. Between any two
//! effects anything else may happen.

use bytes::Bytes;
use kinora_blobs::{BlobError, measure_bytes};
use kinora_contract::{Artifact, Failure, FailureCode, State, StoredFile, Task};
use kinora_store::{Attempt, StoreError, reference_keys};
use sha2::{Digest, Sha256};

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
        let (work, blobs) = (
            self.service().seen.work.clone(),
            self.service().blobs.clone(),
        );
        let draft = match task.spec.final_of {
            Some(draft) => work.task(draft).await.map_err(ours)?,
            None => None,
        };
        let drafts = draft.map_or_else(Vec::new, |draft| reference_keys(&draft));
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
            match self.put(&key, true).await {
                Ok(_) | Err(BlobError::Exists(_)) => {}
                Err(error) => return Err(ours(error)),
            }
        }
        Ok(())
    }

    async fn is_unfinished(&self, task: &Task) -> Result<bool, Ungathered> {
        let work = self.service().seen.work.clone();
        let found = work.task(task.id).await.map_err(ours)?;
        Ok(found.is_some_and(|task| !task.state.phase().is_terminal()))
    }

    /// Counts what the task's own references take.
    async fn charge(&self, task: &Task, own: &[String]) -> Result<(), Ungathered> {
        let (work, blobs) = (
            self.service().seen.work.clone(),
            self.service().blobs.clone(),
        );
        let mut bytes = 0;
        for key in own {
            bytes += blobs.head(key).await.map_err(ours)?.unwrap_or(0);
        }
        if !own.is_empty() {
            let charged = work.charge_references(task.id, bytes);
            charged.await.map_err(ours)?;
        }
        Ok(())
    }

    /// Puts the small file of this key, as a worker does: again while its answer is lost, and after the last
    /// try it asks whether the file is there.
    async fn put(&mut self, key: &str, is_last: bool) -> Result<StoredFile, BlobError> {
        let bytes = body_of(key);
        let file = measure_bytes(key, &bytes);
        let blobs = self.service().blobs.clone();
        let put = if key.ends_with(".mp4") {
            let staged = self.scratch().join(key.replace('/', "-"));
            std::fs::write(&staged, &bytes).unwrap();
            let put = blobs.put_file(&file, &staged).await;
            std::fs::remove_file(&staged).unwrap();
            put
        } else {
            blobs.put_bytes(key, bytes).await.map(drop)
        };
        match put {
            Err(BlobError::Unavailable(_)) if is_last && blobs.holds(&file).await? => Ok(file),
            put => put.map(|()| file),
        }
    }

    pub(crate) async fn record_step(&mut self, k: usize, mut run: Run) -> Next {
        run.progress = (run.progress + 1 + self.rng.below(60) as u8).min(99);
        if run.progress >= 60 {
            run.stage = Stage::Publish;
        }
        self.renew(k, run).await
    }

    pub(crate) async fn publish_step(&mut self, mut run: Run) -> Next {
        let [video, thumbnail, spritesheet] = run.lease.file_keys();
        let key = [thumbnail, spritesheet, video][run.stored.len()].clone();
        run.tries += 1;
        match self.put(&key, run.tries == PUT_TRIES).await {
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
            Err(error) => panic!("P4: {key} was not put: {error}"),
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
        let work = self.service().seen.work.clone();
        let held = self.book.holds(&run.lease);
        let done = work.finish(&run.lease, outcome.clone(), RETENTION_MS).await;
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
                let Ok(found) = work.task(run.lease.task).await else {
                    return Next::Goes(Box::new(run));
                };
                let stands = match (found.map(|task| task.state.clone()), outcome) {
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

/// The bytes of the file of this key: a second try puts the same.
fn body_of(key: &str) -> Bytes {
    let digest = Sha256::digest(key);
    digest.repeat(1 + usize::from(digest[0]) % 6).into()
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
