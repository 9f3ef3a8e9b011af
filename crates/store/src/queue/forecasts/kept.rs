//! Caches forecasts until they are outdated or, for long queues, too old.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::board::Board;
use super::forecast::Forecast;

/// With up to this many waiting tasks, every question gets a new forecast.
const SHORT: usize = 64;
const AGE_MAX: Duration = Duration::from_millis(250);

/// The last forecast.
#[derive(Debug)]
pub(super) struct Kept<F> {
    outdated: AtomicBool,
    dated: RwLock<Dated<F>>,
}

#[derive(Debug, Default)]
struct Dated<F> {
    forecast: Arc<F>,
    /// Time of the forecast, by the store's steady clock.
    made: Option<Duration>,
}

impl<F: Default> Default for Kept<F> {
    fn default() -> Self {
        Self {
            outdated: AtomicBool::new(true),
            dated: RwLock::default(),
        }
    }
}

impl<F: Forecast> Kept<F> {
    /// Marks the forecast as outdated: the coming turns may differ.
    pub(super) fn outdate(&self) {
        self.outdated.store(true, Ordering::Release);
    }

    pub(super) fn outdate_if_old(&self, now: Duration) {
        let dated = self.dated.read().unwrap_or_else(PoisonError::into_inner);
        if dated.is_old(now) {
            self.outdate();
        }
    }

    /// The forecast, renewed if necessary.
    pub(super) fn look(&self, board: &Mutex<Board>, now: Duration) -> Arc<F> {
        let dated = self.dated.read().unwrap_or_else(PoisonError::into_inner);
        if !self.outdated.load(Ordering::Acquire) || dated.is_fresh(now) {
            return dated.forecast.clone();
        }
        drop(dated);
        let board = board.lock().unwrap_or_else(PoisonError::into_inner);
        // Another question may have renewed it while this one waited for the lock.
        if self.outdated.swap(false, Ordering::AcqRel) {
            let new = Dated {
                forecast: Arc::new(F::of(&board, now)),
                made: Some(now),
            };
            *self.dated.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
        drop(board);
        let dated = self.dated.read().unwrap_or_else(PoisonError::into_inner);
        dated.forecast.clone()
    }
}

impl<F: Forecast> Dated<F> {
    fn is_fresh(&self, now: Duration) -> bool {
        self.forecast.waiting() > SHORT && !self.is_old(now)
    }

    fn is_old(&self, now: Duration) -> bool {
        let is_old = |made: Duration| now.saturating_sub(made) >= AGE_MAX;
        self.made.is_none_or(is_old)
    }
}
