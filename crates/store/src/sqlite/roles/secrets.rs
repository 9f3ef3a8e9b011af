//! Shared secrets.

use async_trait::async_trait;

use super::super::SqliteStore;
use crate::tables::secrets::{KeepSigningKey, signing_key};
use crate::{SecretKey, Secrets, StoreError};

#[async_trait]
impl Secrets for SqliteStore {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        Ok(self.ask(signing_key()).await?.pop())
    }

    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        self.writer.call(KeepSigningKey(offered)).await
    }
}
