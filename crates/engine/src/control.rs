//! Communication between an engine and its caller during a clip: progress, previews and the chosen
//! place from the engine, a cancel from the caller. Either side may read at any time, from any
//! thread; nothing blocks.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::Money;
use tokio::sync::watch;

use crate::places::{FailedJob, Places};
use crate::{EngineError, RgbPicture};

/// The stage of an engine's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStage {
    /// Work before the first frame: reading weights, laying out scenes.
    Preparing,
    /// Making frames.
    Generating,
    /// Work after the last frame.
    Finishing,
}

/// A request to stop, shared by all who may cancel and all who must obey.
#[derive(Clone, Debug, Default)]
pub struct CancelRequest(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_made: AtomicBool,
    /// Whether the next progress above 0 makes the request.
    waits_for_progress: AtomicBool,
}

impl CancelRequest {
    /// Requests a stop. Irreversible.
    pub fn cancel(&self) {
        self.0.is_made.store(true, Ordering::Release);
    }

    /// Requests a stop at the first progress above 0: in the middle of the computation, however
    /// long it takes to begin. Irreversible.
    pub fn cancel_at_progress(&self) {
        self.0.waits_for_progress.store(true, Ordering::Release);
    }

    /// Whether a stop was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_made.load(Ordering::Acquire)
    }

    fn record_progress(&self, fraction: f64) {
        if fraction > 0.0 && self.0.waits_for_progress.load(Ordering::Acquire) {
            self.cancel();
        }
    }
}

/// Progress of a clip. The fraction never decreases.
#[derive(Clone, Debug, Default)]
pub struct JobProgress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    /// Parts per million in the low half; a count of reports in the high half, so a watcher sees
    /// signs of life even when the fraction stands still.
    packed: AtomicU64,
    /// Whether a report was lower than one before it.
    has_fallen: AtomicBool,
    /// Whether a report was not between 0.0 and 1.0.
    left_range: AtomicBool,
}

impl JobProgress {
    const PARTS: f64 = 1_000_000.0;

    /// The fraction done, 0.0 to 1.0.
    pub fn fraction(&self) -> f64 {
        (self.0.packed.load(Ordering::Acquire) & 0xffff_ffff) as f64 / Self::PARTS
    }

    /// The number of reports so far; a count that stands still means a hung engine.
    pub fn reports(&self) -> u64 {
        self.0.packed.load(Ordering::Acquire) >> 32
    }

    /// Whether the engine reported a lower fraction than before. [`JobProgress::fraction`] hides that.
    pub fn has_fallen(&self) -> bool {
        self.0.has_fallen.load(Ordering::Acquire)
    }

    /// Whether the engine reported anything but 0.0 to 1.0. [`JobProgress::fraction`] hides that.
    pub fn has_left_range(&self) -> bool {
        self.0.left_range.load(Ordering::Acquire)
    }

    fn report(&self, fraction: f64) {
        if !(0.0..=1.0).contains(&fraction) {
            self.0.left_range.store(true, Ordering::Release);
        }
        // NaN becomes 0 here; the check above has recorded it.
        let parts = (fraction.clamp(0.0, 1.0) * Self::PARTS).round() as u64;
        let packed = &self.0.packed;
        // The closure always returns `Some`, so the update cannot fail.
        // One atomic word, so a reader never sees the count of one report with the fraction of
        // another.
        let updated = packed.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
            let reports = (old >> 32).wrapping_add(1) & 0xffff_ffff;
            Some((reports << 32) | parts.max(old & 0xffff_ffff))
        });
        if let Ok(old) = updated
            && parts < old & 0xffff_ffff
        {
            self.0.has_fallen.store(true, Ordering::Release);
        }
    }
}

/// The engine's side: reports progress and checks for a cancel.
#[derive(Clone, Debug, Default)]
pub struct JobControl {
    /// Requests a stop.
    pub cancel: CancelRequest,
    /// The engine's progress.
    pub progress: JobProgress,
    /// The latest preview.
    pub preview: PreviewSlot,
    /// The place where the engine makes the clip.
    pub place: JobPlace,
    cost: ReportedCost,
    submit: SubmitInFlight,
}

