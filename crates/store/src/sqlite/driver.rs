//! SQLite files, by their addresses.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use super::{
    Inspector, SqliteBeside, SqliteExport, SqliteImport, SqliteOperations, SqliteSource,
    SqliteStore,
};
use crate::driver::Driver;
use crate::{
    BackupSource, Export, Import, Inspection, KeyStore, LivingWorker, OpenError, OpenOptions,
    Operations, Stores, Webhooks,
};

/// `sqlite:` with a path: one file for one process.
pub(crate) struct SqliteDriver;

#[async_trait]
impl Driver for SqliteDriver {
    fn knows(&self, url: &str) -> bool {
        matches!(url.split_once(':'), Some(("sqlite", path)) if !path.is_empty())
    }

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<Stores, OpenError> {
        let (path, options) = (path(url), options.clone());
        // It reads the queue, and waits for the disk.
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, &options));
        let store = opened
            .await
            .map_err(|error| OpenError::Unavailable(Box::new(error)))??;
        Ok(Stores::of(Arc::new(store)))
    }

    async fn migrate(&self, _: &str) -> Result<Option<(u32, u32)>, OpenError> {
        Ok(None)
    }

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError> {
        Ok(Arc::new(SqliteBeside::open(&path(url))?))
    }

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn Webhooks>, OpenError> {
        Ok(Arc::new(SqliteBeside::open(&path(url))?))
    }

    async fn living_workers(
        &self,
        url: &str,
        clock: &dyn Clock,
    ) -> Result<Vec<LivingWorker>, OpenError> {
        let path = path(url);
        let inspector = Inspector::open(&path)?.ok_or(OpenError::Missing(path))?;
        let living = inspector.living_workers(clock.now_ms());
        living.map_err(|error| OpenError::Unavailable(Box::new(error)))
    }

    async fn unsafe_settings(&self, _: &str) -> Result<Vec<String>, OpenError> {
        // The store sets all of its own.
        Ok(Vec::new())
    }

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Operations>, OpenError> {
        Ok(Arc::new(SqliteOperations::open(&path(url), clock)?))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn inspect(&self, url: &str) -> Result<Option<Inspection>, OpenError> {
        Ok(Inspector::open(&path(url))?.map(Inspection::of))
    }

    fn open_source(&self, url: &str) -> Result<Box<dyn BackupSource>, OpenError> {
        Ok(Box::new(SqliteSource::open(&path(url))?))
    }

    async fn open_export(&self, url: &str) -> Result<Box<dyn Export>, OpenError> {
        Ok(Box::new(SqliteExport::open(&path(url))?))
    }

    async fn open_import(&self, url: &str, export: &str) -> Result<Box<dyn Import>, OpenError> {
        Ok(Box::new(SqliteImport::begin(&path(url), export)?))
    }
}

/// The path in an address: `sqlite:kinora.db`, `sqlite:///srv/kinora.db`.
fn path(url: &str) -> PathBuf {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    path.strip_prefix("//").unwrap_or(path).into()
}
