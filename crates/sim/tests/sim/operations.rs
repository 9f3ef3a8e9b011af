//! What may happen next: the kinds of operations, how often each is drawn, and what it does.

use kinora_contract::{FailureCode, State};
use kinora_store::Cancellation;
use kinora_store::faulty::{Injected, Method, Rates};

use crate::book::Cause;
use crate::worker::Stage;
use crate::world::{HOUR_MS, LEASE_MS, RETENTION_MS, SWEEP_MS, World, YEAR_MS};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Submit,
    SubmitFinal,
    SubmitKeyed,
    Twin,
    Twins,
    LateTwin,
    ChangedBody,
    TornSubmit,
    Get,
    List,
    Content,
    Cancel,
    Delete,
    Fetch,
    Claim,
    Heartbeat,
    Step,
    Fail,
    Crash,
    Die,
    Hang,
    ComeBack,
    Release,
    Race,
    Sweep,
    Orphans,
    Chore,
    ChoreDie,
    ClockSmall,
    ClockLease,
    ClockHour,
    ClockBack,
    ClockDay,
    ClockYears,
    Restart,
    Kill,
    StoreAway,
    BlobsAway,
    FaultsUp,
    FaultsDown,
}

/// How often each kind is drawn, relative to the others.
const KINDS: &[(Kind, u64)] = &[
    (Kind::Submit, 80),
    (Kind::SubmitFinal, 20),
    (Kind::SubmitKeyed, 40),
    (Kind::Twin, 40),
    (Kind::Twins, 15),
    (Kind::LateTwin, 20),
    (Kind::ChangedBody, 10),
    (Kind::TornSubmit, 15),
    (Kind::Get, 30),
    (Kind::List, 10),
    (Kind::Content, 30),
    (Kind::Cancel, 20),
    (Kind::Delete, 20),
    (Kind::Fetch, 150),
    (Kind::Claim, 90),
    (Kind::Heartbeat, 60),
    (Kind::Step, 300),
    (Kind::Fail, 10),
    (Kind::Crash, 10),
    (Kind::Die, 12),
    (Kind::Hang, 12),
    (Kind::ComeBack, 25),
    (Kind::Release, 12),
    (Kind::Race, 20),
    (Kind::Sweep, 60),
    (Kind::Orphans, 20),
    (Kind::Chore, 60),
    (Kind::ChoreDie, 6),
    (Kind::ClockSmall, 60),
    (Kind::ClockLease, 20),
    (Kind::ClockHour, 15),
    (Kind::ClockBack, 8),
    (Kind::ClockDay, 4),
    (Kind::ClockYears, 2),
    (Kind::Restart, 8),
    (Kind::Kill, 8),
    (Kind::StoreAway, 6),
    (Kind::BlobsAway, 6),
    (Kind::FaultsUp, 10),
    (Kind::FaultsDown, 35),
];

/// What one of the workers does or suffers.
const WORKERS: [Kind; 9] = [
    Kind::Claim,
    Kind::Heartbeat,
    Kind::Step,
    Kind::Fail,
    Kind::Crash,
    Kind::Die,
    Kind::Hang,
    Kind::ComeBack,
    Kind::Release,
];

