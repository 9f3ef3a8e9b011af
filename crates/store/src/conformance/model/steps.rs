//! Each operation, done to the store and to the model, with the two answers compared.

use kinora_contract::{FailureCode, Inputs, Phase};

use super::super::fixtures::{LEASE_MS, MODELS, artifact, cancelled, id, spec, task};
use super::{BOUNDS, Fetching, Known, Model, RETENTION_MS};
use crate::{
    Attempt, Cancellation, ClaimRequest, FetchRequest, Fetched, Idempotency, Insertion, NewTask,
    Renewed, Stores, Swept,
};

/// A request for a clip of the model at this index, with so many reference images.
fn request(number: u64, project: &str, model: usize, images: usize) -> NewTask {
    let mut spec = spec(MODELS[model]);
    if images > 0 {
        spec.inputs = Inputs::References {
            images: vec!["https://example.org/i".to_owned(); images],
            audios: Vec::new(),
        };
    }
    NewTask {
        spec,
        bounds: BOUNDS,
        ..task(number, project)
    }
}

impl Known {
    /// A waiting task that was just inserted.
    const fn new(project: &'static str, model: usize, has_references: bool) -> Self {
        Self {
            project,
            model,
            phase: Phase::Waiting,
            attempt: 0,
            progress: 0,
            token: None,
            until_ms: 0,
            expires_at_ms: u64::MAX,
            key: None,
            kept: None,
            fetch: match has_references {
                true => Fetching::Wanted,
                false => Fetching::AtHand,
            },
        }
    }
}

impl Model {
    pub(super) async fn insert(
        &mut self,
        stores: &Stores,
        project: &'static str,
        model: usize,
        key: Option<u8>,
        images: usize,
    ) {
        let (number, now_ms) = (self.next, self.now_ms);
        self.next += 1;
        let expires_at_ms = now_ms + 50_000;
        let new = NewTask {
            now_ms,
            idempotency: key.map(|key| Idempotency {
                key: key.to_string(),
                fingerprint: [u8::try_from(model).unwrap(); 32],
                expires_at_ms,
            }),
            ..request(number, project, model, images)
        };
        let found = match &new.idempotency {
            Some(key) => stores.tasks.find_twin(project, key, now_ms).await.unwrap(),
            None => None,
        };
        let found = found.map(|view| view.task.id);
        let came = stores.tasks.insert(new).await.unwrap();
        let twin = self.tasks.iter_mut().find_map(|(number, known)| {
            let (held, model, until_ms) = known.key?;
            (known.project == project && Some(held) == key && until_ms > now_ms)
                .then_some((*number, model))
        });
        let same = twin.filter(|(_, other)| *other == model);
        assert_eq!(found, same.map(|(number, _)| id(number)));
        let unfinished = |known: &&Known| !known.phase.is_terminal();
        let waiting = self
            .tasks
            .values()
            .filter(|known| known.phase == Phase::Waiting)
            .count();
        let own = self.tasks.values().filter(|known| known.project == project);
        match (twin, came) {
            (Some((twin, same)), Insertion::Replayed(view)) => {
                assert_eq!((view.task.id, same), (id(twin), model));
            }
            (Some((_, other)), Insertion::KeyReused) => assert_ne!(other, model),
            // A lost lease puts a task back whatever the bound.
            // A place that was promised to another project is no place.
            (None, Insertion::QueueFull(_)) => {
                let others = self.promised.iter().any(|one| *one != project);
                assert!(waiting >= 6 || others);
                self.promised.insert(project);
            }
            (None, Insertion::ProjectFull(_)) => {
                assert!(waiting < 6 && own.filter(unfinished).count() == 4);
            }
            (None, Insertion::Inserted(view)) => {
                assert!(waiting < 6 && own.filter(unfinished).count() < 4);
                assert_eq!(view.task.id, id(number));
                let key = key.map(|key| (key, model, expires_at_ms));
                let known = Known {
                    key,
                    ..Known::new(project, model, images > 0)
                };
                self.tasks.insert(number, known);
            }
            (twin, came) => panic!("{came:?} with the twin {twin:?}"),
        }
    }

