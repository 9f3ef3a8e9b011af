//! Handles expired leases and expired results, in the store alone; the
//! [`chores`](mod@crate::chores) that they leave outside of it are other services. Any number of
//! sweepers may run: each change is the store's own compare-and-set. Nothing expires while the wall
//! clock is not trusted, and no lease does after a stall of the process.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::limits::IDEMPOTENCY_HOURS;
use kinora_contract::{Clock, ClockReading, Stopwatch};
use kinora_store::{ExpiryCursor, PostponeRequest, StoreError, SweepReport, SweepRequest};

use crate::clock_trust::ClockTrust;
use crate::shutdown::Shutdown;
use crate::worker::Worker;

/// Maximum number of rows of each kind in one sweep, so that submits never wait for long.
const BATCH: usize = 200;
/// Lifetime of an idempotency key.
const KEY_MS: u64 = IDEMPOTENCY_HOURS * 60 * 60 * 1000;

/// State carried from one sweep to the next.
#[derive(Debug)]
pub(crate) struct Sweeper {
    trust: ClockTrust,
    stall: StallDetector,
    /// Measures pauses and stalls.
    clock: Arc<dyn Clock>,
    /// Position at which the postponement in progress continues.
    below: ExpiryCursor,
    /// Whether the store failed the last sweep: then leases could not be renewed either.
    failed: bool,
    /// Duration of the last sweep, if there is more to do immediately.
    more: Option<Duration>,
}

impl Sweeper {
    pub(crate) fn new(worker: &Worker) -> Self {
        let (settings, clock) = (&worker.settings, worker.patience.clone());
        let lease = Duration::from_millis(settings.lease_ms);
        Self {
            trust: ClockTrust::new(settings.clock_settle_ms),
            stall: StallDetector::new(lease, clock.steady()),
            clock,
            below: ExpiryCursor::END,
            failed: false,
            more: None,
        }
    }

    /// Sweeps at the configured interval, after one such pause, until a drain begins. While there
    /// is more to do, it pauses for as long as the last sweep took: half of the store's time belongs
    /// to others.
    pub(crate) async fn sweep_until_drain(mut self, worker: Arc<Worker>, shutdown: Shutdown) {
        let every = worker.settings.sweep_every;
        while !shutdown.is_draining() {
            let pause = self.more.map_or(every, |took| took.min(every));
            tokio::select! {
                biased;
                () = shutdown.draining() => return,
                () = self.rest(pause) => {}
            }
            // The store completes a sweep whose caller is gone, or does not begin it.
            tokio::select! {
                biased;
                () = shutdown.draining() => return,
                () = self.sweep_once(&worker) => {}
            }
        }
    }

    /// Sleeps, and checks whether the process stood still.
    async fn rest(&mut self, pause: Duration) {
        // In slices: the process stood still if a slice took much longer than it should have. A
        // single long sleep would hide that.
        let begun = Stopwatch::start(&self.clock);
        while let Some(left) = pause
            .checked_sub(begun.elapsed())
            .filter(|left| !left.is_zero())
        {
            tokio::time::sleep(left.min(self.stall.slice())).await;
            self.stall.check(self.clock.steady());
        }
    }

    /// One sweep. The next one retries any failures.
    pub(crate) async fn sweep_once(&mut self, worker: &Worker) {
        let after_outage = self.failed;
        let begun = Stopwatch::start(&self.clock);
        let swept = self.sweep(worker).await;
        self.failed = swept.is_err();
        // After an outage, runs have until the next sweep to renew their leases.
        let more = !after_outage && matches!(swept, Ok(true));
        self.more = more.then(|| begun.elapsed());
        self.stall.check(self.clock.steady());
        if let Err(error) = swept {
            tracing::warn!(%error, "sweep failed; retrying later");
        }
    }

