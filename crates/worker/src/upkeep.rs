//! Looks after the [`devices`](mod@crate::devices) that engines share: they are empty at the start, and engines that are
//! idle for too long leave.

use std::sync::Arc;
use std::time::Duration;

use crate::drain::Shutdown;
use crate::worker::Worker;

/// Interval of looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Empties the devices before the first claim.
pub(crate) fn clear_devices(worker: &Worker) {
    for device in worker.lineup.devices() {
        device.clear(worker.patience.steady());
    }
}

/// Looks after the devices until the drain; then the process ends, and its engines with it.
pub(crate) async fn look_after_devices(worker: Arc<Worker>, shutdown: Shutdown) {
    loop {
        for device in worker.lineup.devices() {
            device.look_after(worker.patience.steady());
        }
        tokio::select! {
            biased;
            () = shutdown.draining() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}
