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
use kinora_contract::lifecycle::Hints;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{Backoff, Connector};
use super::fault::Fault;
use super::notices::written;
use super::session::Statement;
use super::shared::Shared;
use crate::{StoreError, TaskChange};

/// Handles a notice from another process: `origin:hints:ended:news`, with ids or `*` in the last two.
fn follow(origin: u64, text: &str, shared: &Shared) {
    let mut parts = text.split(':');
    let (Some(from), Some(hints), Some(ids)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    // PostgreSQL also sends a notice to the connection that caused it.
    if from == origin.to_string() {
        return;
    }
    match ids {
        "*" => shared.cache.forget(None),
        ids => {
            let ids: Vec<TaskId> = ids.split(',').filter_map(|id| id.parse().ok()).collect();
            shared.cache.forget(Some(&ids));
        }
    }
    shared.signals.wake(Hints {
        work: hints.contains('w'),
        withdrawn: hints.contains('x'),
        ended: hints.contains('e'),
    });
    // Processes of an earlier release send no news.
    match parts.next() {
        None => {}
        Some("*") => shared.signals.followers.tell(TaskChange::Unknown),
        Some(ids) => {
            let ids: Vec<TaskId> = ids.split(',').filter_map(|id| id.parse().ok()).collect();
            shared.cache.forget_unfinished(&ids);
            for id in ids {
                shared.signals.followers.tell(TaskChange::Of(id));
            }
        }
    }
}

/// Sends and receives notices while the store is open.
pub(super) struct Listener {
    pub(super) connector: Arc<Connector>,
    pub(super) channel: String,
    pub(super) origin: u64,
}

impl Listener {
    /// Begins to listen; on return, every later notice will arrive.
    pub(super) async fn start(self, shared: &Arc<Shared>) {
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
        let listen = Statement::new(format!("LISTEN {}", self.channel));
        listen.run(&client).await.map_err(Fault::from)?;
        Ok((client, messages))
    }

    async fn serve(
        self,
        mut listening: Option<(Client, mpsc::UnboundedReceiver<AsyncMessage>)>,
        shared: Weak<Shared>,
    ) {
        let mut backoff = Backoff::default();
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
                    shared.cache.forget(None);
                    shared.signals.followers.tell(TaskChange::Unknown);
                    shared.signals.wake(Hints {
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
        shared: &Weak<Shared>,
    ) {
        loop {
            let Some(now) = shared.upgrade() else {
                return;
            };
            let every = Duration::from_millis(now.options.notify_every_ms);
            let moved = now.notices.moved.notified();
            tokio::select! {
                message = messages.recv() => match message {
                    Some(AsyncMessage::Notification(notice)) => {
                        follow(self.origin, notice.payload(), &now);
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
            let sent = Statement::new(notify)
                .text(self.channel.clone())
                .texts(written(self.origin, &pending))
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
    use kinora_contract::lifecycle::Record;
    use kinora_contract::{ManualClock, State};

    use super::*;
    use crate::PostgresOptions;
    use crate::conformance::fixtures::{NOW, id, task};

    #[test]
    fn a_notice_of_its_end_does_not_forget_a_task_that_was_already_read() {
        let clock: Arc<dyn kinora_contract::Clock> = Arc::new(ManualClock::at(NOW));
        let shared = Shared::new(&PostgresOptions::default(), &clock);
        let mut task = task(1, "one").accepted(id(1), NOW);
        task.state = State::Expired;
        let record = Arc::new(Record::accepted(1, task));
        let begun = shared.cache.begin();
        shared.cache.offer(id(1), Some(record), begun);
        follow(1, &format!("2:e::{}", id(1)), &shared);
        assert!(matches!(shared.cache.get(id(1)), Some(Some(_))));
        // A later change is told in another place.
        follow(1, &format!("2::{}:", id(1)), &shared);
        assert!(shared.cache.get(id(1)).is_none());
    }
}
