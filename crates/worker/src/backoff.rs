//! Holds claims back after a fault of this machine, so that no result is lost for lack of storage.
//! After a pause, [`crate::upkeep`] tests the result store, with doubling pauses until it accepts a
//! file. Then the worker claims one task at a time, again with doubling pauses, until one completes.
//! Meanwhile `/readyz` reports the fault.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_contract::{Clock, WorkerReadiness};
use tokio::sync::Notify;

const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause between two claims that end with a fault although the probe before them succeeded.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Longest pause between two probes: they cost little, and clients wait for the service.
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often the claim loop checks whether a probe has ended.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// The state of this machine from the worker's point of view; clones share it.
#[derive(Clone, Debug)]
pub struct FaultBackoff {
    /// Measures the pauses.
    clock: Arc<dyn Clock>,
    trouble: Arc<Mutex<Option<FaultState>>>,
    /// Woken when trouble begins.
    begun: Arc<Notify>,
    readiness: WorkerReadiness,
}

/// There was a fault, and no task has completed since.
#[derive(Clone, Copy, Debug)]
struct FaultState {
    stage: RecoveryStage,
    pause: Duration,
    /// End of the current pause, by the steady time of the clock.
    until: Duration,
    /// Number of failed probes, for the log.
    failed: u32,
}

/// The worker's steps since the last fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryStage {
    /// Nothing, or a probe that failed.
    Away,
    /// A probe that succeeded.
    Probed,
    /// A test task was claimed and has not failed yet.
    Trying,
}

/// How many tasks the worker may claim now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimAllowance {
    /// As many as there are free slots.
    All,
    /// One task, to test whether the fault is over.
    One,
    /// None for this long.
    Wait(Duration),
}