impl World {
    /// Draws one operation, does it, and looks whether every promise still holds.
    pub(crate) async fn operate(&mut self) {
        let kind = self.draw();
        let hour = self.now_ms() / 1000 % 1_000_000;
        self.trace.push(format!("{hour} {kind:?}"));
        match kind {
            Kind::Submit => {
                let submit = self.new_submit(false, None);
                self.submit(&submit, 1).await;
            }
            Kind::SubmitFinal => self.submit_final().await,
            Kind::SubmitKeyed => self.submit_keyed(1).await,
            Kind::Twins => self.submit_keyed(2).await,
            Kind::Twin => self.submit_again().await,
            Kind::LateTwin => self.submit_late().await,
            Kind::ChangedBody => self.submit_changed().await,
            Kind::TornSubmit => {
                let keyed = self.rng.percent(50);
                let submit = self.new_submit(keyed, None);
                self.remember(&submit);
                self.submit_torn(&submit).await;
            }
            Kind::List => self.list().await,
            Kind::Get | Kind::Content | Kind::Cancel | Kind::Delete => {
                let Some((id, project)) = self.any_task() else {
                    return;
                };
                self.trace.result(&id.to_string());
                match kind {
                    Kind::Get => self.get(id, project).await,
                    Kind::Content => self.content(id, project).await,
                    Kind::Cancel => self.cancel(id, project).await,
                    _ => self.delete(id, project).await,
                }
            }
            Kind::Fetch => self.fetch().await,
            Kind::Race => self.race().await,
            Kind::Sweep => self.sweep().await,
            Kind::Orphans => self.look_for_orphans().await,
            Kind::Chore | Kind::ChoreDie => self.chore(kind == Kind::ChoreDie).await,
            Kind::Restart => {
                let full = self.rng.percent(25);
                self.restart(full).await;
            }
            Kind::Kill => {
                self.full = self.rng.percent(25);
                self.kill().await;
            }
            _ if WORKERS.contains(&kind) => self.work(kind).await,
            Kind::StoreAway | Kind::BlobsAway | Kind::FaultsUp | Kind::FaultsDown => {
                self.change_faults(kind);
            }
            _ => self.move_clock(kind),
        }
        self.observe().await;
    }