/// Whether a submit that may be charged has no answer yet; clones share it.
#[derive(Clone, Debug)]
struct SubmitInFlight(Arc<watch::Sender<bool>>);

impl Default for SubmitInFlight {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

/// What a provider said that the job costs; clones share it.
#[derive(Clone, Debug, Default)]
struct ReportedCost(Arc<Mutex<Option<Money>>>);

impl JobControl {
    /// Reports whether a submit that may be charged is in flight: until its answer is stored, a process that stops waits a
    /// moment for it.
    pub fn report_submit(&self, is_in_flight: bool) {
        self.submit.0.send_replace(is_in_flight);
    }

    /// Waits until no such submit is in flight.
    pub async fn submit_settled(&self) {
        let mut submit = self.submit.0.subscribe();
        // An error would mean that nobody can report one any more.
        let _ = submit.wait_for(|is_in_flight| !is_in_flight).await;
    }

    /// Reports what a provider charges for the job. A later report replaces an earlier one. It counts whether the job
    /// succeeds or fails, if it is in the currency of the service.
    pub fn report_cost(&self, charged: Money) {
        // Nothing panics while holding the lock, so a poisoned lock is still valid.
        let mut cost = self.cost.0.lock().unwrap_or_else(PoisonError::into_inner);
        *cost = Some(charged);
    }

    /// What the provider reported last, if anything.
    pub fn reported_cost(&self) -> Option<Money> {
        *self.cost.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports `fraction` (0.0 to 1.0) of `stage` as done and checks for a cancel.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] if a stop was requested.
    pub fn report(&self, stage: WorkStage, fraction: f64) -> Result<(), EngineError> {
        self.forward_progress(match stage {
            // Preparing takes about a twentieth of a typical clip, finishing less: the shares
            // only need to keep the bar from jumping.
            WorkStage::Preparing => fraction * 0.05,
            WorkStage::Generating => 0.05 + fraction * 0.93,
            WorkStage::Finishing => 0.98 + fraction * 0.02,
        })
    }

    /// Forwards another control's [`JobProgress::fraction`] and checks for a cancel.
    ///
    /// # Errors
    /// As [`JobControl::report`].
    pub fn forward_progress(&self, fraction: f64) -> Result<(), EngineError> {
        self.progress.report(fraction);
        // Before the check, so a cancel that waits for progress takes effect with this very
        // report.
        self.cancel.record_progress(fraction);
        if self.cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        Ok(())
    }
}

/// Slot for the latest preview, filled by an engine and emptied by its caller. Nothing blocks: a
/// new preview replaces one that was not taken.
#[derive(Clone, Default)]
pub struct PreviewSlot(Arc<Mutex<Option<RgbPicture>>>);

impl PreviewSlot {
    /// Stores a preview, replacing one that was not taken.
    pub fn show(&self, picture: RgbPicture) {
        *self.slot() = Some(picture);
    }

    /// Whether the last preview was taken: only then is an expensive one worth making.
    pub fn is_wanted(&self) -> bool {
        self.slot().is_none()
    }

    /// Takes the latest preview.
    pub fn take(&self) -> Option<RgbPicture> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<RgbPicture>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PreviewSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Preview").field(&*self.slot()).finish()
    }
}

/// The place of a job; clones share it.
#[derive(Clone, Debug, Default)]
pub struct JobPlace(Arc<Mutex<JobPlaceState>>);

#[derive(Debug, Default)]
struct JobPlaceState {
    avoid: Vec<String>,
    chosen: Option<(Arc<Places>, usize)>,
}

impl JobPlace {
    /// Sets the places that the engine should not choose.
    pub fn set_avoided(&self, names: Vec<String>) {
        self.lock().avoid = names;
    }

