//! Announces the worker in the store's registry while it lives, so that operators see it and the
//! API knows which models are served. No task depends on it: runs continue while the store refuses
//! announcements.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::StandstillReason;
use kinora_store::{OutageLog, ServedModel, StoreError, WorkerAnnouncement, WorkerState};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::shutdown::Shutdown;
use crate::worker::Worker;

/// How often an announcement is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Lifetime of an announcement, in milliseconds: three renewals may fail.
const LENGTH_MS: u64 = 20_000;
/// How long a stopping worker waits for a store that does not answer.
const WITHDRAW_MAX: Duration = Duration::from_secs(3);

impl Worker {
    /// Announces the worker once, before it starts work, so that a submit which arrives immediately
    /// gets no warning that nobody serves its model.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now; the worker retries while it runs.
    pub async fn announce(&self) -> Result<(), StoreError> {
        renew(self, WorkerState::Serving).await
    }
}

/// The service that announces a worker. Dropping it ends it at once, and the announcement expires.
pub(crate) struct AnnounceService {
    service: JoinSet<()>,
    ended: CancellationToken,
}

impl AnnounceService {
    pub(crate) fn start(worker: &Arc<Worker>, shutdown: &Shutdown) -> Self {
        let (mut service, ended) = (JoinSet::new(), CancellationToken::new());
        service.spawn(announce(worker.clone(), shutdown.clone(), ended.clone()));
        Self { service, ended }
    }

    /// Withdraws the announcement, after a renewal that is under way: a store may complete one
    /// whose caller is gone, and one after the withdrawal would show a worker that no longer lives.
    pub(crate) async fn end(mut self) {
        self.ended.cancel();
        let ended = self.service.join_next();
        if tokio::time::timeout(WITHDRAW_MAX, ended).await.is_err() {
            tracing::debug!("announcement not withdrawn in time; it will expire");
        }
    }
}

async fn announce(worker: Arc<Worker>, shutdown: Shutdown, ended: CancellationToken) {
    let outage = OutageLog::new("announcements of the worker", &worker.clock);
    while worker.backoff.readiness().standstill() != Some(StandstillReason::Worker) {
        // Read once per round: if the drain begins between the announcement and the wait, the wait
        // ends at once and the next round announces it.
        let is_draining = shutdown.is_draining();
        let state = if is_draining {
            WorkerState::Draining
        } else {
            WorkerState::Serving
        };
        let pause = match renew(&worker, state).await {
            Ok(()) => {
                outage.record_success();
                RENEW_EVERY
            }
            Err(error) => {
                outage.record_failure(&error);
                RETRY_AFTER
            }
        };
        tokio::select! {
            biased;
            () = ended.cancelled() => break,
            () = shutdown.draining(), if !is_draining => {}
            () = until_places_change(&worker) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    let withdrawn = worker.workers.withdraw(&worker.settings.name).await;
    if let Err(error) = withdrawn {
        tracing::debug!(%error, "announcement not withdrawn; it will expire");
    }
}

/// Waits until a model becomes available or stops being so: clients should learn of it soon.
async fn until_places_change(worker: &Worker) {
    let before = worker.lineup.usable_models();
    while worker.lineup.usable_models() == before {
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

async fn renew(worker: &Worker, state: WorkerState) -> Result<(), StoreError> {
    let announcement = announcement(worker, state);
    worker.workers.announce(&announcement, LENGTH_MS).await
}

fn announcement(worker: &Worker, state: WorkerState) -> WorkerAnnouncement {
    let settings = &worker.settings;
    let models = worker.lineup.served().map(|(model, served)| ServedModel {
        model: model.clone(),
        engine: served.engine_name(),
        device: served.device.clone(),
        is_available: served.engine.is_usable(),
    });
    WorkerAnnouncement {
        id: settings.name.clone(),
        host: settings.origin.host.clone(),
        pid: settings.origin.pid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        models: models.collect(),
        slots: u32::try_from(settings.slots.max(1)).unwrap_or(u32::MAX),
        started_at_ms: settings.origin.started_at_ms,
        state,
        devices: worker
            .lineup
            .devices()
            .iter()
            .map(|device| device.shown())
            .collect(),
        places: worker.lineup.places(),
    }
}
