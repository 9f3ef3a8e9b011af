//! Shared secrets.

use async_trait::async_trait;

use super::super::{PostgresStore, script};
use crate::tables::secrets::{KeepSigningKey, signing_key};
use crate::{SecretKey, Secrets, StoreError};

#[async_trait]
impl Secrets for PostgresStore {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        Ok(script::ask(&self.reader, signing_key()).await?.pop())
    }

    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        self.acts.call(KeepSigningKey(offered)).await
    }
}
