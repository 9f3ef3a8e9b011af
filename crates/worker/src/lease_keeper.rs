//! Keeps the leases of all runs of the process, on a separate thread and runtime, so that blocking
//! work elsewhere cannot cost a lease. Each round checks all leases with one call, then renews
//! those that are due. A run whose lease has expired by the monotonic clock is stopped even if the
//! store is unreachable: by then another worker may hold the task.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::{Clock, SteadyMs};
use kinora_engine::{JobControl, JobProgress};
use kinora_store::{Lease, LeaseLost, LeaseRenewal, OutageLog, StoreError, WorkerStore};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::worker::Worker;

/// How a lease ended before its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// The store reports it as lost.
    Lost(LeaseLost),
    /// It expired while the store was unreachable.
    RanOut,
}

/// The leases of the process.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    /// Sorted, so that rounds are repeatable.
    leases: Mutex<BTreeMap<Lease, Arc<LeaseState>>>,
    clock: Arc<dyn Clock>,
    lease_ms: u64,
    /// Whether the store answered all of the last round.
    was_answered: AtomicBool,
}

/// A lease in the keeper's care.
#[derive(Debug)]
struct LeaseState {
    engine: String,
    control: JobControl,
    /// The store keeps the lease at least until then.
    until_ms: AtomicU64,
    /// Time and progress of the last renewal; `u8::MAX` before the first one.
    renewed_ms: AtomicU64,
    reported_progress: AtomicU8,
    gone: watch::Sender<Option<LeaseEnd>>,
}

/// A run's handle to its lease: the keeper renews the lease until this is dropped.
#[derive(Debug)]
pub(crate) struct LeaseHandle {
    keeper: Arc<LeaseKeeper>,
    lease: Lease,
    gone: watch::Receiver<Option<LeaseEnd>>,
}

