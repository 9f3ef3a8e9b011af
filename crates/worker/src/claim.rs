//! Claims tasks while there is a free slot, a free seat at an engine with a limit, and room on a
//! device that engines share, and starts a run for each claim. Engines on a device have their turn in
//! this order: those that have waited too long, those that are loaded or fit, then those for which
//! others must leave. Long tasks leave one slot to short ones ([`crate::slots`]). The store's change
//! counter only shortens the wait; polling does not depend on it.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{StandstillReason, SteadyMs, Stopwatch};
use kinora_store::{ClaimRequest, ClaimedTask, LongTasks, OutageLog, Pauses};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::backoff::ClaimAllowance;
use crate::device_scheduler::EngineAdmission;
use crate::lease_keeper::LeaseKeeper;
use crate::lineup::{EngineQueue, EngineSeat};
use crate::pauses::ObeyedPauses;
use crate::run::run_task;
use crate::shutdown::Shutdown;
use crate::slots::{EnginePermits, ShortSlot};
use crate::startup::is_settled;
use crate::worker::Worker;

/// How often to poll the store without a hint.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Claims and runs tasks until a drain, then waits for the running ones; returns how many there
/// were.
pub(crate) async fn claim_until_drain(
    worker: Arc<Worker>,
    keeper: Arc<LeaseKeeper>,
    shutdown: Shutdown,
) -> usize {
    let slots = Arc::new(Semaphore::new(worker.settings.slots.max(1)));
    let mut hints = worker.work.work_hints();
    let mut claims = ClaimLoop::new(worker.clone(), keeper, shutdown.clone());
    while !shutdown.is_draining()
        && worker.backoff.readiness().standstill() != Some(StandstillReason::Worker)
    {
        let first = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            permit = slots.clone().acquire_owned() => permit,
        };
        // The semaphore is never closed, so a permit always comes eventually.
        let Ok(first) = first else { break };
        // Before the claim: a task that arrives while the store is being asked then ends the wait
        // below at once.
        hints.mark_unchanged();
        let permits = match worker.backoff.claim_allowance() {
            ClaimAllowance::All => acquire_free_slots(first, &slots),
            ClaimAllowance::One => vec![first],
            ClaimAllowance::Wait(pause) => {
                drop(first);
                tokio::select! {
                    biased;
                    () = shutdown.draining() => break,
                    // The run that tests the storage may have ended.
                    () = worker.lineup.freed.notified() => continue,
                    () = tokio::time::sleep(pause) => continue,
                }
            }
        };
        if !claims.claim_tasks(permits).await {
            wait_for_work(&mut hints, &worker.lineup.freed, &shutdown).await;
        }
    }
    let mut runs = claims.runs;
    while runs.try_join_next().is_some() {}
    let running = runs.len();
    finish_runs(&worker, runs, &shutdown).await;
    running
}

/// The claims of a worker, and the runs that came of them.
struct ClaimLoop {
    worker: Arc<Worker>,
    keeper: Arc<LeaseKeeper>,
    shutdown: Shutdown,
    queues: Vec<EngineQueue>,
    leftovers: Arc<Semaphore>,
    short_slot: ShortSlot,
    pauses: ObeyedPauses,
    outage: OutageLog,
    /// Since the process has begun to claim.
    lived: Stopwatch,
    runs: JoinSet<()>,
}

impl ClaimLoop {
    fn new(worker: Arc<Worker>, keeper: Arc<LeaseKeeper>, shutdown: Shutdown) -> Self {
        Self {
            queues: worker.lineup.queues(),
            leftovers: Arc::new(Semaphore::new(worker.settings.slots.max(1))),
            short_slot: ShortSlot::new(worker.settings.slots, worker.settings.short_slot_memory),
            pauses: ObeyedPauses::new(&worker),
            outage: OutageLog::new("claims", &worker.clock),
            lived: Stopwatch::start(&worker.patience),
            runs: JoinSet::new(),
            worker,
            keeper,
            shutdown,
        }
    }

    /// Claims tasks of all queues for these slots; returns whether there were any.
    async fn claim_tasks(&mut self, mut slots: Vec<OwnedSemaphorePermit>) -> bool {
        let patience = self.worker.patience.clone();
        let Some(paused) = self.pauses.current().await else {
            return false;
        };
        // An engine may have been in use when its room was promised to another. If it is idle by
        // now, it leaves, and the other engine has its turn in a later round.
        for device in self.worker.lineup.devices() {
            device.make_way(patience.steady());
        }
        let readiness = self.worker.backoff.readiness();
        readiness.set_engines_usable(self.worker.lineup.is_usable());
        let mut has_any = false;
        for place in queue_order(&self.queues, patience.steady()) {
            let queue = &self.queues[place];
            if slots.is_empty() {
                continue;
            }
            let long_tasks = self.short_slot.long_tasks(queue, patience.steady());
            // A paused model is asked for like the others, and the answer is that nothing waits: so an
            // engine that was promised room on its device gives it back.
            let mut request = ClaimRequest {
                paused: paused.clone(),
                ..self.request(&queue.models, long_tasks)
            };
            if !has_room(&self.worker, queue, &request).await {
                continue;
            }
            let seats = queue.free_seats(slots.len(), &patience);
            if seats.is_empty() {
                continue;
            }
            // Before the call. The store grants the lease at some moment after this one, so the
            // keeper, which counts from here, never believes in a lease for longer than the store
            // does.
            let asked_ms = self.worker.clock.steady_ms();
            request.count = seats.len();
            let asked = claim(&self.worker, request, &self.outage).await;
            let Some(claims) = asked else { continue };
            queue.record_turn(patience.steady());
            has_any |= !claims.is_empty();
            for (claim, seat) in claims.into_iter().zip(seats) {
                let Some(slot) = slots.pop() else { break };
                self.start(claim, asked_ms, slot, seat);
            }
        }
        drop(slots);
        // With few slots, each queue gets its turn to be first.
        if self.queues.len() > 1 {
            self.queues.rotate_left(1);
        }
        while self.runs.try_join_next().is_some() {}
        has_any
    }