    /// A kind that can be done now.
    fn draw(&mut self) -> Kind {
        let can = |kind| match kind {
            Kind::Twin | Kind::ChangedBody => !self.sent.is_empty(),
            Kind::LateTwin => self.finals().next().is_some(),
            Kind::Get | Kind::Content | Kind::Cancel | Kind::Delete => {
                !self.book.tasks.is_empty() || !self.book.gone.is_empty()
            }
            Kind::FaultsDown => self.injecting,
            _ if WORKERS.contains(&kind) => !self.able(kind).is_empty(),
            _ => true,
        };
        let able: Vec<_> = KINDS.iter().filter(|(kind, _)| can(*kind)).collect();
        let mut left = self.rng.below(able.iter().map(|(_, weight)| weight).sum());
        for (kind, weight) in able {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        Kind::Sweep
    }

    /// The workers that may do or suffer this.
    fn able(&self, kind: Kind) -> Vec<usize> {
        let able = |k: &usize| {
            let worker = &self.workers[*k];
            match kind {
                Kind::Claim => worker.is_free(),
                Kind::ComeBack => worker.hung,
                Kind::Hang => !worker.hung,
                Kind::Die => !worker.runs.is_empty(),
                _ => worker.is_at_work(),
            }
        };
        (0..self.workers.len()).filter(able).collect()
    }

    /// Something that one of the workers does or suffers.
    async fn work(&mut self, kind: Kind) {
        let able = self.able(kind);
        let Some(k) = self.rng.pick(&able) else {
            return;
        };
        self.trace.result(&format!("worker {k}"));
        match kind {
            Kind::Claim => self.claim(k).await,
            Kind::Heartbeat => self.heartbeat(k).await,
            Kind::Step => self.step(k).await,
            Kind::Fail => self.fail(k),
            Kind::Crash => self.crash(k).await,
            Kind::Die => self.workers[k].forget(),
            Kind::Release => self.release(k).await,
            _ => self.workers[k].hung = kind == Kind::Hang,
        }
    }

    /// A finish, a cancel and a sweep at once, for the same task where one is ready.
    async fn race(&mut self) {
        let ready = self
            .workers
            .iter()
            .filter(|worker| !worker.hung)
            .flat_map(|worker| {
                worker.runs.iter().filter_map(|run| match &run.stage {
                    Stage::Finish(outcome) => {
                        Some((run.task.clone(), run.lease.clone(), outcome.clone()))
                    }
                    _ => None,
                })
            });
        let Some((task, lease, outcome)) = self.rng.pick(&ready.collect::<Vec<_>>()) else {
            return;
        };
        self.trace.result(&task.id.to_string());
        let reading = self.reading();
        let request = self.sweep_request(reading);
        let seen = self.service().seen.clone();
        let failure: kinora_contract::Failure = FailureCode::Cancelled.into();
        let finish = seen.work.finish(&lease, outcome.clone(), RETENTION_MS);
        let cancel = seen
            .tasks
            .cancel(&task.project, task.id, failure.clone(), RETENTION_MS);
        let sweep = seen.chores.sweep(request);
        let (finished, cancelled, swept) = if self.rng.percent(50) {
            self.at_once(async { tokio::join!(finish, cancel, sweep) })
                .await
        } else {
            let raced = self.at_once(async { tokio::join!(sweep, cancel, finish) });
            let (swept, cancelled, finished) = raced.await;
            (finished, cancelled, swept)
        };
        let both = finished.is_ok() && matches!(cancelled, Ok(Cancellation::Cancelled(_)));
        assert!(!both, "P2: {} was both finished and cancelled", task.id);
        self.book.note(Cause::Cancelled {
            task: task.id,
            failure,
        });
        self.book.note(Cause::Finished {
            lease,
            outcome,
            told: finished.is_ok(),
        });
        self.book.note(Cause::Swept {
            request,
            steady_ms: reading.steady_ms,
            told: swept.is_ok(),
        });
        self.observe().await;
        let phase = self.book.tasks.get(&task.id).map(|known| &known.task.state);
        let completed = matches!(phase, Some(State::Completed(_)));
        self.trace.result(if completed {
            "finished"
        } else {
            "cancelled or swept"
        });
    }

    /// Every worker gives back what it runs, then the store is closed and opened.
    async fn restart(&mut self, full: bool) {
        for k in 0..self.workers.len() {
            if !self.workers[k].hung {
                self.release(k).await;
            }
            self.workers[k].forget();
        }
        self.full = full;
        self.reopen().await;
    }

    fn move_clock(&mut self, kind: Kind) {
        let now_ms = self.now_ms();
        match kind {
            // Time passes.
            Kind::ClockLease => self.clock.advance(LEASE_MS + SWEEP_MS),
            Kind::ClockHour => self.clock.advance(HOUR_MS),
            // The wall clock is set.
            Kind::ClockBack => self.clock.set(now_ms - 2 * HOUR_MS),
            Kind::ClockDay => self.clock.set(now_ms + 25 * HOUR_MS),
            Kind::ClockYears => self.clock.set(now_ms + 10 * YEAR_MS),
            _ => self.clock.advance(1 + self.rng.below(LEASE_MS / 2)),
        }
    }

    fn change_faults(&mut self, kind: Kind) {
        self.injecting = kind != Kind::FaultsDown;
        match kind {
            // As a full disk: nothing can be changed, and reads go on.
            Kind::StoreAway => {
                self.store_plan.set(Rates::AWAY);
                for read in Method::READS {
                    self.store_plan.set_of(read, Some(Rates::NONE));
                }
            }
            Kind::BlobsAway => self.blob_plan.set(Rates::AWAY),
            Kind::FaultsUp => {
                let ppm = [10_000, 50_000, 200_000][self.rng.below(3) as usize];
                self.faults_everywhere(ppm);
            }
            _ => self.faults_everywhere(0),
        }
    }

    fn faults_everywhere(&mut self, ppm: u32) {
        self.store_plan.set(Rates::each(ppm));
        for read in Method::READS {
            self.store_plan.set_of(read, None);
        }
        self.blob_plan.set(Rates::each(ppm));
    }

    /// Ends every fault.
    pub(crate) async fn be_well(&mut self) {
        self.change_faults(Kind::FaultsDown);
        if self.full {
            self.restart(false).await;
        }
    }

    /// Faults so far, of the store and of the blob store.
    pub(crate) fn injected(&self) -> [u64; 2] {
        [self.store_plan.injected(), self.blob_plan.injected()]
            .map(|Injected { before, after, .. }| before + after)
    }
}
