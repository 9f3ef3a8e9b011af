//! What an engine and its caller tell each other while a clip is made: progress and previews one
//! way, cancel the other. Both sides may look at any time, from any thread; nothing blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{EngineError, Preview};

/// What an engine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading weights, laying out scenes: work before the first frame.
    Preparing,
    /// Making frames.
    Generating,
    /// Work after the last frame.
    Finishing,
}

/// A request to stop, shared by everyone who may ask and everyone who must obey.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks for a stop. It cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// How far a clip is. The fraction never falls.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Parts per million in the low half; counts reports in the high half, so that a
    /// watcher sees life even when the fraction stands still.
    packed: Arc<AtomicU64>,
}

impl Progress {
    const PARTS: f64 = 1_000_000.0;

    /// The fraction done, 0.0 to 1.0.
    pub fn fraction(&self) -> f64 {
        (self.packed.load(Ordering::Acquire) & 0xffff_ffff) as f64 / Self::PARTS
    }

    /// How many reports came so far; a watcher that sees it stand still sees a hung engine.
    pub fn reports(&self) -> u64 {
        self.packed.load(Ordering::Acquire) >> 32
    }

    fn report(&self, fraction: f64) {
        let parts = (fraction.clamp(0.0, 1.0) * Self::PARTS) as u64;
        let step = |old: u64| {
            let reports = (old >> 32).wrapping_add(1) & 0xffff_ffff;
            Some((reports << 32) | parts.max(old & 0xffff_ffff))
        };
        // The closure always answers `Some`, so the update cannot fail.
        let _ = self
            .packed
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
    }
}

/// The engine's end: where it reports and where it looks for a cancel.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Asks the engine to stop.
    pub cancel: Cancel,
    /// What the engine reported.
    pub progress: Progress,
    /// What the clip looks like so far.
    pub preview: Preview,
}

impl Control {
    /// Reports `fraction` (0.0 to 1.0) of `stage` as done and looks for a cancel.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] when a stop was asked for.
    pub fn report(&self, stage: Stage, fraction: f64) -> Result<(), EngineError> {
        self.pass_on(match stage {
            Stage::Preparing => fraction * 0.05,
            Stage::Generating => 0.05 + fraction * 0.93,
            Stage::Finishing => 0.98 + fraction * 0.02,
        })
    }

    /// Reports what another control's [`Progress::fraction`] was, and looks for a cancel.
    ///
    /// # Errors
    /// As [`Control::report`].
    pub fn pass_on(&self, fraction: f64) -> Result<(), EngineError> {
        self.progress.report(fraction);
        if self.cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_never_falls_and_every_report_is_a_sign_of_life() {
        let control = Control::default();
        control.report(Stage::Generating, 0.5).unwrap();
        let half = control.progress.fraction();
        control.report(Stage::Preparing, 0.1).unwrap();
        assert!((control.progress.fraction() - half).abs() < 1e-9);
        assert_eq!(control.progress.reports(), 2);
        control.report(Stage::Finishing, 7.0).unwrap();
        assert!((control.progress.fraction() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_cancel_is_seen_at_the_next_report() {
        let control = Control::default();
        control.cancel.cancel();
        let seen = control.report(Stage::Generating, 0.1);
        assert!(matches!(seen, Err(EngineError::Cancelled)));
    }
}
