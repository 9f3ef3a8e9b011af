//! Probes the scratch folder and the result store after a fault, independently of the claim loop,
//! so that it works even if all slots are taken.

use std::sync::Arc;

use kinora_blobs::BlobError;

use crate::drain::Shutdown;
use crate::worker::Worker;

/// Probes whenever [`crate::Backoff`] asks for it, until a drain begins.
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
                worker.backoff.note_probe(&probed);
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
