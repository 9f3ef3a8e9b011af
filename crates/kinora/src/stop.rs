//! The orderly stop of a process: the first SIGTERM or SIGINT lets running tasks finish, the second
//! returns them to the queue immediately. A stop is bounded in time, even if storage hangs.

use std::time::Duration;

use kinora_worker::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How long running tasks may take to return to the queue. A disk with syncs of several seconds
/// could hold them for minutes; abandoned tasks run again at the next start.
const GIVE_BACK_MAX: Duration = Duration::from_secs(10);

/// Waits until `working` ends, which it does after `shutdown` and all runs, or until returning the runs
/// takes too long; then cancels `done`, which ends the service. `working` returns whether clients may
/// be waiting for a task that ended during the stop; then `done` comes after `linger`.
pub(crate) async fn drain(
    working: impl Future<Output = bool>,
    shutdown: Shutdown,
    linger: Duration,
    done: CancellationToken,
) {
    // The limit counts from the second signal or the end of the drain. Before that, running tasks
    // may take as long as `worker.drain_seconds` allows.
    let give_up = async {
        shutdown.at_once().await;
        tokio::time::sleep(GIVE_BACK_MAX).await;
    };
    tokio::select! {
        is_awaited = working => if is_awaited {
            tokio::select! {
                // Clients poll every second or so. Without this pause the process would be gone
                // before they learn how the last task ended, and their next poll would fail.
                () = tokio::time::sleep(linger) => {}
                () = shutdown.at_once() => {}
            }
        },
        () = give_up => tracing::error!(
            "tasks not returned to the queue in time: storage too slow; they run again at the next start"
        ),
    }
    done.cancel();
}

/// The first signal lets running tasks finish, for up to `drain_limit`. The second returns them to
/// the queue.
pub(crate) async fn stop_on_signals(
    mut signals: StopSignals,
    stopping: CancellationToken,
    shutdown: Shutdown,
    drain_limit: Duration,
) {
    signals.next().await;
    tracing::info!(
        "stopping: finishing running tasks; submits are refused, other requests answered; \
         a second signal stops at once"
    );
    stopping.cancel();
    shutdown.drain();
    tokio::select! {
        () = signals.next() => {
            tracing::info!("stopping at once: returning running tasks to the queue");
        }
        // The worker may be waiting for its store and not notice by itself.
        () = tokio::time::sleep(drain_limit) => {}
    }
    // Both arms end here: the drain's limit has the effect of a second signal.
    shutdown.now();
}

pub(crate) fn signal_stream(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::because("Signals cannot be received", error))
}

/// The signals that request a stop.
pub(crate) enum StopSignals {
    /// SIGTERM and SIGINT, to the whole process.
    Process {
        terminate: Signal,
        interrupt: Signal,
    },
    /// Signals from a test in the same process. The end of the channel is a signal too.
    #[cfg(feature = "test-faults")]
    Test(tokio::sync::mpsc::UnboundedReceiver<()>),
}

impl StopSignals {
    pub(crate) fn from_process() -> Result<Self, Failure> {
        Ok(Self::Process {
            terminate: signal_stream(SignalKind::terminate())?,
            interrupt: signal_stream(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::Process {
                terminate,
                interrupt,
            } => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            #[cfg(feature = "test-faults")]
            Self::Test(signals) => {
                signals.recv().await;
            }
        }
    }
}
