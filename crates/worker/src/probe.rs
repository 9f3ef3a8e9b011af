//! Probes the result store after a fault, beside the claim loop, so that it is done although all slots
//! are taken.

use std::sync::Arc;

use crate::Worker;
use crate::drain::Shutdown;

/// Probes while there is a reason to ([`crate::Backoff`]), until a drain is asked for.
pub(crate) async fn probe_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    tokio::select! {
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
                let probed = worker.blobs.probe().await;
                worker.backoff.note_probe(&probed);
            }
        }
    }
}
