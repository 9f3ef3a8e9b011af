//! Sweeps: what one goes by, and what it does. The order of effects is that of `kinora-worker`'s `sweep`.

use kinora_contract::{Clock, Reading};
use kinora_store::{ExpiryCursor, Postpone, SweepRequest};

use crate::book::Cause;
use crate::submit::KEY_KEPT_MS;
use crate::worker::told;
use crate::world::{ATTEMPTS_MAX, RETENTION_MS, TOMBSTONE_MS, World};

impl World {
    /// One sweep, by either process, with the chores that it then finds.
    pub(crate) async fn sweep(&mut self) {
        let k = self.rng.below(2) as usize;
        let seen = self.service().seen.clone();
        // The process may have lived for long enough. One that dies again and again has not.
        if self.rng.percent(30) {
            let settled = seen.work.settle().await;
            self.trace.result(&told(&settled));
        }
        let Ok(reading) = seen.chores.clock().await else {
            return;
        };
        assert_eq!(reading, self.reading(), "P5: the store has another clock");
        let request = self.sweep_request(reading);
        let swept = seen.chores.sweep(request).await;
        self.trace.result(&told(&swept));
        self.book.note(Cause::Swept {
            request,
            steady_ms: reading.steady_ms,
            told: swept.is_ok(),
        });
        self.observe().await;
        if swept.is_err() {
            return;
        }
        self.postpone().await;
        self.do_chores(k).await;
    }

    /// Both clocks of the store.
    pub(crate) fn reading(&self) -> Reading {
        let clock: &dyn Clock = &*self.clock;
        clock.read()
    }

    /// What a sweep goes by at this time.
    pub(crate) fn sweep_request(&mut self, reading: Reading) -> SweepRequest {
        let verdict = self.trust.judge(reading);
        SweepRequest {
            due_ms: verdict.trusts_wall.then_some(reading.wall_ms),
            keys_kept_ms: self.trust.lag_ms(reading.steady_ms, KEY_KEPT_MS),
            waiting_from: verdict.waiting_from,
            attempts_max: ATTEMPTS_MAX,
            spares_leases: false,
            waiting_ms_max: None,
            retention_ms: RETENTION_MS,
            tombstone_ms: TOMBSTONE_MS,
            batch: 500,
        }
    }

    /// Keeps longer what a correction of the clock would end.
    async fn postpone(&mut self) {
        while let Some(next) = self.trust.next_move() {
            let request = Postpone {
                from_ms: next.from_ms,
                before_ms: next.before_ms,
                by: next.by,
                below: ExpiryCursor::END,
                batch: 500,
            };
            let chores = self.service().seen.chores.clone();
            let postponed = chores.postpone(request).await;
            self.trace.result(&told(&postponed));
            self.book.note(Cause::Postponed(request));
            self.observe().await;
            let Ok(rest) = postponed else { return };
            assert_eq!(rest, None, "a life has no 500 tasks");
            self.trust.moved();
        }
    }
}
