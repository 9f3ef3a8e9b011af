//! The webhooks of a SQLite store for commands beside the process that serves it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::fault::Done;
use super::{carrying, keys, script};
use crate::tables::webhooks;
use crate::{Delivery, OpenError, StoreError, Webhook, WebhookChange, Webhooks};

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
        Ok(script::ask(&self.conn(), &webhooks::all())?)
    }

    async fn change_webhook(&self, wanted: WebhookChange) -> Result<bool, StoreError> {
        let conn = self.conn();
        let changed = || -> Done<bool> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let changed = script::run_all(&step, &wanted, 0)?;
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
        let log = webhooks::log(webhook, count);
        Ok(script::ask(&self.conn(), &log)?)
    }
}
