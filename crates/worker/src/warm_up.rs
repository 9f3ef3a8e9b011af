//! Loads engines at the worker's start, so that their first tasks need not wait for that. Tasks may be claimed meanwhile:
//! they wait at their engine as they would if they had loaded it.

use std::sync::Arc;
use std::thread;

use kinora_engine::Control;

use crate::drain::Shutdown;
use crate::worker::Worker;

/// Loads the engines, all at the same time, until they are loaded, have failed, or the stop begins.
pub(crate) async fn warm_up_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    let (control, own) = (Control::default(), worker.clone());
    let cancel = control.cancel.clone();
    let mut warming = tokio::task::spawn_blocking(move || warm_up(&own, &control));
    tokio::select! {
        biased;
        _ = &mut warming => {}
        () = shutdown.draining() => {
            cancel.cancel();
            // A panic has been printed by its thread.
            let _ = warming.await;
        }
    }
    worker.backoff.readiness().set_warming_up(false);
}

fn warm_up(worker: &Worker, control: &Control) {
    thread::scope(|scope| {
        for engine in worker.lineup.warm_engines() {
            scope.spawn(|| engine.warm_up(control));
        }
    });
}
