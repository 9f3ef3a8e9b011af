//! Notices among processes: that there is work, that a lease was withdrawn, and which tasks were changed. Each process
//! sends at most one every [`crate::PostgresOptions::notify_every_ms`], outside of every transaction that changes
//! something: a transaction that notifies holds up the commits of all others. A lost notice costs waiting, no more.
//!
//! `LISTEN` is a state of its connection, so that this one must not go through a pooler in transaction mode. Without
//! it, everything works by polling.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Hints;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client, Error};

use super::connect::{Backoff, Connector};
use super::fault::told;
use super::shared::Shared;
use super::statement::Statement;

/// Tasks that a notice names; of more it says only that they are many. A notice has room for 8,000 bytes.
const NAMED_MAX: usize = 150;

/// What is to be said.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pending: Mutex<Pending>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    hints: Hints,
    /// `None`: too many.
    ids: Option<BTreeSet<TaskId>>,
    any: bool,
}

impl Notices {
    /// Adds a commit.
    pub(super) fn add(&self, hints: Hints, ids: impl Iterator<Item = TaskId>) {
        let mut pending = self.pending();
        if !pending.any {
            *pending = Pending {
                ids: Some(BTreeSet::new()),
                any: true,
                ..Pending::default()
            };
        }
        pending.hints = pending.hints.or(hints);
        if let Some(named) = &mut pending.ids {
            named.extend(ids);
            if named.len() > NAMED_MAX {
                pending.ids = None;
            }
        }
        drop(pending);
        self.moved.notify_one();
    }

    fn take(&self) -> Option<Pending> {
        let pending = std::mem::take(&mut *self.pending());
        pending.any.then_some(pending)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A notice as it is sent: who sends it, the hints, the tasks.
fn written(origin: u64, pending: &Pending) -> String {
    let mut hints = String::new();
    hints.extend(pending.hints.work.then_some('w'));
    hints.extend(pending.hints.withdrawn.then_some('x'));
    let ids = match &pending.ids {
        None => "*".to_owned(),
        Some(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            ids.join(",")
        }
    };
    format!("{origin}:{hints}:{ids}")
}

/// Follows a notice of another process.
fn follow(origin: u64, text: &str, shared: &Shared) {
    let mut parts = text.split(':');
    let (Some(from), Some(hints), Some(ids)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
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
    shared.wake(Hints {
        work: hints.contains('w'),
        withdrawn: hints.contains('x'),
    });
}

/// Sends and hears notices as long as the store is open.
pub(super) struct Listener {
    pub(super) connector: Arc<Connector>,
    pub(super) channel: String,
    pub(super) origin: u64,
}

impl Listener {
    /// Begins to listen, and returns when everything that is said from now on will be heard.
    pub(super) async fn start(self, shared: &Arc<Shared>) {
        let listening = self.listen().await;
        if let Err(error) = &listening {
            tracing::warn!(error = told(error), "store cannot listen; polling only");
        }
        tokio::spawn(self.serve(listening.ok(), Arc::downgrade(shared)));
    }

    async fn listen(&self) -> Result<(Client, mpsc::UnboundedReceiver<AsyncMessage>), Error> {
        let (heard, messages) = mpsc::unbounded_channel();
        let client = self.connector.connect_listening(Some(heard)).await?;
        let listen = Statement::new(format!("LISTEN {}", self.channel));
        listen.run(&client).await?;
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
                    // What was said meanwhile was not heard.
                    shared.cache.forget(None);
                    shared.wake(Hints {
                        work: true,
                        withdrawn: true,
                    });
                    listening = Some(both);
                }
                Err(_) => backoff.fail(),
            }
        }
    }

    /// Until the connection breaks or the store is closed.
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
                // Looks now and then whether the store was closed.
                moved = tokio::time::timeout(Duration::from_secs(1), moved) => {
                    if moved.is_err() {
                        continue;
                    }
                }
            }
            let Some(pending) = now.notices.take() else {
                continue;
            };
            drop(now);
            let notify = Statement::new("SELECT pg_notify($1, $2)").text(self.channel.clone());
            let sent = notify
                .text(written(self.origin, &pending))
                .run(client)
                .await;
            if sent.is_err() {
                return;
            }
            tokio::time::sleep(every).await;
        }
    }
}
