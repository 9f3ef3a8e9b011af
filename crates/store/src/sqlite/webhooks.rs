//! Webhooks and the log of their deliveries in SQLite: changes by the serving process and by commands
//! beside it. Times are wall time, since deliveries outlive the process; a time too far ahead comes
//! from a wrong clock, and counts as past.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kinora_contract::WebhookSecret;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use super::batch::Batch;
use super::columns::int;
use super::fault::{Done, Fault};
use super::job::Operation;
use super::{carrying, keys};
use crate::{
    Attempted, Delivery, DeliveryState, OpenError, StoreError, Webhook, WebhookChange, Webhooks,
};

/// The columns of a webhook, for [`read`].
pub(super) const WEBHOOK: &str = "w.id, w.project, w.url, w.secret, w.old_secret, w.old_until_ms, w.created_at_ms, w.disabled_at_ms, w.dropped";
const DELIVERY: &str =
    "number, event, task, url, state, attempts, due_ms, tried_at_ms, status, error";

impl Operation for WebhookChange {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        change(batch.conn, self)
    }
}

/// Within a transaction.
fn change(conn: &Connection, change: &WebhookChange) -> Done<bool> {
    let changed = match change {
        WebhookChange::Add(webhook) => add(conn, webhook)?,
        WebhookChange::Remove { id } => {
            conn.execute("DELETE FROM deliveries WHERE webhook = ?1", [id])?;
            conn.execute("DELETE FROM webhooks WHERE id = ?1", [id])?
        }
        WebhookChange::Rotate {
            id,
            secret,
            old_until_ms,
        } => conn.execute(
            "UPDATE webhooks SET old_secret = secret, old_until_ms = ?3, secret = ?2 WHERE id = ?1",
            params![id, secret.bytes(), int(*old_until_ms)],
        )?,
        WebhookChange::Test { id, event } => conn.execute(
            "INSERT INTO deliveries (event, webhook, state) SELECT ?2, id, 'pending' FROM webhooks \
             WHERE id = ?1 AND url IS NOT NULL AND disabled_at_ms IS NULL",
            [id, event],
        )?,
        WebhookChange::Redeliver { number } => conn.execute(
            "UPDATE deliveries SET state = 'pending', due_ms = 0, attempts = 0, token = NULL \
             WHERE number = ?1 AND state IN ('delivered', 'failed')",
            [int(*number)],
        )?,
    };
    Ok(changed > 0)
}

/// Adds a webhook, unless it is for callbacks and its project already has one for them. Returns how
/// many were added.
pub(super) fn add(conn: &Connection, webhook: &Webhook) -> Done<usize> {
    let (old, until_ms) = webhook.old_secret.clone().unzip();
    let added = conn.execute(
        "INSERT INTO webhooks (id, project, url, secret, old_secret, old_until_ms, created_at_ms, disabled_at_ms) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 \
         WHERE ?3 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM webhooks WHERE project = ?2 AND url IS NULL)",
        params![
            webhook.id,
            webhook.project,
            webhook.url,
            webhook.secret.bytes(),
            old.map(|secret| *secret.bytes()),
            until_ms.map(int),
            int(webhook.created_at_ms),
            webhook.disabled_at_ms.map(int),
        ],
    );
    Ok(added?)
}

/// In order of creation.
pub(super) fn list(conn: &Connection) -> Done<Vec<Webhook>> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {WEBHOOK} FROM webhooks w ORDER BY w.created_at_ms, w.id"
    ))?;
    let found = query.query_map([], |row| Ok(read(row)))?;
    found.map(|webhook| webhook?).collect()
}

/// Reads [`WEBHOOK`].
pub(super) fn read(row: &Row<'_>) -> Done<Webhook> {
    let until_ms: Option<i64> = row.get(5)?;
    let old: Option<[u8; 32]> = row.get(4)?;
    let disabled: Option<i64> = row.get(7)?;
    Ok(Webhook {
        id: row.get(0)?,
        project: row.get(1)?,
        url: row.get(2)?,
        secret: WebhookSecret::new(row.get(3)?),
        old_secret: old
            .map(WebhookSecret::new)
            .zip(until_ms.map(i64::unsigned_abs)),
        created_at_ms: row.get::<_, i64>(6)?.unsigned_abs(),
        disabled_at_ms: disabled.map(i64::unsigned_abs),
        dropped: row.get::<_, i64>(8)?.unsigned_abs(),
    })
}

/// Newest first.
pub(super) fn log(conn: &Connection, webhook: &str, count: usize) -> Done<Vec<Delivery>> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {DELIVERY} FROM deliveries WHERE webhook = ?1 ORDER BY number DESC LIMIT ?2"
    ))?;
    let found = query.query_map(params![webhook, int(count as u64)], |row| {
        Ok(read_delivery(row))
    })?;
    found.map(|delivery| delivery?).collect()
}

/// Reads [`DELIVERY`].
fn read_delivery(row: &Row<'_>) -> Done<Delivery> {
    let state: String = row.get(4)?;
    let (tried, status): (Option<i64>, Option<u16>) = (row.get(7)?, row.get(8)?);
    let error: Option<String> = row.get(9)?;
    Ok(Delivery {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        event: row.get(1)?,
        task: row.get(2)?,
        url: row.get(3)?,
        state: DeliveryState::named(&state)
            .ok_or_else(|| Fault::Corrupt(format!("unknown state {state:?} of a delivery")))?,
        attempts: row.get(5)?,
        due_ms: row.get::<_, i64>(6)?.unsigned_abs(),
        last: tried.map(|at_ms| Attempted {
            at_ms: at_ms.unsigned_abs(),
            answer: status.ok_or_else(|| error.unwrap_or_default()),
        }),
    })
}

/// The webhooks of a store, beside the process that serves it.
#[derive(Debug)]
pub(crate) struct SqliteWebhooks {
    conn: Mutex<Connection>,
}

impl SqliteWebhooks {
    /// Opens the webhooks of the store in the file at `path`.
    ///
    /// # Errors
    /// [`OpenError::Missing`] if there is no such file; otherwise another [`OpenError`], with a
    /// message for operators.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let conn = Mutex::new(keys::open_beside(path)?);
        Ok(Self { conn })
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Webhooks for SqliteWebhooks {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        Ok(list(&self.conn())?)
    }

    async fn change_webhook(&self, wanted: WebhookChange) -> Result<bool, StoreError> {
        let conn = self.conn();
        let changed = || -> Done<bool> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let changed = change(&step, &wanted)?;
            step.commit()?;
            Ok(changed)
        };
        let changed = changed()?;
        // As with keys: only in the database itself are changes safe from an unnoticed loss of the
        // log.
        carrying::carry_over(&conn);
        Ok(changed)
    }

    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError> {
        Ok(log(&self.conn(), webhook, count)?)
    }
}
