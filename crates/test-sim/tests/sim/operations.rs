//! What may happen next: the kinds of operations, how often each is drawn, and what it does. Between two of them
//! the workers go on by themselves, for as long as the operation [`Kind::Pass`] lets time pass.

use std::time::Duration;

use kinora_store::faulty::{Injected, Rates, StoreMethod};
use kinora_store::{Pause, StoreError};

use crate::moment::at_one_moment;
use crate::process::MODELS;
use crate::world::{HOUR_MS, LEASE_MS, SWEEP_MS, WORKERS, World, YEAR_MS};

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
    Pass,
    Die,
    Hang,
    ComeBack,
    Race,
    Orphans,
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
    Pause,
    Resume,
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
    (Kind::Cancel, 30),
    (Kind::Delete, 20),
    (Kind::Pass, 450),
    (Kind::Die, 12),
    (Kind::Hang, 14),
    (Kind::ComeBack, 25),
    (Kind::Race, 20),
    (Kind::Orphans, 20),
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
    (Kind::Pause, 8),
    (Kind::Resume, 16),
];

impl World {
    /// Draws one operation, does it, and looks whether every promise still holds.
    pub(crate) async fn operate(&mut self) {
        let kind = self.draw();
        let hour = self.now_ms() / 1000 % 1_000_000;
        self.trace().push(format!("{hour} {kind:?}"));
        match kind {
            Kind::Pass => {
                let longest_ms = match self.rng.below(8) {
                    0..5 => 500,
                    5..7 => 4_000,
                    _ => LEASE_MS / 3,
                };
                let ms = 1 + self.rng.below(longest_ms);
                self.live(ms).await;
            }
            Kind::Restart => {
                let full = self.rng.percent(25) && self.is_embedded();
                self.restart(full).await;
            }
            Kind::Kill => {
                self.full = self.rng.percent(25) && self.is_embedded();
                self.kill().await;
            }
            Kind::Die | Kind::Hang | Kind::ComeBack => self.befall(kind).await,
            _ => at_one_moment(self.operate_at_once(kind)),
        }
        at_one_moment(self.witness.observe());
        self.nothing_has_panicked();
    }

    /// Lets the workers go on for so long.
    pub(crate) async fn live(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.nothing_has_panicked();
    }

    async fn operate_at_once(&mut self, kind: Kind) {
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
                self.trace().result(&id.to_string());
                match kind {
                    Kind::Get => self.get(id, project).await,
                    Kind::Content => self.content(id, project).await,
                    Kind::Cancel => self.cancel(id, project).await,
                    _ => self.delete(id, project).await,
                }
            }
            Kind::Race => self.witness.race_next(),
            Kind::Orphans => self.look_for_orphans().await,
            Kind::Pause => self.pause().await,
            Kind::Resume => {
                // A full disk takes no change: it stays paused.
                let _ = self.resume_all().await;
            }
            Kind::StoreAway | Kind::BlobsAway | Kind::FaultsUp | Kind::FaultsDown => {
                self.change_faults(kind);
            }
            _ => self.move_clock(kind),
        }
    }

    /// A kind that can be done now.
    fn draw(&mut self) -> Kind {
        let hung = self.processes.iter().filter(|process| process.hangs());
        let hung = hung.count();
        let can = |kind| match kind {
            Kind::Twin | Kind::ChangedBody => !self.sent.is_empty(),
            Kind::LateTwin => self.finals().next().is_some(),
            Kind::Get | Kind::Content | Kind::Cancel | Kind::Delete => {
                let book = self.book();
                !book.tasks.is_empty() || !book.gone.is_empty()
            }
            Kind::FaultsDown => self.injecting,
            Kind::ComeBack => hung > 0,
            Kind::Hang => hung < WORKERS,
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
        Kind::Pass
    }

    /// An operator pauses one model or all.
    async fn pause(&mut self) {
        let models = [Some(MODELS[0]), Some(MODELS[1]), None];
        let model = self.rng.pick(&models).flatten();
        let pause = Pause {
            model: model.map(str::to_owned),
            since_ms: self.now_ms(),
            reason: None,
        };
        let _ = self.witness.open().real.pauses.pause(pause).await;
    }

    /// An operator ends all pauses.
    pub(crate) async fn resume_all(&self) -> Result<(), StoreError> {
        let pauses = self.witness.open().real.pauses;
        for model in [Some(MODELS[0]), Some(MODELS[1]), None] {
            pauses.resume(model, self.now_ms()).await?;
        }
        Ok(())
    }

    /// One of the processes dies and is begun anew, hangs or comes back.
    async fn befall(&mut self, kind: Kind) {
        let able =
            |k: &usize| kind == Kind::Die || self.processes[*k].hangs() == (kind == Kind::ComeBack);
        let able: Vec<usize> = (0..WORKERS).filter(able).collect();
        let Some(k) = self.rng.pick(&able) else {
            return;
        };
        self.trace().result(&format!("worker {k}"));
        if kind == Kind::Die {
            self.processes[k].die().await;
            self.begin(k);
        } else {
            self.processes[k].hang(kind == Kind::Hang);
        }
    }

    /// Every worker is stopped in order, then the store is closed and opened.
    async fn restart(&mut self, full: bool) {
        let at_once = self.rng.percent(50);
        for process in &mut self.processes {
            if process.hangs() {
                process.die().await;
            }
            process.stop(at_once);
        }
        for process in &mut self.processes {
            process.stopped().await;
        }
        self.full = full;
        at_one_moment(self.reopen());
        self.begin_all();
    }

    /// Lets the machine sleep.
    pub(crate) fn sleep_over(&self, ms: u64) {
        self.clock.advance(ms);
        self.witness.all_shaken(self.may_fail());
    }

    fn move_clock(&mut self, kind: Kind) {
        let now_ms = self.now_ms();
        match kind {
            // Time passes.
            Kind::ClockLease => self.sleep_over(LEASE_MS + SWEEP_MS),
            Kind::ClockHour => self.sleep_over(HOUR_MS),
            // The wall clock is set.
            Kind::ClockBack => self.clock.set(now_ms - 2 * HOUR_MS),
            Kind::ClockDay => self.clock.set(now_ms + 25 * HOUR_MS),
            _ => self.clock.set(now_ms + 10 * YEAR_MS),
        }
    }

    fn change_faults(&mut self, kind: Kind) {
        self.injecting = kind != Kind::FaultsDown;
        match kind {
            // As a full disk: nothing can be changed, and reads go on.
            Kind::StoreAway => {
                self.store_plan.set(Rates::AWAY);
                for read in StoreMethod::READS {
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
        self.witness.all_shaken(self.may_fail());
    }

    fn faults_everywhere(&mut self, ppm: u32) {
        self.store_plan.set(Rates::each(ppm));
        for read in StoreMethod::READS {
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