impl LeaseKeeper {
    pub(crate) fn new(clock: Arc<dyn Clock>, lease_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            leases: Mutex::default(),
            clock,
            lease_ms,
            was_answered: AtomicBool::new(true),
        })
    }

    /// Renews a lease that was requested at `asked_ms` until the returned handle is dropped.
    pub(crate) fn add(
        self: &Arc<Self>,
        lease: Lease,
        asked_ms: SteadyMs,
        engine: String,
        control: JobControl,
    ) -> LeaseHandle {
        let (gone, lost) = watch::channel(None);
        let kept = LeaseState {
            engine,
            control,
            until_ms: AtomicU64::new(asked_ms.saturating_add(self.lease_ms)),
            renewed_ms: AtomicU64::new(asked_ms),
            reported_progress: AtomicU8::new(u8::MAX),
            gone,
        };
        self.lock().insert(lease.clone(), Arc::new(kept));
        LeaseHandle {
            keeper: self.clone(),
            lease,
            gone: lost,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Lease, Arc<LeaseState>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks and renews all leases once.
    async fn run_round(&self, work: &dyn WorkerStore, outage: &OutageLog) {
        // A copy, so that the lock is free while the store is asked: runs begin and end meanwhile.
        let held: Vec<(Lease, Arc<LeaseState>)> = {
            let leases = self.lock();
            let held = leases.iter();
            held.map(|(lease, kept)| (lease.clone(), kept.clone()))
                .collect()
        };
        if held.is_empty() {
            return;
        }
        let leases: Vec<Lease> = held.iter().map(|(lease, _)| lease.clone()).collect();
        // Example with a lease of 30 s. A renewal is due 10 s after the last one, so the store may
        // fail for 20 s before the lease runs out. It gets 5 s for each of the two answers of a
        // round: a store that hangs delays the check for expiry below by 10 s, and not for ever.
        let begun_ms = self.clock.steady_ms();
        let patience = self.patience(&held, begun_ms);
        let lost = timeout(patience, work.find_lost(&leases)).await;
        let was_told = lost.is_ok();
        if let Ok(Ok(lost)) = lost {
            for (place, how) in lost {
                if let Some((_, kept)) = held.get(place) {
                    kept.end(LeaseEnd::Lost(how));
                }
            }
        }
        let due = held.iter().filter(|(_, kept)| self.is_due(kept));
        let renewals = join_all(due.map(|(lease, kept)| self.renew(work, lease, kept, outage)));
        let was_renewed = timeout(patience, renewals).await.is_ok();
        // The time of both answers, and more: the process stood still, which says nothing of the store.
        let round_ms_max = 2 * patience.as_millis() as u64 + self.lease_ms / 3;
        let stood_still = self.clock.steady_ms().saturating_sub(begun_ms) > round_ms_max;
        let was_answered = stood_still || was_told && was_renewed;
        self.was_answered.store(was_answered, Ordering::Release);
        // Not by the time of now: if the process stood still during this round, even a renewal that the store has granted
        // counts from before that, and the next round asks again.
        for (_, kept) in &held {
            if kept.until_ms.load(Ordering::Acquire) <= begun_ms {
                kept.end(LeaseEnd::RanOut);
            }
        }
    }

    /// How long the store may take for each of the two answers of a round that begins at `now_ms`. One that does not answer
    /// delays the check for expiry by a third of a lease at most.
    ///
    /// After a pause of the process, leases have run out although the store answered until then: usually nobody else has
    /// noticed, and the store may need a while to wake up too. Then it has the length of a lease. A run that goes on for
    /// so long although another worker has its task cannot publish: the store refuses its token.
    fn patience(&self, held: &[(Lease, Arc<LeaseState>)], now_ms: SteadyMs) -> Duration {
        let answered = self.was_answered.load(Ordering::Acquire);
        let after_pause = answered
            && held.iter().any(|(_, kept)| {
                kept.gone.borrow().is_none() && kept.until_ms.load(Ordering::Acquire) <= now_ms
            });
        // A sixth for each of the two answers is a third in all, the time between two renewals.
        let part = if after_pause { 1 } else { 6 };
        Duration::from_millis((self.lease_ms / part).max(1))
    }

    /// Whether a third of the lease has passed, or there is progress to report.
    fn is_due(&self, kept: &LeaseState) -> bool {
        let told = kept.reported_progress.load(Ordering::Acquire);
        let since_ms = kept.renewed_ms.load(Ordering::Acquire);
        let passed_ms = self.clock.steady_ms().saturating_sub(since_ms);
        let is_held = kept.gone.borrow().is_none();
        let has_news = told == u8::MAX || percent(&kept.control.progress) > told;
        is_held && (has_news || passed_ms >= self.lease_ms / 3)
    }

    async fn renew(
        &self,
        work: &dyn WorkerStore,
        lease: &Lease,
        kept: &LeaseState,
        outage: &OutageLog,
    ) {
        // Before the call, for the same reason as at a claim: the store counts from a later moment.
        let asked_ms = self.clock.steady_ms();
        let renewal = kept.renewal();
        let progress = renewal.progress;
        match work.renew(lease, self.lease_ms, renewal).await {
            Ok(()) => {
                outage.record_success();
                let until_ms = asked_ms.saturating_add(self.lease_ms);
                kept.until_ms.fetch_max(until_ms, Ordering::AcqRel);
                kept.renewed_ms.store(asked_ms, Ordering::Release);
                kept.reported_progress.store(progress, Ordering::Release);
            }
            Err(StoreError::LeaseLost(how)) => kept.end(LeaseEnd::Lost(how)),
            Err(error) => outage.record_failure(&error),
        }
    }
}

impl LeaseState {
    fn renewal(&self) -> LeaseRenewal {
        LeaseRenewal {
            progress: percent(&self.control.progress),
            engine: Some(self.engine.clone()),
            ..LeaseRenewal::default()
        }
    }

    /// The first reason counts.
    fn end(&self, how: LeaseEnd) {
        self.gone.send_if_modified(|gone| {
            let is_news = gone.is_none();
            gone.get_or_insert(how);
            is_news
        });
    }
}

impl LeaseHandle {
    /// Waits until the run has lost its lease.
    pub(crate) async fn gone(&self) -> LeaseEnd {
        let mut gone = self.gone.clone();
        let ended = gone.wait_for(Option::is_some).await;
        // The keeper owns the sender as long as this exists.
        ended
            .ok()
            .and_then(|how| *how)
            .unwrap_or(LeaseEnd::Lost(LeaseLost::Superseded))
    }
}

impl Drop for LeaseHandle {
    fn drop(&mut self) {
        self.keeper.lock().remove(&self.lease);
    }
}

/// A running keeper; it stops when this is dropped.
#[derive(Debug)]
pub(crate) enum KeeperService {
    /// Runs on a separate thread and runtime.
    Thread {
        ended: CancellationToken,
        thread: Option<JoinHandle<()>>,
    },
    /// Runs on the runtime of the runs ([`crate::WorkerPools::on_the_spot`]).
    Task(#[expect(dead_code, reason = "ends the task when it is dropped")] JoinSet<()>),
}

impl KeeperService {
    /// Starts the keeper.
    ///
    /// # Errors
    /// [`io::Error`] if no thread can be created.
    pub(crate) fn start(keeper: Arc<LeaseKeeper>, worker: &Worker) -> io::Result<Self> {
        let ended = CancellationToken::new();
        let (work, every) = (worker.work.clone(), worker.settings.heartbeat_every);
        let (alive, until) = (worker.backoff.readiness().register_part(), ended.clone());
        let keeping = async move {
            // Dropped even on a panic: without renewals, every run loses its lease.
            let _alive = alive;
            run_until_ended(keeper, work, every, until).await;
        };
        if !worker.pools.keeps_leases_apart {
            let mut task = JoinSet::new();
            task.spawn(keeping);
            return Ok(Self::Task(task));
        }
        // A runtime of its own: on the shared one, a single task that blocks its thread, or more
        // ready tasks than threads, would delay renewals. Here nothing else can run.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build()?;
        let name = std::thread::Builder::new().name("lease-keeper".to_owned());
        let thread = name.spawn(move || runtime.block_on(keeping))?;
        Ok(Self::Thread {
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for KeeperService {
    fn drop(&mut self) {
        let Self::Thread { ended, thread } = self else {
            return;
        };
        ended.cancel();
        if let Some(Err(_)) = thread.take().map(JoinHandle::join) {
            tracing::error!("lease keeper panicked");
        }
    }
}

async fn run_until_ended(
    keeper: Arc<LeaseKeeper>,
    work: Arc<dyn WorkerStore>,
    every: Duration,
    ended: CancellationToken,
) {
    let mut withdrawals = work.withdrawals();
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outage = OutageLog::new("lease renewals", &keeper.clock);
    loop {
        tokio::select! {
            biased;
            () = ended.cancelled() => return,
            _ = tick.tick() => {}
            // Without hints, rely on the ticks.
            Ok(()) = withdrawals.changed() => {}
        }
        tokio::select! {
            biased;
            () = keeper.run_round(&*work, &outage) => {}
            () = ended.cancelled() => return,
        }
    }
}

/// The progress in whole percent, 0 to 99: only a completed task has 100.
pub(crate) fn percent(progress: &JobProgress) -> u8 {
    (progress.fraction() * 100.0).clamp(0.0, 99.0) as u8
}

#[cfg(test)]
mod tests {
    use kinora_contract::{ManualClock, TaskId};

    use super::*;

    const LEASE_MS: u64 = 30_000;

    #[test]
    fn p05_after_a_pause_of_the_process_the_store_has_a_whole_lease_to_answer() {
        let clock = Arc::new(ManualClock::at(1_000_000));
        let keeper = LeaseKeeper::new(clock.clone(), LEASE_MS);
        let lease = Lease {
            task: TaskId::from_parts(1, [0; 10]),
            token: 1,
        };
        let kept = keeper.add(
            lease.clone(),
            clock.steady_ms(),
            "engine".to_owned(),
            JobControl::default(),
        );
        let patience_ms = || {
            let held: Vec<_> = keeper.lock().clone().into_iter().collect();
            let patience = keeper.patience(&held, clock.steady_ms());
            patience.as_millis() as u64
        };
        clock.advance(LEASE_MS - 1);
        assert_eq!(patience_ms(), LEASE_MS / 6);
        clock.advance(2 * LEASE_MS);
        assert_eq!(patience_ms(), LEASE_MS);
        // It did not answer before either: that is no pause.
        keeper.was_answered.store(false, Ordering::Release);
        assert_eq!(patience_ms(), LEASE_MS / 6);
        keeper.was_answered.store(true, Ordering::Release);
        // A run that has been told to stop waits for nothing.
        keeper.lock()[&lease].end(LeaseEnd::RanOut);
        assert_eq!(patience_ms(), LEASE_MS / 6);
        drop(kept);
    }
}
