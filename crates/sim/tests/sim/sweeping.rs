//! Sweeps: what one goes by, and what it does. The order of effects is that of `kinora-worker`'s `sweep`.

use kinora_contract::Clock;
use kinora_store::{Place, Postpone, SweepRequest};
use kinora_worker::Reading;

use crate::book::Cause;
use crate::submit::KEY_KEPT_MS;
use crate::worker::told;
use crate::world::{ATTEMPTS_MAX, RETENTION_MS, TOMBSTONE_MS, World};

impl World {
    /// One sweep, by whichever worker.
    pub(crate) async fn sweep(&mut self) {
        let request = self.sweep_request();
        self.postpone().await;
        let tasks = self.service().tasks.clone();
        // The process may have lived for long enough. One that dies again and again has not.
        if self.rng.percent(30) {
            let settled = tasks.settle().await;
            self.trace.result(&told(&settled));
        }
        let swept = tasks.sweep(request).await;
        self.trace.result(&told(&swept.as_ref().map(|swept| {
            (
                swept.requeued,
                swept.lost,
                swept.expired,
                swept.forgotten,
                swept.files.len(),
            )
        })));
        self.book.note(Cause::Swept {
            request,
            told: swept.is_ok(),
        });
        self.observe().await;
        let Ok(mut swept) = swept else { return };
        // A store that was opened again names them in no fixed order; equal seeds shall live alike.
        swept.files.sort_unstable();
        let blobs = self.service().blobs.clone();
        let mut gone = Vec::new();
        for key in swept.files {
            if blobs.delete(&key).await.is_ok() {
                gone.push(key);
            }
        }
        if !gone.is_empty() {
            // What is not crossed out now comes up again.
            let _ = tasks.forget_files(&gone).await;
        }
        self.observe().await;
    }

    /// What a sweep goes by now.
    pub(crate) fn sweep_request(&mut self) -> SweepRequest {
        let reading = Reading {
            wall_ms: self.clock.now_ms(),
            steady_ms: self.clock.steady_ms(),
        };
        let verdict = self.trust.judge(reading);
        SweepRequest {
            now_ms: reading.wall_ms,
            steady_ms: reading.steady_ms,
            trusts_wall: verdict.trusts_wall,
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
                below: Place::END,
                batch: 500,
            };
            let tasks = self.service().tasks.clone();
            let postponed = tasks.postpone(request).await;
            self.trace.result(&told(&postponed));
            self.book.note(Cause::Postponed(request));
            self.observe().await;
            let Ok(rest) = postponed else { return };
            assert_eq!(rest, None, "a life has no 500 tasks");
            self.trust.moved();
        }
    }
}
