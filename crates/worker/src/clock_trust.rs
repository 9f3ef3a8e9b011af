//! Whether the wall clock can be trusted: only if it and the monotonic clock have agreed for a
//! while. After a correction, results with times of the earlier clock are kept by postponing their
//! expiry. Pure: readings go in, verdicts come out.

use std::collections::VecDeque;

use kinora_contract::limits::CLOCK_STEP_SECONDS;
use kinora_contract::{ClockReading, RELEASED_MS, SteadyMs, UnixMs};
use kinora_store::{PostponedExpiry, WaitingFrom};

const STEP_MS: u64 = CLOCK_STEP_SECONDS * 1000;
/// Maximum number of remembered eras; the oldest is dropped.
const ERAS_MAX: usize = 16;

/// The clocks that a sweep may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockVerdict {
    /// Whether anything may expire by wall time.
    pub trusts_wall: bool,
    /// How far back waiting counts.
    pub waiting_from: WaitingFrom,
}

/// Ended tasks to keep longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryMove {
    /// The tasks that ended at this time or later.
    pub from_ms: UnixMs,
    /// The tasks that ended before this time.
    pub before_ms: UnixMs,
    /// The added time.
    pub by: PostponedExpiry,
}

/// A period between two steps of the wall clock.
#[derive(Clone, Copy, Debug)]
struct ClockEra {
    /// Wall time minus steady time.
    offset_ms: i64,
    /// The smallest offset of this era and of earlier ones that are no longer remembered.
    least_offset_ms: i64,
    /// The offset of the clock by which results of this era expire: later than its own once they
    /// are postponed.
    expires_by_ms: i64,
    /// The wall times of its start and end.
    from_ms: UnixMs,
    before_ms: UnixMs,
    began: SteadyMs,
}

/// State of the two clocks.
#[derive(Debug)]
pub struct ClockTrust {
    settle_ms: u64,
    /// Oldest first; the last one is the current era.
    eras: VecDeque<ClockEra>,
    last: Option<ClockReading>,
    settled: bool,
    moves: VecDeque<ExpiryMove>,
    waiting_from: WaitingFrom,
}

impl ClockTrust {
    /// Trusts the wall clock once it has agreed with the steady one for `settle_ms`.
    pub const fn new(settle_ms: u64) -> Self {
        Self {
            settle_ms,
            eras: VecDeque::new(),
            last: None,
            settled: false,
            moves: VecDeque::new(),
            waiting_from: WaitingFrom {
                created_before_ms: 0,
                from_ms: 0,
            },
        }
    }

    /// Evaluates another reading. Call it often: a step is detected by the next reading after it.
    pub fn evaluate(&mut self, reading: ClockReading) -> ClockVerdict {
        let offset_ms = offset(reading);
        let stepped = self
            .eras
            .back()
            .is_none_or(|era| offset_ms.abs_diff(era.offset_ms) > STEP_MS);
        if stepped {
            self.begin_era(reading);
        }
        let began = self.eras.back().map_or(reading.steady_ms, |era| era.began);
        let agreed_ms = reading.steady_ms.saturating_sub(began);
        if !self.settled && agreed_ms >= self.settle_ms && reading.wall_ms >= RELEASED_MS {
            self.trust_clock(reading);
        }
        self.last = Some(reading);
        ClockVerdict {
            trusts_wall: self.settled && self.moves.is_empty(),
            waiting_from: self.waiting_from,
        }
    }

    /// How much later than by the wall clock to end a period of `span_ms`: by the amount that the
    /// clock was set forward within the period. So nothing ends early by steady time, and repeated
    /// steps delay nothing for ever.
    pub fn lag_ms(&self, steady_ms: SteadyMs, span_ms: u64) -> u64 {
        let Some(now) = self.eras.back() else {
            return 0;
        };
        let ends = self.eras.iter().skip(1).map(|next| next.began);
        let earlier = self.eras.iter().zip(ends);
        let earlier = earlier.filter(|(_, ended)| steady_ms.saturating_sub(*ended) <= span_ms);
        let lags = earlier.map(|(era, _)| now.offset_ms.saturating_sub(era.least_offset_ms));
        lags.max()
            .and_then(|lag_ms| u64::try_from(lag_ms).ok())
            .unwrap_or(0)
    }

