//! The server's clock, which judges leases for all processes, and this process's steady clock, by which a step of the
//! server's clock shows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{Clock, Reading, SteadyMs, UnixMs};

use crate::Time;
use crate::present::{EarlierClock, Present};

/// Difference between two readings that is a step. A healthy worker's lease has more time left.
const STEP_MS: u64 = 1_000;
/// Maximum number of remembered clocks; the oldest is forgotten first.
const CLOCKS_MAX: usize = 16;

/// The server's clock as this process has read it.
#[derive(Debug)]
pub(super) struct ServerClock {
    clock: Arc<dyn Clock>,
    time: Time,
    /// Oldest first; the last one is the present one.
    known: Mutex<VecDeque<KnownClock>>,
}

/// The server's clock between two steps.
#[derive(Clone, Copy, Debug)]
struct KnownClock {
    /// Bounds of wall time minus steady time: the server read its clock after the request and before the answer.
    least_ms: i64,
    most_ms: i64,
    /// When the clock was set to this time, or was first read.
    began: SteadyMs,
}

impl ServerClock {
    pub(super) fn new(clock: Arc<dyn Clock>, time: Time) -> Self {
        Self {
            clock,
            time,
            known: Mutex::default(),
        }
    }

    /// Steady time, to pass to [`ServerClock::present`] with the answer of a request that is sent now.
    pub(super) fn asked(&self) -> SteadyMs {
        self.clock.steady_ms()
    }

    /// The present time where the server's clock does not count.
    pub(super) fn own(&self) -> Option<Present> {
        (self.time == Time::Clock).then(|| Present::steady(self.clock.read()))
    }

    /// The present time, for the server's answer to a request of then.
    pub(super) fn present(&self, wall_ms: UnixMs, asked: SteadyMs) -> Present {
        if let Some(own) = self.own() {
            return own;
        }
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
            // No later than it would show.
            shows_ms: asked.saturating_add_signed(earlier.least_ms),
            set_ms_ago: answered.saturating_sub(ended),
        });
        let now = Reading {
            wall_ms,
            steady_ms: asked,
        };
        Present::of_server(now, earlier.collect())
    }
}

impl KnownClock {
    fn agrees_with(&self, fresh: &Self) -> bool {
        let step_ms = STEP_MS.cast_signed();
        fresh.least_ms <= self.most_ms + step_ms && self.least_ms <= fresh.most_ms + step_ms
    }

    /// Takes over a reading that is as exact: the clocks of two machines drift apart.
    fn refine(&mut self, fresh: &Self) {
        let width_ms = |known: &Self| known.most_ms.saturating_sub(known.least_ms);
        if width_ms(fresh) <= width_ms(self).max(STEP_MS.cast_signed() / 10) {
            (self.least_ms, self.most_ms) = (fresh.least_ms, fresh.most_ms);
        }
    }
}

fn difference(wall_ms: UnixMs, steady_ms: SteadyMs) -> i64 {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / 2);
    signed(wall_ms).saturating_sub(signed(steady_ms))
}