    pub(super) async fn claim(&mut self, stores: &Stores, count: usize, models: usize) {
        let served = |model: usize| models & (1 << model) != 0;
        let request = ClaimRequest {
            worker: "worker".to_owned(),
            models: (0..2)
                .filter(|m| served(*m))
                .map(|m| MODELS[m].to_owned())
                .collect(),
            count,
            slots: usize::MAX,
            project_slots_max: 0,
            now_ms: self.now_ms,
            lease_ms: LEASE_MS,
        };
        let mut claims = stores.tasks.claim(request).await.unwrap().into_iter();
        for _ in 0..count {
            let waiting = self
                .tasks
                .iter()
                .filter(|(_, known)| known.phase == Phase::Waiting);
            let next = waiting
                .filter(|(_, known)| served(known.model) && known.fetch == Fetching::AtHand)
                .min_by_key(|(number, known)| {
                    let turn = self.turns.get(known.project).copied().unwrap_or(0);
                    (turn, **number)
                })
                .map(|(number, _)| *number);
            let Some(number) = next else { break };
            let claim = claims.next().expect("a task to claim");
            assert_eq!(claim.task.id, id(number));
            let known = self.tasks.get_mut(&number).unwrap();
            assert_eq!(claim.kept, known.kept);
            known.phase = Phase::Running;
            known.attempt += 1;
            known.token = Some(claim.lease.token);
            known.until_ms = self.now_ms + LEASE_MS;
            let turn = self.turns.get(known.project).copied().unwrap_or(0);
            self.turn_now = turn.max(self.turn_now);
            let cost = claim.task.spec.cost();
            self.turns.insert(known.project, self.turn_now + cost);
            assert!(
                self.leases
                    .iter()
                    .all(|(_, lease)| lease.token < claim.lease.token)
            );
            self.leases.push((number, claim.lease));
        }
        assert!(claims.next().is_none());
    }