    /// The next tasks to keep longer, before anything expires again.
    pub fn next_move(&self) -> Option<ExpiryMove> {
        self.moves.front().copied()
    }

    /// Confirms that these tasks are postponed.
    pub fn confirm_move(&mut self) {
        self.moves.pop_front();
    }

    fn begin_era(&mut self, reading: ClockReading) {
        let offset_ms = offset(reading);
        if let (Some(era), Some(last)) = (self.eras.back_mut(), self.last) {
            let step_ms = offset_ms - era.offset_ms;
            tracing::warn!(
                step_ms,
                "wall clock was set; nothing expires until it has settled"
            );
            // The step happened between the last reading and this one. Each era gets the whole
            // interval, so that no result falls between the two.
            era.before_ms = reading.steady_ms.saturating_add_signed(era.offset_ms);
            let since_ms = reading.steady_ms.saturating_sub(last.steady_ms);
            let from_ms = reading.wall_ms.saturating_sub(since_ms);
            self.push(reading, offset_ms, from_ms);
        } else {
            self.push(reading, offset_ms, reading.wall_ms);
        }
        self.settled = false;
    }

    fn push(&mut self, reading: ClockReading, offset_ms: i64, from_ms: UnixMs) {
        if self.eras.len() == ERAS_MAX {
            // The era is forgotten, but not how slow its clock was: periods that began in it must
            // still end late enough.
            let dropped = self.eras.pop_front();
            if let (Some(dropped), Some(oldest)) = (dropped, self.eras.front_mut()) {
                oldest.least_offset_ms = oldest.least_offset_ms.min(dropped.least_offset_ms);
            }
        }
        self.eras.push_back(ClockEra {
            offset_ms,
            least_offset_ms: offset_ms,
            expires_by_ms: offset_ms,
            from_ms,
            before_ms: UnixMs::MAX,
            began: reading.steady_ms,
        });
    }

    /// Trusts the clock from now on: results from before the step are kept for their whole time by
    /// this clock.
    fn trust_clock(&mut self, reading: ClockReading) {
        // Example. A machine boots with a clock that is two hours slow, and completes tasks; then
        // the clock is set. By the new time those results are two hours older than they are, and
        // would expire two hours early. So the ones that ended during the slow era are kept for two
        // hours longer.
        //
        // A clock that was fast and is set back needs no such move: by the new time, the earlier
        // results are younger than they are, and only expire later.
        self.settled = true;
        // From this process or an earlier one: a correct clock never produces such a time.
        self.moves.push_back(ExpiryMove {
            from_ms: 0,
            before_ms: RELEASED_MS,
            by: PostponedExpiry::From(reading.wall_ms),
        });
        let Some((now, earlier)) = self.eras.make_contiguous().split_last_mut() else {
            return;
        };
        for era in earlier {
            let ahead_ms =
                |of_ms: i64| u64::try_from(now.offset_ms.saturating_sub(of_ms)).unwrap_or(0);
            let by_ms = ahead_ms(era.offset_ms);
            if ahead_ms(era.expires_by_ms) <= STEP_MS {
                continue;
            }
            era.expires_by_ms = now.offset_ms;
            if era.before_ms > RELEASED_MS {
                self.moves.push_back(ExpiryMove {
                    from_ms: era.from_ms.max(RELEASED_MS),
                    before_ms: era.before_ms,
                    by: PostponedExpiry::By(by_ms),
                });
            }
        }
        if self.waiting_from == WaitingFrom::default() {
            self.waiting_from = WaitingFrom {
                created_before_ms: RELEASED_MS,
                from_ms: now.from_ms,
            };
        }
    }
}

fn offset(reading: ClockReading) -> i64 {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    signed(reading.wall_ms).saturating_sub(signed(reading.steady_ms))
}

#[cfg(test)]
mod tests;
