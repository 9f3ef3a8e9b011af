//! Keeps a lease while its run lives; the engine works on a thread of its own, so that a long
//! step does not look like death. It waits for nothing but the store: no disk, no encoder and no
//! look-up may stand between a run and the renewal of its lease. It ends the run when the lease is
//! lost, when the engine stands still for longer than its model allows, or when the process must
//! stop at once.

use std::time::{Duration, Instant};

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{Control, Progress};
use kinora_store::{Lease, LeaseLost, Renewed, StoreError};
use tokio_util::sync::CancellationToken;

use crate::Worker;
use crate::drain::Shutdown;
use crate::outage::Outage;
use crate::preview::Previews;
use crate::tenacious::tenacious;

/// Why a run must end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The lease is no longer ours: nothing of this run may be written.
    Lost(LeaseLost),
    /// The engine stands still.
    Stalled,
    /// The process stops: the task goes back to the queue.
    Shutdown,
}

/// What a heartbeat watches.
pub(crate) struct Watch<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) lease: &'a Lease,
    pub(crate) engine_name: &'a str,
    pub(crate) control: &'a Control,
    pub(crate) shutdown: &'a Shutdown,
    /// Renewals that fail are tried again at every beat.
    pub(crate) renewals: &'a Outage,
}

impl Watch<'_> {
    /// Keeps the lease until there is a reason to stop, and returns it. An engine at work may
    /// be silent for `silence_max`; once it is done there is nothing to hear.
    pub(crate) async fn keep(&self, silence_max: Option<Duration>) -> Stop {
        let settings = &self.worker.settings;
        let mut hints = self.worker.tasks.changes();
        let mut tick = tokio::time::interval(settings.heartbeat_every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let progress = &self.control.progress;
        let mut life = Life::new(progress);
        let mut previews = Previews::new(self.worker.pools.previews.clone());
        let mut beat = Beat::new(Duration::from_millis(settings.lease_ms / 3));
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                changed = hints.changed() => {
                    if changed.is_err() {
                        // Without hints the tick alone must do.
                        tick.tick().await;
                    }
                }
                () = self.shutdown.at_once() => return Stop::Shutdown,
            }
            if let Err(StoreError::LeaseLost(how)) = self.worker.tasks.check(self.lease).await {
                return Stop::Lost(how);
            }
            if silence_max.is_some_and(|max| life.stands_still_for(progress) > max) {
                return Stop::Stalled;
            }
            let renewed = Renewed {
                // An engine that is done has no more to show.
                preview: silence_max.and_then(|_| previews.next(&self.control.preview)),
                ..self.renewal()
            };
            let percent = renewed.progress;
            if beat.is_due(percent) || renewed.preview.is_some() {
                match self.worker.tasks.renew(self.lease, renewed).await {
                    Ok(()) => {
                        self.renewals.note_success();
                        beat.done(percent);
                    }
                    Err(StoreError::LeaseLost(how)) => return Stop::Lost(how),
                    Err(error) => {
                        self.renewals.note_failure(&error);
                    }
                }
            }
        }
    }

    /// Writes down what was decided of the spec, so that clients see it.
    pub(crate) async fn decide(&self, spec: VideoSpec) {
        let renewed = Renewed {
            decided: Some(Box::new(spec)),
            ..self.renewal()
        };
        if let Err(error) = self.worker.tasks.renew(self.lease, renewed).await {
            tracing::warn!(%error, "what was decided could not be written down");
        }
    }

    /// Writes down what the engine will not or cannot do of the request, so that clients see it.
    pub(crate) async fn warn(&self, warnings: &[Warning]) {
        // Whoever stops a run drops this.
        let never = CancellationToken::new();
        let renew = || {
            let renewed = Renewed {
                warnings: Some(warnings.to_vec()),
                ..self.renewal()
            };
            self.worker.tasks.renew(self.lease, renewed)
        };
        if let Err(error) = tenacious(&never, renew).await {
            tracing::warn!(%error, "warnings of the engine were not stored");
        }
    }

    /// Keeps `token` for a later attempt; durable when this returns.
    pub(crate) async fn keep_token(&self, token: &str) -> Result<(), StoreError> {
        let renewed = Renewed {
            kept: Some(token.to_owned()),
            ..self.renewal()
        };
        self.worker.tasks.renew(self.lease, renewed).await
    }

    fn renewal(&self) -> Renewed {
        Renewed {
            progress: percent(&self.control.progress),
            engine: Some(self.engine_name.to_owned()),
            until_ms: self.worker.clock.now_ms() + self.worker.settings.lease_ms,
            decided: None,
            kept: None,
            warnings: None,
            preview: None,
        }
    }
}

/// Whole percent, never 100: that is for completed tasks.
fn percent(progress: &Progress) -> u8 {
    (progress.fraction() * 100.0).clamp(0.0, 99.0) as u8
}

/// When the engine last gave a sign of life.
struct Life {
    reports: u64,
    since: Instant,
}

impl Life {
    fn new(progress: &Progress) -> Self {
        Self {
            reports: progress.reports(),
            since: Instant::now(),
        }
    }

    fn stands_still_for(&mut self, progress: &Progress) -> Duration {
        let reports = progress.reports();
        if reports != self.reports {
            *self = Self {
                reports,
                since: Instant::now(),
            };
        }
        self.since.elapsed()
    }
}

/// When a renewal is due: progress moved, or a third of the lease has passed.
struct Beat {
    every: Duration,
    last: Option<(Instant, u8)>,
}

impl Beat {
    const fn new(every: Duration) -> Self {
        Self { every, last: None }
    }

    fn is_due(&self, percent: u8) -> bool {
        self.last
            .is_none_or(|(at, told)| percent > told || at.elapsed() >= self.every)
    }

    fn done(&mut self, percent: u8) {
        self.last = Some((Instant::now(), percent));
    }
}
