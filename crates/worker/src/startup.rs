//! Starts after a crash: a service that keeps dying waits before it claims, longer each time, so
//! that its tasks do not use up their attempts while someone repairs the cause.

use std::time::Duration;

use crate::shutdown::Shutdown;
use crate::worker::Worker;

/// The first pause; it doubles with each further death.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Pause between tries to record that the process has settled.
const SETTLE_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Waits if two or more starts in a row followed a death of the process.
pub(crate) async fn pause_after_unclean_starts(worker: &Worker, shutdown: &Shutdown) {
    let unclean_starts = worker.work.unclean_starts().unwrap_or(0);
    let pause = pause(unclean_starts, worker.settings.start_pause_max);
    if pause.is_zero() {
        return;
    }
    tracing::warn!(
        unclean_starts,
        ?pause,
        "pause after unclean starts; claims wait"
    );
    tokio::select! {
        biased;
        () = tokio::time::sleep(pause) => {}
        () = shutdown.draining() => {}
    }
}

/// The pause before claims after this many deaths in a row.
fn pause(unclean_starts: u64, pause_max: Duration) -> Duration {
    // A single death may be an operator who killed the process: the first pause follows the second.
    let Some(doublings) = unclean_starts.checked_sub(2) else {
        return Duration::ZERO;
    };
    // Fails from 32 doublings on, which is beyond any maximum.
    let doubled = 1_u32.checked_shl(doublings.try_into().unwrap_or(u32::MAX));
    doubled.map_or(pause_max, |times| (PAUSE_MIN * times).min(pause_max))
}

/// Whether a process that has lived for so long may make last attempts after a death: if something
/// kills it again and again, that attempt would fail a task that is not the cause. A completed task
/// proves nothing, since short tasks end between two deaths.
pub(crate) fn is_settled(worker: &Worker, lived: Duration) -> bool {
    worker.work.unclean_starts() == Some(0) || lived >= worker.settings.settled_after
}

/// Ends the series of unclean starts once the process has lived long enough.
pub(crate) async fn record_settled(worker: &Worker, shutdown: &Shutdown) {
    let unclean_starts = worker.work.unclean_starts().unwrap_or(0);
    if unclean_starts == 0 {
        return;
    }
    let after = worker.settings.settled_after;
    tracing::info!(
        unclean_starts,
        ?after,
        "started after a crash; last attempts wait until this process has run for a while"
    );
    let settle = async {
        tokio::time::sleep(after).await;
        while let Err(error) = worker.work.confirm_start().await {
            tracing::debug!(%error, "end of unclean starts not recorded yet");
            tokio::time::sleep(SETTLE_AGAIN_EVERY).await;
        }
    };
    tokio::select! {
        biased;
        () = settle => {}
        () = shutdown.draining() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_begins_with_the_second_death_and_doubles_up_to_its_bound() {
        let ten = Duration::from_secs(10);
        let pauses = [0, 1, 2, 3, 4, 5, 6, 40, u64::MAX].map(|deaths| pause(deaths, ten).as_secs());
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 10, 10, 10]);
        assert_eq!(pause(9, Duration::ZERO), Duration::ZERO);
    }
}
