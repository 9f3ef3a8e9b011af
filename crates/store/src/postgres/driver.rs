//! PostgreSQL databases, by their addresses.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use super::PostgresStore;
use super::address::is_postgres;
use super::commands::PostgresOperations;
use super::commands::PostgresTables;
use super::opening::unsafe_settings_of;
use crate::driver::StoreDriver;
use crate::{
    BackupSource, KeyStore, OpenError, OpenOptions, OperatorStore, PauseStore, StoreExport,
    StoreHandles, StoreImport, StoreInspection, WebhookStore,
};

/// `postgres://`: one database for any number of processes.
pub(crate) struct PostgresDriver;

#[async_trait]
impl StoreDriver for PostgresDriver {
    fn knows(&self, url: &str) -> bool {
        is_postgres(url)
    }

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<StoreHandles, OpenError> {
        let store = PostgresStore::open(url, options).await?;
        Ok(StoreHandles::from_store(Arc::new(store)))
    }

    async fn migrate(&self, url: &str) -> Result<Option<(u32, u32)>, OpenError> {
        super::migrate(url).await.map(Some)
    }

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError> {
        Ok(Arc::new(PostgresTables::new(url)?))
    }

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn WebhookStore>, OpenError> {
        Ok(Arc::new(PostgresTables::new(url)?))
    }

    fn open_pauses(&self, url: &str) -> Result<Arc<dyn PauseStore>, OpenError> {
        Ok(Arc::new(PostgresTables::new(url)?))
    }

    async fn unsafe_settings(&self, url: &str) -> Result<Vec<String>, OpenError> {
        unsafe_settings_of(url).await
    }

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn OperatorStore>, OpenError> {
        Ok(Arc::new(PostgresOperations::open(url, &clock).await?))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn inspect(&self, _: &str) -> Result<Option<StoreInspection>, OpenError> {
        Err(OpenError::NotHere)
    }

    fn open_source(&self, _: &str) -> Result<Box<dyn BackupSource>, OpenError> {
        Err(OpenError::NotHere)
    }

    async fn open_export(&self, url: &str) -> Result<Box<dyn StoreExport>, OpenError> {
        Ok(Box::new(super::export(url).await?))
    }

    async fn open_import(
        &self,
        url: &str,
        export: &str,
    ) -> Result<Box<dyn StoreImport>, OpenError> {
        Ok(Box::new(super::import(url, export).await?))
    }
}
