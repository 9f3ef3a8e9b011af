//! Shared secrets.

use async_trait::async_trait;

use super::super::SqliteStore;
use super::super::memory::Memory;
use super::super::reads::Readers;
use super::super::secrets::KeepSigningKey;
use crate::{SecretKey, Secrets, StoreError};

#[async_trait]
impl Secrets for SqliteStore {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        let read = |readers: &Readers, _: &Memory| readers.signing_key();
        self.read(None, read).await
    }

    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        self.writer.call(KeepSigningKey(offered)).await
    }
}