    pub(super) async fn renew(&mut self, stores: &Stores, lease: usize, progress: u8) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let until_ms = self.now_ms + LEASE_MS;
        let kept = progress
            .is_multiple_of(2)
            .then(|| format!("ticket {progress}"));
        let renewed = Renewed {
            progress,
            engine: None,
            until_ms,
            decided: None,
            kept: kept.clone(),
            warnings: None,
            preview: None,
        };
        let done = stores.tasks.renew(&lease, renewed).await;
        if let Some(known) = self.holder(task, &lease, &done) {
            known.progress = known.progress.max(progress.min(99));
            known.kept = kept.or(known.kept.take());
            known.until_ms = until_ms;
        }
    }

    pub(super) async fn release(&mut self, stores: &Stores, lease: usize, counts: bool) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let attempt = if counts {
            Attempt::Counts
        } else {
            Attempt::Forgiven
        };
        let done = stores.tasks.release(&lease, attempt).await;
        if let Some(known) = self.holder(task, &lease, &done) {
            known.phase = Phase::Waiting;
            known.token = None;
            known.attempt -= u32::from(!counts);
        }
    }

    /// Takes fetches, and settles them well, badly or not at all.
    pub(super) async fn fetch(&mut self, stores: &Stores, count: usize, how: Option<bool>) {
        let request = FetchRequest {
            models: MODELS.map(str::to_owned).into(),
            count,
            project_max: 2,
            now_ms: self.now_ms,
            lease_ms: LEASE_MS,
        };
        let fetches = stores.tasks.take_fetches(request).await.unwrap();
        for fetch in fetches {
            let known = self.tasks.iter_mut();
            let mut known = known.filter(|(number, _)| id(**number) == fetch.task.id);
            let (&number, known) = known.next().expect("a known task");
            let taken = matches!(known.fetch, Fetching::Taken(until_ms) if until_ms > self.now_ms);
            assert!(known.phase == Phase::Waiting && known.fetch != Fetching::AtHand && !taken);
            known.fetch = Fetching::Taken(self.now_ms + LEASE_MS);
            let (now_ms, expires_at_ms) = (self.now_ms, self.now_ms + RETENTION_MS);
            let fetched = match how {
                None => continue,
                Some(true) => Fetched::AtHand,
                Some(false) => Fetched::Failed {
                    failure: FailureCode::ReferenceUnreachable.into(),
                    now_ms,
                    expires_at_ms,
                },
            };
            stores.tasks.settle_fetch(&fetch, fetched).await.unwrap();
            known.fetch = Fetching::AtHand;
            if how == Some(false) {
                known.phase = Phase::Failed;
                known.expires_at_ms = expires_at_ms;
                self.abandon(number);
            }
        }
    }

    pub(super) async fn finish(&mut self, stores: &Stores, lease: usize, well: bool) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let name = format!("token-{}", lease.token);
        let outcome = if well {
            Ok(artifact(&name))
        } else {
            Err(FailureCode::GenerationFailed.into())
        };
        let (now_ms, expires_at_ms) = (self.now_ms, self.now_ms + RETENTION_MS);
        let done = stores
            .tasks
            .finish(&lease, outcome, now_ms, expires_at_ms)
            .await;
        if let Some(known) = self.holder(task, &lease, &done) {
            known.phase = if well {
                Phase::Completed
            } else {
                Phase::Failed
            };
            known.progress = if well { 100 } else { known.progress };
            known.token = None;
            known.expires_at_ms = expires_at_ms;
            if well {
                known.kept = None;
            }
            self.abandon(task);
        }
    }

    pub(super) async fn cancel(&mut self, stores: &Stores, number: u64, project: &str) {
        let (now_ms, expires_at_ms) = (self.now_ms, self.now_ms + RETENTION_MS);
        let came = stores
            .tasks
            .cancel(project, id(number), cancelled(), now_ms, expires_at_ms)
            .await
            .unwrap();
        match self
            .tasks
            .get_mut(&number)
            .filter(|known| known.project == project)
        {
            None => assert!(matches!(came, Cancellation::NotFound), "{came:?}"),
            Some(known) if known.phase.is_terminal() => {
                assert!(matches!(came, Cancellation::AlreadyFinished(_)), "{came:?}");
            }
            Some(known) => {
                assert!(matches!(came, Cancellation::Cancelled(_)), "{came:?}");
                known.phase = Phase::Failed;
                known.token = None;
                known.expires_at_ms = expires_at_ms;
                self.abandon(number);
            }
        }
    }

    pub(super) fn sweep(&mut self) -> Swept {
        let (mut swept, now_ms) = (Swept::default(), self.now_ms);
        let mut lost = Vec::new();
        for (number, known) in &mut self.tasks {
            match known.phase {
                Phase::Running if known.until_ms <= now_ms => {
                    known.token = None;
                    if known.attempt >= 3 {
                        known.phase = Phase::Failed;
                        known.expires_at_ms = now_ms + RETENTION_MS;
                        swept.lost += 1;
                        lost.push(*number);
                    } else {
                        known.phase = Phase::Waiting;
                        swept.requeued += 1;
                    }
                }
                Phase::Completed | Phase::Failed if known.expires_at_ms <= now_ms => {
                    known.phase = Phase::Expired;
                    swept.expired += 1;
                }
                _ => {}
            }
        }
        for number in lost {
            self.abandon(number);
        }
        swept.abandoned = self.abandoned.values().cloned().collect();
        let before = self.tasks.len();
        let stays =
            |known: &Known| known.phase != Phase::Expired || known.expires_at_ms + 10_000 > now_ms;
        self.tasks.retain(|_, known| stays(known));
        swept.forgotten = (before - self.tasks.len()) as u64;
        swept
    }
}
