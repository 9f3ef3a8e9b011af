//! The interface of a kind of store (a driver), and the options for opening one.
//! [`mod@crate::open`] finds the driver of an address; each is in the folder of its kind. A driver
//! answers [`OpenError::NotHere`] for an operation that its kind does not have.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use crate::{
    BackupSource, KeyStore, OpenError, OperatorStore, PauseStore, PostgresOptions, SqliteOptions,
    StoreExport, StoreHandles, StoreImport, StoreInspection, WebhookStore,
};

/// A kind of store. Each method is the public function of the same name in [`mod@crate::open`], for
/// addresses of this kind.
#[async_trait]
pub(crate) trait StoreDriver: Sync {
    /// Whether an address is one of this kind.
    fn knows(&self, url: &str) -> bool;

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<StoreHandles, OpenError>;

    async fn migrate(&self, url: &str) -> Result<Option<(u32, u32)>, OpenError>;

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError>;

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn WebhookStore>, OpenError>;

    fn open_pauses(&self, url: &str) -> Result<Arc<dyn PauseStore>, OpenError>;

    async fn unsafe_settings(&self, url: &str) -> Result<Vec<String>, OpenError>;

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn OperatorStore>, OpenError>;

    fn is_shared(&self) -> bool;

    fn inspect(&self, url: &str) -> Result<Option<StoreInspection>, OpenError>;

    fn open_source(&self, url: &str) -> Result<Box<dyn BackupSource>, OpenError>;

    async fn open_export(&self, url: &str) -> Result<Box<dyn StoreExport>, OpenError>;

    async fn open_import(&self, url: &str, export: &str)
    -> Result<Box<dyn StoreImport>, OpenError>;
}

/// Options for opening a store. Each implementation reads its own part.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Determines all times of a store that serves one process.
    pub clock: Arc<dyn Clock>,
    /// For SQLite.
    pub sqlite: SqliteOptions,
    /// For PostgreSQL.
    pub postgres: PostgresOptions,
}

impl OpenOptions {
    /// The default options with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sqlite: SqliteOptions::default(),
            postgres: PostgresOptions::default(),
        }
    }
}
