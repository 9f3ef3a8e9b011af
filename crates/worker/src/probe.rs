//! Probes the scratch folder and the result store after a fault, beside the claim loop, so that it is done
//! although all slots are taken.

use std::sync::Arc;

use kinora_blobs::BlobError;

use crate::drain::Shutdown;
use crate::worker::Worker;

/// Probes while there is a reason to ([`crate::Backoff`]), until a drain is asked for.
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

/// A run needs both: its file is made in one and stored in the other.
async fn probe(worker: &Worker) -> Result<(), BlobError> {
    let scratch = worker.scratch.clone();
    worker.pools.files.run(move || scratch.probe()).await??;
    worker.blobs.probe().await
}
