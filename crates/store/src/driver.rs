//! What each kind of store does with its address. [`mod@crate::open`] finds the driver of an address; the driver
//! lies in the folder of its kind. What a kind lacks is [`OpenError::NotHere`], said by the driver.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use crate::{
    BackupSource, Export, Import, Inspection, KeyStore, OpenError, OpenOptions, Operations, Stores,
    Webhooks,
};

/// A kind of store. Each method is the public function of the same name in [`mod@crate::open`], for addresses of this
/// kind.
#[async_trait]
pub(crate) trait Driver: Sync {
    /// Whether an address is one of this kind.
    fn knows(&self, url: &str) -> bool;

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<Stores, OpenError>;

    async fn migrate(&self, url: &str) -> Result<Option<(u32, u32)>, OpenError>;

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError>;

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn Webhooks>, OpenError>;

    async fn unsafe_settings(&self, url: &str) -> Result<Vec<String>, OpenError>;

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Operations>, OpenError>;

    fn is_shared(&self) -> bool;

    fn inspect(&self, url: &str) -> Result<Option<Inspection>, OpenError>;

    fn open_source(&self, url: &str) -> Result<Box<dyn BackupSource>, OpenError>;

    async fn open_export(&self, url: &str) -> Result<Box<dyn Export>, OpenError>;

    async fn open_import(&self, url: &str, export: &str) -> Result<Box<dyn Import>, OpenError>;
}
