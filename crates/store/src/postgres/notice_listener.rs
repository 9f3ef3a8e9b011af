//! Notices among processes: there is work, a lease was withdrawn, a task has ended, and these tasks
//! have changed. Each process sends at most one every [`crate::PostgresOptions::notify_every_ms`],
//! outside every transaction that changes rows: a transaction that notifies delays the commits of
//! all others. A lost notice costs only waiting time.
//!
//! `LISTEN` is a state of its connection, which therefore must not go through a pooler in
//! transaction mode ([`crate::PostgresOptions::listen_at`]). Without it, everything works by
//! polling.

use std::sync::{Arc, Weak};
use std::time::Duration;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::WakeHints;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{ReconnectBackoff, ServerConnector};
use super::fault::PostgresFault;
use super::notices::encode;
use super::session::SqlStatement;
use super::shared::SharedState;
use crate::{StoreError, TaskChange};

/// Handles a notice from another process: `origin:hints:ended:news`, with ids or `*` in the last two.
fn handle_notice(origin: u64, text: &str, shared: &SharedState) {
    let mut parts = text.split(':');
    let (Some(from), Some(hints), Some(ids)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    // PostgreSQL also sends a notice to the connection that caused it.
    if from == origin.to_string() {
        return;
    }
    match ids {
        "*" => shared.cache.invalidate(None),
        ids => {
            let ids: Vec<TaskId> = ids.split(',').filter_map(|id| id.parse().ok()).collect();
            shared.cache.invalidate(Some(&ids));
        }
    }
    shared.signals.wake(WakeHints {
        work: hints.contains('w'),
        withdrawn: hints.contains('x'),
        ended: hints.contains('e'),
    });
    // Processes of an earlier release send no news.
    match parts.next() {
        None => {}
        Some("*") => shared.signals.followers.notify(TaskChange::Unknown),
        Some(ids) => {
            let ids: Vec<TaskId> = ids.split(',').filter_map(|id| id.parse().ok()).collect();
            shared.cache.invalidate_unfinished(&ids);
            for id in ids {
                shared.signals.followers.notify(TaskChange::Of(id));
            }
        }
    }
}

/// Sends and receives notices while the store is open.
pub(super) struct NoticeListener {
    pub(super) connector: Arc<ServerConnector>,
    pub(super) channel: String,
    pub(super) origin: u64,
}

impl NoticeListener {
    /// Begins to listen; on return, every later notice will arrive.
    pub(super) async fn start(self, shared: &Arc<SharedState>) {
        let listening = self.listen().await;
        if let Err(error) = &listening {
            tracing::warn!(%error, "store cannot listen; polling only");
        }
        let connector = self.connector.clone();
        connector.spawn(self.serve(listening.ok(), Arc::downgrade(shared)));
    }

    async fn listen(&self) -> Result<(Client, mpsc::UnboundedReceiver<AsyncMessage>), StoreError> {
        let (heard, messages) = mpsc::unbounded_channel();
        let client = self.connector.connect_listening(Some(heard)).await?;
        let listen = SqlStatement::new(format!("LISTEN {}", self.channel));
        listen.run(&client).await.map_err(PostgresFault::from)?;
        Ok((client, messages))
    }

    async fn serve(
        self,
        mut listening: Option<(Client, mpsc::UnboundedReceiver<AsyncMessage>)>,
        shared: Weak<SharedState>,
    ) {
        let mut backoff = ReconnectBackoff::default();
        loop {
            if let Some((client, messages)) = listening.take() {
                backoff.reset();
                self.exchange(&client, messages, &shared).await;
            }
            tokio::time::sleep(backoff.pause()).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            match self.listen().await {
                Ok(both) => {
                    // Notices sent while nobody listened are lost: forget everything, and wake everybody,
                    // as if each of them had come.
                    shared.cache.invalidate(None);
                    shared.signals.followers.notify(TaskChange::Unknown);
                    shared.signals.wake(WakeHints {
                        work: true,
                        withdrawn: true,
                        ended: true,
                    });
                    listening = Some(both);
                }
                Err(_) => backoff.fail(),
            }
        }
    }

    /// Runs until the connection breaks or the store is closed.
    async fn exchange(
        &self,
        client: &Client,
        mut messages: mpsc::UnboundedReceiver<AsyncMessage>,
        shared: &Weak<SharedState>,
    ) {
        loop {
            let Some(now) = shared.upgrade() else {
                return;
            };
            let every = Duration::from_millis(now.options.notify_every_ms);
            let moved = now.notices.added.notified();
            tokio::select! {
                message = messages.recv() => match message {
                    Some(AsyncMessage::Notification(notice)) => {
                        handle_notice(self.origin, notice.payload(), &now);
                        continue;
                    }
                    Some(_) => continue,
                    None => return,
                },
                // The task holds the store weakly, and has no signal for its end: it looks once a second.
                moved = tokio::time::timeout(Duration::from_secs(1), moved) => {
                    if moved.is_err() {
                        continue;
                    }
                }
            }
            let Some(pending) = now.notices.take() else {
                continue;
            };
            // Not across the await: a store that is closed meanwhile must be able to go.
            drop(now);
            let notify = "SELECT pg_notify($1, notice) FROM unnest($2) AS n(notice)";
            let sent = SqlStatement::new(notify)
                .text(self.channel.clone())
                .texts(encode(self.origin, &pending))
                .run(client)
                .await;
            if sent.is_err() {
                return;
            }
            // Pacing: commits of the next 50 ms are merged into one notice. A server serialises all
            // commits that notify, so one per commit would cost the throughput of all processes.
            tokio::time::sleep(every).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::lifecycle::TaskRecord;
    use kinora_contract::{ManualClock, TaskState};

    use super::*;
    use crate::PostgresOptions;
    use crate::conformance::fixtures::{NOW, id, task};

    #[test]
    fn a_notice_of_its_end_does_not_forget_a_task_that_was_already_read() {
        let clock: Arc<dyn kinora_contract::Clock> = Arc::new(ManualClock::at(NOW));
        let shared = SharedState::new(&PostgresOptions::default(), &clock);
        let mut task = task(1, "one").accepted(id(1), NOW);
        task.state = TaskState::Expired;
        let record = Arc::new(TaskRecord::accepted(1, task));
        let begun = shared.cache.begin();
        shared.cache.store_result(id(1), Some(record), begun);
        handle_notice(1, &format!("2:e::{}", id(1)), &shared);
        assert!(matches!(shared.cache.get(id(1)), Some(Some(_))));
        // A later change is told in another place.
        handle_notice(1, &format!("2::{}:", id(1)), &shared);
        assert!(shared.cache.get(id(1)).is_none());
    }
}