impl FaultBackoff {
    /// Creates a state that reports to `readiness` and measures its pauses by `clock`.
    #[must_use]
    pub fn new(readiness: WorkerReadiness, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            trouble: Arc::default(),
            begun: Arc::default(),
            readiness,
        }
    }

    /// The state that `/readyz` reports.
    pub(crate) const fn readiness(&self) -> &WorkerReadiness {
        &self.readiness
    }

    /// Records that a fault of this machine ended a run. Several runs that meet the same fault
    /// count as one.
    pub(crate) fn record_fault(&self, error: &dyn Error) {
        self.record_fault_at(self.clock.steady(), error);
    }

    /// Records that a task completed.
    pub(crate) fn record_success(&self) {
        if let Some(trouble) = self.trouble().take() {
            self.readiness.set_storable(true);
            tracing::info!(
                probes_failed = trouble.failed,
                "storage recovered; claiming tasks again"
            );
        }
    }

    /// Records the result of a probe of the result store.
    pub(crate) fn record_probe(&self, probed: &Result<(), BlobError>) {
        self.record_probe_at(self.clock.steady(), probed);
    }

    /// The number of tasks that the worker may claim now.
    pub(crate) fn claim_allowance(&self) -> ClaimAllowance {
        self.claim_allowance_at(self.clock.steady())
    }

    /// Records that a run begins. If it tests whether a fault is over, no other begins during the pause.
    pub(crate) fn record_run(&self) {
        self.record_run_at(self.clock.steady());
    }

    /// Time until the next probe of the result store; `None` if none is needed.
    pub(crate) fn next_probe(&self) -> Option<Duration> {
        let trouble = (*self.trouble()).filter(|trouble| trouble.stage == RecoveryStage::Away)?;
        Some(trouble.until.saturating_sub(self.clock.steady()))
    }

    /// Waits until trouble begins.
    pub(crate) async fn trouble_begins(&self) {
        self.begun.notified().await;
    }

    fn record_fault_at(&self, now: Duration, error: &dyn Error) {
        let mut state = self.trouble();
        // Example: the disk fills up at 12:00:00. Probes follow at :01, :03, :07, :15 and then
        // every 10 s. The first one that succeeds admits a single task. If that fails with a fault
        // too, the pause doubles again, up to 30 s; once a task completes, everything is as before.
        let (pause, failed) = match *state {
            None => {
                tracing::error!(%error, "storage failing; claims paused until it recovers");
                (PAUSE_MIN, 0)
            }
            Some(FaultState {
                stage: RecoveryStage::Trying,
                pause,
                failed,
                ..
            }) => ((pause * 2).min(PAUSE_MAX), failed),
            // Other runs that met the same fault.
            Some(_) => return,
        };
        *state = Some(FaultState {
            stage: RecoveryStage::Away,
            pause,
            until: now + pause,
            failed,
        });
        self.readiness.set_storable(false);
        self.begun.notify_one();
    }

    fn record_probe_at(&self, now: Duration, probed: &Result<(), BlobError>) {
        let mut state = self.trouble();
        let away = state.as_mut();
        let Some(trouble) = away.filter(|trouble| trouble.stage == RecoveryStage::Away) else {
            return;
        };
        match probed {
            Ok(()) => {
                trouble.stage = RecoveryStage::Probed;
                self.readiness.set_storable(true);
                tracing::info!(
                    probes_failed = trouble.failed,
                    "result store accepts files; claiming one task"
                );
            }
            Err(error) => {
                tracing::debug!(%error, "result store still failing");
                trouble.failed += 1;
                // Failed tasks may have raised the pause above the maximum of probes; a failed
                // probe must not lower it.
                trouble.pause = trouble.pause.max((trouble.pause * 2).min(PROBE_PAUSE_MAX));
                trouble.until = now + trouble.pause;
            }
        }
    }

    fn record_run_at(&self, now: Duration) {
        let mut state = self.trouble();
        let probed = state.as_mut();
        // Only from here on does the pause count: a claim that found no task has tested nothing.
        if let Some(trouble) = probed.filter(|trouble| trouble.stage != RecoveryStage::Away) {
            trouble.stage = RecoveryStage::Trying;
            trouble.until = now + trouble.pause;
        }
    }

    fn claim_allowance_at(&self, now: Duration) -> ClaimAllowance {
        let mut state = self.trouble();
        let Some(trouble) = state.as_mut() else {
            return ClaimAllowance::All;
        };
        match trouble.stage {
            RecoveryStage::Away => ClaimAllowance::Wait(CHECK_EVERY),
            RecoveryStage::Trying if now < trouble.until => {
                ClaimAllowance::Wait(trouble.until - now)
            }
            // If the claim finds no task, the next one need not wait: only a run begins the pause.
            RecoveryStage::Trying | RecoveryStage::Probed => ClaimAllowance::One,
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<FaultState>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{ManualClock, StandstillReason};

    use super::*;

    fn backoff(readiness: WorkerReadiness) -> FaultBackoff {
        FaultBackoff::new(readiness, Arc::new(ManualClock::default()))
    }

    fn full() -> std::io::Error {
        std::io::ErrorKind::StorageFull.into()
    }

    #[test]
    fn pauses_between_claims_double_up_to_their_bound_and_end_with_a_success() {
        let (backoff, mut now) = (backoff(WorkerReadiness::default()), Duration::ZERO);
        assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::All);
        let mut pause = PAUSE_MIN;
        for _ in 0..8 {
            // Two runs meet the same fault.
            backoff.record_fault_at(now, &full());
            backoff.record_fault_at(now, &full());
            // Nothing is claimed before the result store was probed.
            assert_eq!(
                backoff.claim_allowance_at(now + 2 * pause),
                ClaimAllowance::Wait(CHECK_EVERY)
            );
            backoff.record_probe_at(now, &Ok(()));
            assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::One);
            backoff.record_run_at(now);
            // While the one task runs there is no other.
            assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::Wait(pause));
            now += pause;
            assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::One);
            backoff.record_run_at(now);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        assert_eq!(pause, PAUSE_MAX);
        backoff.record_success();
        assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::All);
        backoff.record_fault_at(now, &full());
        assert_eq!(
            backoff.claim_allowance_at(now),
            ClaimAllowance::Wait(CHECK_EVERY)
        );
    }

    #[test]
    fn a_claim_without_a_task_delays_no_later_one() {
        let (backoff, now) = (backoff(WorkerReadiness::default()), Duration::ZERO);
        backoff.record_run_at(now);
        assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::All);
        backoff.record_fault_at(now, &full());
        // It began before the fault.
        backoff.record_run_at(now);
        assert_eq!(
            backoff.claim_allowance_at(now),
            ClaimAllowance::Wait(CHECK_EVERY)
        );
        backoff.record_probe_at(now, &Ok(()));
        for _ in 0..3 {
            assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::One);
        }
        backoff.record_run_at(now);
        assert_eq!(
            backoff.claim_allowance_at(now),
            ClaimAllowance::Wait(PAUSE_MIN)
        );
        let later = now + PAUSE_MIN;
        for _ in 0..3 {
            assert_eq!(backoff.claim_allowance_at(later), ClaimAllowance::One);
        }
        backoff.record_run_at(later);
        assert_eq!(
            backoff.claim_allowance_at(later),
            ClaimAllowance::Wait(PAUSE_MIN)
        );
    }

    #[test]
    fn pauses_between_probes_double_up_to_their_bound() {
        let (backoff, mut now) = (backoff(WorkerReadiness::default()), Duration::ZERO);
        assert_eq!(backoff.next_probe(), None);
        backoff.record_fault_at(now, &full());
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let trouble = backoff.trouble().unwrap();
            pauses.push((trouble.until - now).as_secs());
            now = trouble.until;
            backoff.record_probe_at(now, &Err(full().into()));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
        backoff.record_probe_at(now, &Ok(()));
        assert_eq!(backoff.next_probe(), None);
        assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::One);
    }

    #[test]
    fn tasks_cannot_be_run_between_a_fault_and_a_probe_that_goes_well() {
        let readiness = WorkerReadiness::default();
        let (backoff, now) = (backoff(readiness.clone()), Duration::ZERO);
        for _ in 0..2 {
            assert_eq!(readiness.standstill(), None);
            backoff.record_fault_at(now, &full());
            assert_eq!(readiness.standstill(), Some(StandstillReason::Results));
            backoff.record_probe_at(now, &Err(full().into()));
            assert_eq!(readiness.standstill(), Some(StandstillReason::Results));
            backoff.record_probe_at(now, &Ok(()));
            assert_eq!(readiness.standstill(), None);
            assert_eq!(backoff.claim_allowance_at(now), ClaimAllowance::One);
            backoff.record_run_at(now);
        }
        backoff.record_fault_at(now, &full());
        assert_eq!(readiness.standstill(), Some(StandstillReason::Results));
        // A run that was begun before the fault.
        backoff.record_success();
        assert_eq!(readiness.standstill(), None);
    }
}