    /// A claim of one task of these models.
    fn request(&self, models: &[String], long_tasks: Option<LongTasks>) -> ClaimRequest {
        let settings = &self.worker.settings;
        ClaimRequest {
            worker: settings.name.clone(),
            models: models.to_vec(),
            paused: Pauses::default(),
            count: 1,
            slots: settings.slots.max(1),
            project_slots_max: settings.project_slots_max,
            long_tasks,
            attempts_max: settings.attempts_max,
            is_settled: is_settled(&self.worker, self.lived.elapsed()),
            lease_ms: settings.lease_ms,
        }
    }

    fn start(
        &mut self,
        claim: ClaimedTask,
        asked_ms: SteadyMs,
        slot: OwnedSemaphorePermit,
        mut seat: EngineSeat,
    ) {
        seat.begin();
        self.worker.backoff.record_run();
        let task = &claim.task;
        let now = self.worker.patience.steady();
        let cost = self.short_slot.start(task, now);
        let freed = &self.worker.lineup.freed;
        self.runs.spawn(run_task(
            self.worker.clone(),
            claim,
            asked_ms,
            self.keeper.clone(),
            EnginePermits::new(slot, cost, seat, &self.leftovers, freed),
            self.shutdown.clone(),
        ));
    }
}

/// The order in which queues are asked: urgent ones first, the one that was asked the longest ago before others, and
/// last those whose engines have no room yet. The others keep their order.
fn queue_order(queues: &[EngineQueue], now: Duration) -> Vec<usize> {
    let mut places: Vec<usize> = (0..queues.len()).collect();
    // Smaller keys come first: subtracting from the maximum puts the longest wait at the front. The
    // sort is stable, so among equals the rotation of the queues decides.
    places.sort_by_cached_key(|place| {
        let Some(placement) = &queues[*place].placement else {
            return (1, Duration::ZERO);
        };
        match (placement.urgency(now), placement.admission(now)) {
            (Some(passed), _) => (0, Duration::MAX.saturating_sub(passed)),
            (None, EngineAdmission::Open) => (1, Duration::ZERO),
            (None, _) => (2, Duration::ZERO),
        }
    });
    places
}

/// Whether the engine of a queue has room. If others must leave first, and a task waits for it, they begin to: it is
/// claimed in a later turn, so that no task is held while an engine leaves.
async fn has_room(worker: &Worker, queue: &EngineQueue, one: &ClaimRequest) -> bool {
    let Some(placement) = &queue.placement else {
        return true;
    };
    match placement.admission(worker.patience.steady()) {
        EngineAdmission::Open => return true,
        EngineAdmission::Closed => return false,
        EngineAdmission::Full => {}
    }
    match worker.work.has_claimable(one).await {
        Ok(true) => placement.invite(worker.patience.steady()),
        Ok(false) => placement.record_turn(worker.patience.steady()),
        Err(error) => tracing::debug!(%error, "waiting tasks of an engine without room not read"),
    }
    false
}

/// Waits until there may be a task to claim and a slot for it.
async fn wait_for_work(hints: &mut watch::Receiver<u64>, freed: &Notify, shutdown: &Shutdown) {
    tokio::select! {
        biased;
        // Without hints, rely on polling.
        Ok(()) = hints.changed() => {}
        () = freed.notified() => {}
        () = tokio::time::sleep(POLL_EVERY) => {}
        () = shutdown.draining() => {}
    }
}

/// `first`, and a permit for every other slot that is free now.
fn acquire_free_slots(
    first: OwnedSemaphorePermit,
    slots: &Arc<Semaphore>,
) -> Vec<OwnedSemaphorePermit> {
    let others = std::iter::from_fn(|| slots.clone().try_acquire_owned().ok());
    std::iter::once(first).chain(others).collect()
}

/// Claims tasks; `None` if the store refuses.
async fn claim(
    worker: &Worker,
    request: ClaimRequest,
    outage: &OutageLog,
) -> Option<Vec<ClaimedTask>> {
    match worker.work.claim(request).await {
        Ok(claims) => {
            outage.record_success();
            Some(claims)
        }
        Err(error) => {
            outage.record_failure(&error);
            None
        }
    }
}

/// Waits for the runs up to the drain limit, then tells them to give their tasks back.
async fn finish_runs(worker: &Worker, mut runs: JoinSet<()>, shutdown: &Shutdown) {
    if !runs.is_empty() {
        let limit = worker.settings.drain_limit;
        tracing::info!(
            tasks = runs.len(),
            ?limit,
            "finishing running tasks before the stop"
        );
    }
    let limit = tokio::time::sleep(worker.settings.drain_limit);
    tokio::pin!(limit);
    loop {
        tokio::select! {
            biased;
            joined = runs.join_next() => {
                if joined.is_none() {
                    return;
                }
            }
            // An elapsed sleep is ready for ever. After the limit, only the runs are waited for:
            // each of them gives its task back within moments.
            () = &mut limit, if !limit.is_elapsed() => shutdown.now(),
        }
    }
}
