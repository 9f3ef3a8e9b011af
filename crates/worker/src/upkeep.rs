//! Services that keep a worker's machine fit for work: they load engines at the start, unload idle
//! ones from the [`devices`](mod@crate::devices) that they share, and probe the storage after a
//! fault. They run apart from the claim loop, so that they work even if all slots are taken.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_engine::JobControl;

use crate::shutdown::Shutdown;
use crate::worker::Worker;

/// Interval of checks.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Empties the devices before the first claim.
pub(crate) fn clear_devices(worker: &Worker) {
    for device in worker.lineup.devices() {
        device.clear(worker.patience.steady());
    }
}

/// Unloads idle engines until the drain; then the process ends, and its engines with it.
pub(crate) async fn unload_idle_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    loop {
        for device in worker.lineup.devices() {
            device.unload_idle(worker.patience.steady());
        }
        tokio::select! {
            biased;
            () = shutdown.draining() => return,
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
    }
}

/// Loads the engines, all at the same time, until they are loaded, have failed, or the stop begins.
pub(crate) async fn warm_up_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    let (control, own) = (JobControl::default(), worker.clone());
    let cancel = control.cancel.clone();
    let mut warming = tokio::task::spawn_blocking(move || warm_up(&own, &control));
    tokio::select! {
        biased;
        _ = &mut warming => {}
        () = shutdown.draining() => {
            // The blocking task cannot be dropped; the cancel ends its engines' loading soon.
            cancel.cancel();
            // A panic has been printed by its thread.
            let _ = warming.await;
        }
    }
    worker.backoff.readiness().set_warming_up(false);
}

fn warm_up(worker: &Worker, control: &JobControl) {
    thread::scope(|scope| {
        for engine in worker.lineup.warm_engines() {
            scope.spawn(|| engine.warm_up(control));
        }
    });
}

/// Probes whenever [`crate::FaultBackoff`] asks for it, until a drain begins.
pub(crate) async fn probe_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    tokio::select! {
        biased;
        () = probe_when_due(&worker) => {}
        () = shutdown.draining() => {}
    }
}

async fn probe_when_due(worker: &Worker) {
    loop {
        match worker.backoff.next_probe() {
            None => worker.backoff.trouble_begins().await,
            Some(pause) => {
                tokio::time::sleep(pause).await;
                let probed = probe(worker).await;
                worker.backoff.record_probe(&probed);
            }
        }
    }
}

/// A run needs both: it makes its file in one and stores it in the other.
async fn probe(worker: &Worker) -> Result<(), BlobError> {
    let scratch = worker.scratch.clone();
    worker.pools.files.run(move || scratch.probe()).await??;
    worker.blobs.probe().await
}