    /// Names of places that the engine must avoid while it has others.
    pub fn avoided(&self) -> Vec<String> {
        self.lock().avoid.clone()
    }

    /// Records the engine's choice.
    pub fn set_chosen(&self, places: &Arc<Places>, index: usize) {
        self.lock().chosen = Some((Arc::clone(places), index));
    }

    /// The places of the engine, and the name of the chosen one. `None` for an engine without
    /// places, and before the choice.
    pub fn chosen(&self) -> Option<(Arc<Places>, String)> {
        let state = self.lock();
        let (places, index) = state.chosen.as_ref()?;
        Some((Arc::clone(places), places.name(*index).to_owned()))
    }

    /// Records that the job succeeded there.
    pub fn record_success(&self) {
        if let Some((places, index)) = self.lock().chosen.clone() {
            places.record_success(index);
        }
    }

    /// Records that the job failed there.
    pub fn record_job_failure(&self, job: FailedJob<'_>) {
        if let Some((places, index)) = self.lock().chosen.clone() {
            places.record_job_failure(index, job);
        }
    }

    /// Nothing panics while holding the lock, so a poisoned lock is still valid.
    fn lock(&self) -> MutexGuard<'_, JobPlaceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{Amount, Currency, Size};

    use super::*;

    #[test]
    fn progress_never_falls_and_every_report_is_a_sign_of_life() {
        let control = JobControl::default();
        control.report(WorkStage::Generating, 0.5).unwrap();
        let half = control.progress.fraction();
        assert!(!control.progress.has_fallen());
        control.report(WorkStage::Preparing, 0.1).unwrap();
        assert!((control.progress.fraction() - half).abs() < 1e-9);
        assert_eq!(control.progress.reports(), 2);
        assert!(control.progress.has_fallen() && !control.progress.has_left_range());
        control.report(WorkStage::Finishing, 7.0).unwrap();
        assert!((control.progress.fraction() - 1.0).abs() < 1e-9);
        assert!(control.progress.has_left_range());
    }

    #[test]
    fn the_same_progress_again_is_no_fall() {
        let control = JobControl::default();
        for step in 0..1_000 {
            control.forward_progress(f64::from(step) / 999.0).unwrap();
            control
                .forward_progress(control.progress.fraction())
                .unwrap();
        }
        assert!(!control.progress.has_fallen() && !control.progress.has_left_range());
    }

    #[test]
    fn a_cancel_is_seen_at_the_next_report() {
        let control = JobControl::default();
        control.cancel.cancel();
        let seen = control.report(WorkStage::Generating, 0.1);
        assert!(matches!(seen, Err(EngineError::Cancelled)));
    }

    #[test]
    fn a_cancel_can_wait_for_the_first_progress() {
        let control = JobControl::default();
        control.cancel.cancel_at_progress();
        control.report(WorkStage::Preparing, 0.0).unwrap();
        assert!(!control.cancel.is_cancelled());
        let seen = control.forward_progress(0.01);
        assert!(matches!(seen, Err(EngineError::Cancelled)));
    }

    #[test]
    fn the_last_reported_cost_counts() {
        let control = JobControl::default();
        assert_eq!(control.reported_cost(), None);
        let charged = |micros| Money {
            amount: Amount::from_micros(micros),
            currency: Currency::USD,
        };
        control.report_cost(charged(1));
        control.clone().report_cost(charged(2));
        assert_eq!(control.reported_cost(), Some(charged(2)));
    }

    #[test]
    fn the_latest_preview_is_taken_once() {
        let preview = PreviewSlot::default();
        let picture = |grey: u8| RgbPicture {
            size: Size::new(1, 1),
            rgb: vec![grey; 3],
        };
        assert!(preview.is_wanted());
        preview.show(picture(1));
        preview.clone().show(picture(2));
        assert!(!preview.is_wanted());
        assert_eq!(preview.take(), Some(picture(2)));
        assert_eq!(preview.take(), None);
    }
}