    /// Returns whether there is more to do immediately.
    async fn sweep(&mut self, worker: &Worker) -> Result<bool, StoreError> {
        let reading = worker.chores.clock().await?;
        let request = self.request(worker, reading);
        let swept = worker.chores.sweep(request).await;
        // Renewals wait for the store too.
        self.stall.check(self.clock.steady());
        let swept = swept?;
        log_swept(&swept);
        let moving = self.postpone(worker).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "expiry not postponed yet; nothing expires until it is");
            false
        });
        Ok(swept.more || moving)
    }

    fn request(&mut self, worker: &Worker, reading: ClockReading) -> SweepRequest {
        let settings = &worker.settings;
        // After the reading, so that no stall before it goes unnoticed.
        let now = self.clock.steady();
        self.stall.check(now);
        let verdict = self.trust.evaluate(reading);
        let lag_ms = |span_ms| self.trust.lag_ms(reading.steady_ms, span_ms);
        let waiting_ms_max = settings.waiting_ms_max;
        SweepRequest {
            due_ms: verdict.trusts_wall.then_some(reading.wall_ms),
            // Periods by wall time end early if the clock is set forward within them. They are
            // lengthened by that step: a clock that was two hours slow and is set right ends a key
            // of 24 hours after 24 hours, not 22.
            keys_kept_ms: lag_ms(KEY_MS),
            waiting_from: verdict.waiting_from,
            attempts_max: settings.attempts_max,
            lease_ms: settings.lease_ms,
            spares_leases: self.failed || self.stall.spares_leases(now),
            waiting_ms_max: waiting_ms_max.map(|max| max.saturating_add(lag_ms(max))),
            retention_ms: settings.failed_retention_ms,
            unreadable_ms: settings.retention_ms,
            tombstone_ms: settings.tombstone_ms,
            batch: BATCH,
        }
    }

    /// One step of the postponement that the clock's trust asks for; returns whether more steps
    /// follow.
    async fn postpone(&mut self, worker: &Worker) -> Result<bool, StoreError> {
        let Some(next) = self.trust.next_move() else {
            return Ok(false);
        };
        let postpone = PostponeRequest {
            from_ms: next.from_ms,
            before_ms: next.before_ms,
            by: next.by,
            retention_ms: worker.settings.retention_ms,
            below: self.below,
            batch: BATCH,
        };
        let rest = worker.chores.postpone(postpone).await?;
        if rest.is_none() {
            self.trust.confirm_move();
        }
        self.below = rest.unwrap_or(ExpiryCursor::END);
        Ok(true)
    }
}

fn log_swept(swept: &SweepReport) {
    if *swept == SweepReport::default() {
        return;
    }
    let SweepReport {
        requeued,
        lost,
        waited,
        expired,
        forgotten,
        files,
        more,
    } = swept;
    tracing::info!(
        requeued, lost, waited, expired, forgotten, files, more, "swept"
    );
}

/// State of stalls.
#[derive(Debug)]
struct StallDetector {
    lease: Duration,
    /// Like all times here: steady time, from an arbitrary start.
    checked: Duration,
    spares_until: Option<Duration>,
}

impl StallDetector {
    pub(crate) const fn new(lease: Duration, now: Duration) -> Self {
        Self {
            lease,
            checked: now,
            spares_until: None,
        }
    }

    /// The sleep between two checks.
    fn slice(&self) -> Duration {
        (self.lease / 6).max(Duration::from_millis(1))
    }

    /// Checks the clock; call it at least once per slice. A renewal is never older than a third of
    /// the lease, so a stall that outlasts the lease makes the time between two checks longer than
    /// half of it.
    pub(crate) fn check(&mut self, now: Duration) {
        let stood = now.saturating_sub(self.checked);
        // Example with a lease of 30 s. Checks are at most 5 s apart, unless something stalls. When
        // a stall begins, the last renewal is at most 10 s old, so a lease runs out after 20 s of
        // it at the earliest. Half a lease, 15 s, lies between the two: every stall that costs a
        // lease is noticed, and a late check alone is not taken for one.
        if stood > self.lease / 2 {
            tracing::warn!(
                ?stood,
                "process was stalled; expired leases spared for a while"
            );
            self.spares_until = now.checked_add(self.lease);
        }
        self.checked = now;
    }

    /// Whether leases that have expired by `now` may belong to healthy runs.
    fn spares_leases(&self, now: Duration) -> bool {
        self.spares_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod stall_tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const BEGUN: Duration = Duration::from_secs(1_000);

    #[test]
    fn leases_are_spared_for_one_lease_after_a_stall() {
        for (stood_s, spares) in [
            (0, false),
            (5, false),
            (15, false),
            (16, true),
            (3_600, true),
        ] {
            let mut stall = StallDetector::new(LEASE, BEGUN);
            let now = BEGUN + Duration::from_secs(stood_s);
            stall.check(now);
            assert_eq!(stall.spares_leases(now), spares, "{stood_s}");
            let last = now + LEASE - Duration::from_millis(1);
            assert_eq!(stall.spares_leases(last), spares, "{stood_s}");
            assert!(!stall.spares_leases(now + LEASE), "{stood_s}");
        }
    }

    #[test]
    fn looks_that_come_in_time_spare_nothing() {
        let mut now = BEGUN;
        let mut stall = StallDetector::new(LEASE, now);
        for _ in 0..100 {
            now += stall.slice();
            stall.check(now);
            assert!(!stall.spares_leases(now));
        }
    }

    #[test]
    fn a_stall_that_ends_a_lease_is_told_from_a_pause_between_looks() {
        let stall = StallDetector::new(LEASE, BEGUN);
        assert!(LEASE - LEASE / 3 > LEASE / 2);
        assert!(2 * stall.slice() < LEASE / 2);
    }
}
