//! Each operation, done to the store and to the model, with the two answers compared.

use kinora_contract::{FailureCode, Phase};

use super::super::fixtures::{LEASE_MS, MODELS, artifact, cancelled, id, spec, task};
use super::{BOUNDS, Known, Model, RETENTION_MS};
use crate::{
    Attempt, Cancellation, ClaimRequest, Idempotency, Insertion, NewTask, Renewed, Stores, Swept,
};

impl Model {
    pub(super) async fn insert(
        &mut self,
        stores: &Stores,
        project: &'static str,
        model: usize,
        key: Option<u8>,
    ) {
        let (number, now_ms) = (self.next, self.now_ms);
        self.next += 1;
        let expires_at_ms = now_ms + 50_000;
        let new = NewTask {
            spec: spec(MODELS[model]),
            now_ms,
            bounds: BOUNDS,
            idempotency: key.map(|key| Idempotency {
                key: key.to_string(),
                fingerprint: [u8::try_from(model).unwrap(); 32],
                expires_at_ms,
            }),
            ..task(number, project)
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
            (None, Insertion::QueueFull) => assert!(waiting >= 6),
            (None, Insertion::ProjectFull) => {
                assert!(waiting < 6 && own.filter(unfinished).count() == 4);
            }
            (None, Insertion::Inserted(view)) => {
                assert!(waiting < 6 && own.filter(unfinished).count() < 4);
                assert_eq!(view.task.id, id(number));
                let key = key.map(|key| (key, model, expires_at_ms));
                self.tasks.insert(
                    number,
                    Known {
                        project,
                        model,
                        phase: Phase::Waiting,
                        attempt: 0,
                        progress: 0,
                        token: None,
                        until_ms: 0,
                        expires_at_ms: u64::MAX,
                        key,
                        kept: None,
                    },
                );
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
            now_ms: self.now_ms,
            lease_ms: LEASE_MS,
        };
        let mut claims = stores.tasks.claim(request).await.unwrap().into_iter();
        for _ in 0..count {
            let running = |project: &str| {
                let of = |known: &&Known| known.project == project;
                let all = self.tasks.values().filter(of);
                all.filter(|known| known.phase == Phase::Running).count()
            };
            let waiting = self
                .tasks
                .iter()
                .filter(|(_, known)| known.phase == Phase::Waiting);
            let next = waiting
                .filter(|(_, known)| served(known.model))
                .min_by_key(|(number, known)| {
                    let turn = self.turns.get(known.project);
                    (running(known.project), turn, **number)
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
            self.turns.insert(known.project, claim.lease.token);
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
            }
        }
    }

    pub(super) fn sweep(&mut self) -> Swept {
        let (mut swept, now_ms) = (Swept::default(), self.now_ms);
        for known in self.tasks.values_mut() {
            match known.phase {
                Phase::Running if known.until_ms <= now_ms => {
                    known.token = None;
                    if known.attempt >= 3 {
                        known.phase = Phase::Failed;
                        known.expires_at_ms = now_ms + RETENTION_MS;
                        swept.lost += 1;
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
        let before = self.tasks.len();
        let stays =
            |known: &Known| known.phase != Phase::Expired || known.expires_at_ms + 10_000 > now_ms;
        self.tasks.retain(|_, known| stays(known));
        swept.forgotten = (before - self.tasks.len()) as u64;
        swept
    }
}
