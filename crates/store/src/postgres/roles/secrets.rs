//! Shared secrets.

use async_trait::async_trait;

use super::super::PostgresStore;
use super::super::secrets::{KeepSigningKey, ask, read};
use crate::{SecretKey, Secrets, StoreError};

#[async_trait]
impl Secrets for PostgresStore {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        Ok(read(&self.reader.query(ask()).await?)?)
    }

    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        self.acts.call(KeepSigningKey(offered)).await
    }
}
