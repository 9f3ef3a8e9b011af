//! Each operation, done to the store and to the model, with the two answers compared.

use kinora_contract::{FailureCode, Inputs, Phase};

use super::super::Site;
use super::super::bench::Bench as _;
use super::super::fixtures::{
    LEASE_MS, MODELS, artifact, cancelled, claiming, id, renewal, spec, task,
};
use super::known::{Fetching, Known};
use super::{BOUNDS, Model, RETENTION_MS};
use crate::{
    Attempt, Cancellation, ClaimRequest, Fetched, Idempotency, Insertion, NewTask, Renewal, Swept,
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

impl Model {
    pub(super) async fn insert(
        &mut self,
        stores: &Site,
        project: &'static str,
        model: usize,
        key: Option<u8>,
        images: usize,
    ) {
        let (number, now_ms) = (self.next, self.now_ms);
        self.next += 1;
        let expires_at_ms = now_ms + 50_000;
        let new = NewTask {
            idempotency: key.map(|key| Idempotency {
                key: key.to_string(),
                fingerprint: [u8::try_from(model).unwrap(); 32],
                bound_ms: 50_000,
            }),
            ..request(number, project, model, images)
        };
        let found = match &new.idempotency {
            Some(key) => stores.tasks.find_twin(project, key).await.unwrap(),
            None => None,
        };
        let found = found.map(|task| task.id);
        let came = stores.tasks.insert(new).await.unwrap();
        let twin = self.tasks.iter_mut().find_map(|(number, known)| {
            let (held, model, _) = known.key?;
            (known.project == project && Some(held) == key).then_some((*number, model))
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
            (Some((twin, same)), Insertion::Replayed(task)) => {
                assert_eq!((task.id, same), (id(twin), model));
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
            (None, Insertion::Inserted(task)) => {
                assert!(waiting < 6 && own.filter(unfinished).count() < 4);
                assert_eq!(task.id, id(number));
                let key = key.map(|key| (key, model, expires_at_ms));
                let known = Known {
                    key,
                    ..Known::new(project, model, images, now_ms)
                };
                self.tasks.insert(number, known);
            }
            (twin, came) => panic!("{came:?} with the twin {twin:?}"),
        }
    }

    pub(super) async fn claim(&mut self, stores: &Site, count: usize, models: usize) {
        let served = |model: usize| models & (1 << model) != 0;
        let request = ClaimRequest {
            models: (0..2)
                .filter(|m| served(*m))
                .map(|m| MODELS[m].to_owned())
                .collect(),
            ..claiming(count)
        };
        let mut claims = stores.work.claim(request).await.unwrap().into_iter();
        let mut held_back = self.is_held_back();
        for _ in 0..count {
            if held_back {
                break;
            }
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
            held_back = self.tasks[&number].is_suspect();
            if held_back && self.running().next().is_some() {
                self.alone = Some(number);
                break;
            }
            let claim = claims.next().expect("a task to claim");
            assert_eq!(claim.task.id, id(number));
            let known = self.tasks.get_mut(&number).unwrap();
            assert_eq!(claim.ticket, known.ticket);
            known.phase = Phase::Running;
            known.start(self.now_ms);
            known.attempt += 1;
            known.token = Some(claim.lease.token);
            known.until_ms = self.steady_ms + LEASE_MS;
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

    /// What the worker runs.
    fn running(&self) -> impl Iterator<Item = &Known> {
        let steady_ms = self.steady_ms;
        let runs =
            move |known: &&Known| known.phase == Phase::Running && known.until_ms > steady_ms;
        self.tasks.values().filter(runs)
    }

    /// Whether the worker may claim nothing: one task runs alone, or is about to.
    fn is_held_back(&self) -> bool {
        let next = self.alone.and_then(|number| self.tasks.get(&number));
        let waits = next.is_some_and(|known| {
            let claimable = known.phase == Phase::Waiting && known.fetch == Fetching::AtHand;
            claimable && known.is_suspect()
        });
        // The attempt of one that runs counts this run.
        self.running()
            .any(|known| waits || (known.deaths > 0 && known.attempt >= 3))
    }

    pub(super) async fn renew(&mut self, stores: &Site, lease: usize, progress: u8) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let until_ms = self.steady_ms + LEASE_MS;
        let ticket = progress
            .is_multiple_of(2)
            .then(|| format!("ticket {progress}"));
        let renewed = Renewal {
            ticket: ticket.clone(),
            ..renewal(progress)
        };
        let done = stores.renew(&lease, renewed).await;
        if let Some(known) = self.holder(task, &lease, &done) {
            known.progress = known.progress.max(progress.min(99));
            known.ticket = ticket.or(known.ticket.take());
            known.until_ms = until_ms;
        }
    }

    pub(super) async fn release(&mut self, stores: &Site, lease: usize, counts: bool) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let attempt = if counts {
            Attempt::Counts
        } else {
            Attempt::Forgiven
        };
        let done = stores.work.release(&lease, attempt).await;
        if done.is_ok() {
            self.drop_run(task);
        }
        if let Some(known) = self.holder(task, &lease, &done) {
            known.phase = Phase::Waiting;
            known.token = None;
            known.attempt -= u32::from(!counts);
        }
    }

    /// Takes fetches, and settles them well, badly or not at all.
    pub(super) async fn fetch(&mut self, stores: &Site, count: usize, how: Option<bool>) {
        let fetches = stores.take(count).await;
        for fetch in fetches {
            let known = self.tasks.iter_mut();
            let mut known = known.filter(|(number, _)| id(**number) == fetch.task.id);
            let (&number, known) = known.next().expect("a known task");
            let taken =
                matches!(known.fetch, Fetching::Taken(until_ms) if until_ms > self.steady_ms);
            assert!(known.phase == Phase::Waiting && known.fetch != Fetching::AtHand && !taken);
            known.fetch = Fetching::Taken(self.steady_ms + LEASE_MS);
            let now_ms = self.now_ms;
            let fetched = match how {
                None => continue,
                Some(true) => Fetched::AtHand,
                Some(false) => Fetched::Failed {
                    failure: FailureCode::ReferenceUnreachable.into(),
                    retention_ms: RETENTION_MS,
                },
            };
            stores.work.settle_fetch(&fetch, fetched).await.unwrap();
            known.fetch = Fetching::AtHand;
            if how == Some(false) {
                known.end(Phase::Failed, now_ms);
                self.drop_unfinished(number);
            }
        }
    }

    pub(super) async fn finish(&mut self, stores: &Site, lease: usize, well: bool) {
        let Some((task, lease)) = self.lease(lease) else {
            return;
        };
        let name = format!("token-{}", lease.token);
        let outcome = if well {
            Ok(artifact(&name))
        } else {
            Err(FailureCode::GenerationFailed.into())
        };
        let now_ms = self.now_ms;
        let done = stores.work.finish(&lease, outcome, RETENTION_MS).await;
        if done.is_ok() {
            match well {
                true => self.drop_references(task),
                false => self.drop_unfinished(task),
            }
        }
        if let Some(known) = self.holder(task, &lease, &done) {
            let phase = if well {
                Phase::Completed
            } else {
                Phase::Failed
            };
            known.end(phase, now_ms);
            known.progress = if well { 100 } else { known.progress };
            known.token = None;
            known.result = well.then_some(lease.token);
            known.ticket = None;
        }
    }

    pub(super) async fn cancel(&mut self, stores: &Site, number: u64, project: &str) {
        let now_ms = self.now_ms;
        let came = stores
            .tasks
            .cancel(project, id(number), cancelled(), RETENTION_MS)
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
                known.end(Phase::Failed, now_ms);
                self.drop_unfinished(number);
                if let Some(known) = self.tasks.get_mut(&number) {
                    known.token = None;
                }
            }
        }
    }

    /// A sweep by a wall clock that is trusted, or is not.
    pub(super) fn sweep(&mut self, trusts: bool) -> Swept {
        let (mut swept, now_ms) = (Swept::default(), self.now_ms);
        let running = |known: &&Known| known.phase == Phase::Running;
        let beside_others = self.tasks.values().filter(running).count() > 1;
        let (mut over, mut lost, mut expired) = (Vec::new(), Vec::new(), Vec::new());
        let before = self.tasks.len();
        let stays =
            |known: &Known| known.phase != Phase::Expired || known.expires_at_ms + 10_000 > now_ms;
        self.tasks.retain(|_, known| !trusts || stays(known));
        swept.forgotten = (before - self.tasks.len()) as u64;
        for (number, known) in &mut self.tasks {
            known.key = known
                .key
                .filter(|(.., until_ms)| !trusts || *until_ms > now_ms);
            match known.phase {
                Phase::Running if known.until_ms <= self.steady_ms => {
                    over.push(*number);
                    if known.attempt >= 3 && !beside_others {
                        known.end(Phase::Failed, now_ms);
                        swept.lost += 1;
                        lost.push(*number);
                    } else {
                        known.phase = Phase::Waiting;
                        known.deaths += 1;
                        swept.requeued += 1;
                        known.attempt -= u32::from(known.attempt >= 3);
                    }
                }
                Phase::Completed | Phase::Failed if trusts && known.expires_at_ms <= now_ms => {
                    known.phase = Phase::Expired;
                    known.expires_at_ms = now_ms;
                    swept.expired += 1;
                    expired.push(*number);
                }
                _ => {}
            }
        }
        for number in over {
            self.drop_run(number);
            if let Some(known) = self.tasks.get_mut(&number) {
                known.token = None;
            }
        }
        for number in lost {
            self.drop_unfinished(number);
        }
        self.drop_results(&expired);
        swept
    }
}
