//! SQLite files, by their addresses.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use super::{
    SqliteExport, SqliteImport, SqliteInspector, SqliteOperations, SqliteSource, SqliteStore,
    SqliteTables,
};
use crate::driver::StoreDriver;
use crate::{
    BackupSource, KeyStore, OpenError, OpenOptions, OperatorStore, PauseStore, StoreExport,
    StoreHandles, StoreImport, StoreInspection, WebhookStore,
};

/// `sqlite:` with a path: one file for one process.
pub(crate) struct SqliteDriver;

#[async_trait]
impl StoreDriver for SqliteDriver {
    fn knows(&self, url: &str) -> bool {
        matches!(url.split_once(':'), Some(("sqlite", path)) if !path.is_empty())
    }

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<StoreHandles, OpenError> {
        let (file, options) = (file_path(url), options.clone());
        // Opening reads the whole queue and waits for the disk, so not on a thread of the runtime.
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&file, &options));
        let store = opened
            .await
            .map_err(|error| OpenError::Unavailable(Box::new(error)))?
            .map_err(|error| with_path(url, error))?;
        Ok(StoreHandles::from_store(Arc::new(store)))
    }

    async fn migrate(&self, _: &str) -> Result<Option<(u32, u32)>, OpenError> {
        Ok(None)
    }

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError> {
        Ok(Arc::new(
            SqliteTables::open(&file_path(url)).map_err(|error| with_path(url, error))?,
        ))
    }

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn WebhookStore>, OpenError> {
        Ok(Arc::new(
            SqliteTables::open(&file_path(url)).map_err(|error| with_path(url, error))?,
        ))
    }

    fn open_pauses(&self, url: &str) -> Result<Arc<dyn PauseStore>, OpenError> {
        Ok(Arc::new(
            SqliteTables::open(&file_path(url)).map_err(|error| with_path(url, error))?,
        ))
    }

    async fn unsafe_settings(&self, _: &str) -> Result<Vec<String>, OpenError> {
        // The store sets all of its own.
        Ok(Vec::new())
    }

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn OperatorStore>, OpenError> {
        Ok(Arc::new(
            SqliteOperations::open(&file_path(url), clock)
                .map_err(|error| with_path(url, error))?,
        ))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn inspect(&self, url: &str) -> Result<Option<StoreInspection>, OpenError> {
        let found =
            SqliteInspector::open(&file_path(url)).map_err(|error| with_path(url, error))?;
        Ok(found.map(StoreInspection::new))
    }

    fn open_source(&self, url: &str) -> Result<Box<dyn BackupSource>, OpenError> {
        Ok(Box::new(
            SqliteSource::open(&file_path(url)).map_err(|error| with_path(url, error))?,
        ))
    }

    async fn open_export(&self, url: &str) -> Result<Box<dyn StoreExport>, OpenError> {
        Ok(Box::new(
            SqliteExport::open(&file_path(url)).map_err(|error| with_path(url, error))?,
        ))
    }

    async fn open_import(
        &self,
        url: &str,
        export: &str,
    ) -> Result<Box<dyn StoreImport>, OpenError> {
        Ok(Box::new(
            SqliteImport::begin(&file_path(url), export).map_err(|error| with_path(url, error))?,
        ))
    }
}

/// The path in an address: `sqlite:kinora.db`, `sqlite:///srv/kinora.db`.
fn file_path(url: &str) -> PathBuf {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    path.strip_prefix("//").unwrap_or(path).into()
}

/// Names the file that could not be opened: the system does not, and SQLite only sometimes.
fn with_path(url: &str, error: OpenError) -> OpenError {
    let path = file_path(url).display().to_string();
    match error {
        OpenError::Unavailable(cause) if !cause.to_string().contains(&path) => {
            OpenError::Unavailable(format!("{path}: {cause}").into())
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().display());
        let error = SqliteDriver.open_keys(&url).err().unwrap().to_string();
        let path = folder.path().to_str().unwrap();
        assert_eq!(error.matches(path).count(), 1, "{error}");
        assert_eq!(error.matches("cannot be opened").count(), 0, "{error}");
    }
}
