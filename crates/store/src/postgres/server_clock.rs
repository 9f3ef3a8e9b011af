//! The server's clock, by which all processes judge leases. This process compares each reading with its own
//! steady clock, and so notices when somebody sets the server's clock. Leases given before such a step are
//! judged by the clock that they were given by.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{Clock, ClockReading, SteadyMs, UnixMs};

use crate::TimeSource;
use crate::present_time::{EarlierClock, PresentTime};

/// Difference between two readings that is a step. A healthy worker's lease has more time left.
const STEP_MS: u64 = 1_000;
/// Maximum number of remembered clocks; the oldest is forgotten first.
const CLOCKS_MAX: usize = 16;

/// The server's clock as this process has read it.
#[derive(Debug)]
pub(super) struct ServerClock {
    clock: Arc<dyn Clock>,
    time: TimeSource,
    /// Oldest first; the last one is the present one.
    known: Mutex<VecDeque<KnownClock>>,
}

/// The server's clock between two steps.
#[derive(Clone, Copy, Debug)]
struct KnownClock {
    /// Bounds of wall time minus steady time: the server read its clock after the request and before the answer.
    least_ms: i64,
    most_ms: i64,
    /// When this process first read the clock with this difference.
    began: SteadyMs,
}

impl ServerClock {
    pub(super) fn new(clock: Arc<dyn Clock>, time: TimeSource) -> Self {
        Self {
            clock,
            time,
            known: Mutex::default(),
        }
    }

    /// Steady time, to pass to [`ServerClock::present`] with the answer of a request that is sent now.
    pub(super) fn start_reading(&self) -> SteadyMs {
        self.clock.steady_ms()
    }

    /// The present time, if the options say that the process's own clock counts.
    pub(super) fn local_present(&self) -> Option<PresentTime> {
        (self.time == TimeSource::Clock).then(|| PresentTime::steady(self.clock.read()))
    }

    /// The present time, from the server's answer `wall_ms` to a request that was sent at `asked`.
    pub(super) fn present(&self, wall_ms: UnixMs, asked: SteadyMs) -> PresentTime {
        if let Some(own) = self.local_present() {
            return own;
        }
        // The server read its clock at some time between request and answer, so the difference of the two
        // clocks has bounds. Example: asked at steady 1,000, answered at 1,040, the server says 500,000: the
        // difference is 498,960 to 499,000. A later reading whose bounds lie more than a second outside of
        // these shows that the clock was set.
        let answered = self.clock.steady_ms();
        let fresh = KnownClock {
            least_ms: difference(wall_ms, answered),
            most_ms: difference(wall_ms, asked),
            began: answered,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.back_mut() {
            Some(last) if last.agrees_with(&fresh) => last.refine(&fresh),
            _ => known.push_back(fresh),
        }
        if known.len() > CLOCKS_MAX {
            known.pop_front();
        }
        let ends = known.iter().skip(1).map(|next| next.began);
        let earlier = known.iter().zip(ends).map(|(earlier, ended)| EarlierClock {
            // The lower bound of what it would show, so that no lease ends early.
            shows_ms: asked.saturating_add_signed(earlier.least_ms),
            set_ms_ago: answered.saturating_sub(ended),
        });
        let now = ClockReading {
            wall_ms,
            steady_ms: asked,
        };
        PresentTime::from_server(now, earlier.collect())
    }
}

impl KnownClock {
    /// The uncertainty of the difference: the time of the round trip.
    const fn width_ms(&self) -> i64 {
        self.most_ms.saturating_sub(self.least_ms)
    }

    fn agrees_with(&self, fresh: &Self) -> bool {
        let step_ms = STEP_MS.cast_signed();
        fresh.least_ms <= self.most_ms + step_ms && self.least_ms <= fresh.most_ms + step_ms
    }

    /// Takes over a reading that is about as exact, since the clocks of two machines drift apart.
    fn refine(&mut self, fresh: &Self) {
        // A reading during a slow round trip has wide bounds and would make the known ones worse. A tenth of
        // a step is exact enough: without that allowance one very fast round trip would fix the bounds for
        // ever, while the clocks drift away from them.
        if fresh.width_ms() <= self.width_ms().max(STEP_MS.cast_signed() / 10) {
            (self.least_ms, self.most_ms) = (fresh.least_ms, fresh.most_ms);
        }
    }
}

fn difference(wall_ms: UnixMs, steady_ms: SteadyMs) -> i64 {
    // Half of the maximum, so that sums and differences of two such values do not overflow.
    let wall_ms = i64::try_from(wall_ms).unwrap_or(i64::MAX / 2);
    wall_ms.saturating_sub(i64::try_from(steady_ms).unwrap_or(i64::MAX / 2))
}
