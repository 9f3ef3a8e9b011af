//! Looks after the unfinished tasks that are polled again and again: one question for many of them, sent before they are
//! too old to be shown, so that hardly a poll waits. It rests while nobody polls.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::reads::Reader;

/// Tasks of one question.
const CONFIRMED_MAX: usize = 1_024;
/// How often a resting one looks whether the store was closed.
const REST: Duration = Duration::from_secs(1);

/// Begins to look after the tasks that `reader` reads, which are shown for `age_max`.
pub(super) fn start(reader: &Arc<Reader>, polled: Arc<Notify>, age_max: Duration) {
    let confirming = confirm_all(Arc::downgrade(reader), polled, age_max / 2);
    reader.connector().spawn(confirming);
}

async fn confirm_all(reader: Weak<Reader>, polled: Arc<Notify>, every: Duration) {
    loop {
        // Nobody polls, or the store was closed.
        let _ = tokio::time::timeout(REST, polled.notified()).await;
        loop {
            tokio::time::sleep(every).await;
            let Some(reader) = reader.upgrade() else {
                return;
            };
            let watched = reader.watched();
            if watched.is_empty() {
                break;
            }
            for some in watched.chunks(CONFIRMED_MAX) {
                // A poll reads a task that was not confirmed.
                if let Err(error) = reader.confirm(some).await {
                    tracing::debug!(%error, "polled tasks not confirmed");
                }
            }
        }
    }
}
