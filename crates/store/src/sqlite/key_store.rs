//! API keys in the serving process: from memory while that is fresh, otherwise from disk on a
//! thread that may block.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use super::{SqliteStore, stopped};
use crate::tables::keys::{AddFirstKey, AddKey, RevokeKey, RotateKey};
use crate::tables::secrets::ReplaceSigningKey;
use crate::{Actor, ApiKey, KeyRotation, KeyStore, NewKey, SecretKey, StoreError};

#[async_trait]
impl KeyStore for SqliteStore {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        let added = self.writer.call(AddKey(key, by.clone())).await?;
        self.keys.refresh();
        Ok(added)
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        let added = self.writer.call(AddFirstKey(key, by.clone())).await?;
        self.keys.refresh();
        Ok(added)
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.keys.clone();
        let listed = self.key_reading[1].run(move || keys.list());
        Ok(listed.await.map_err(stopped)??)
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        if let Some(key) = self.keys.known(sha256, now_ms) {
            return Ok(Some(key));
        }
        let place = usize::from(!self.keys.remembers(sha256));
        let (keys, sha256) = (self.keys.clone(), *sha256);
        let found = self.key_reading[place].run(move || keys.find(&sha256, now_ms));
        Ok(found.await.map_err(stopped)??)
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        let revoked = self
            .writer
            .call(RevokeKey(id.to_owned(), now_ms, by.clone()))
            .await?;
        self.keys.refresh();
        Ok(revoked)
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        let rotate = RotateKey(rotation, by.clone());
        let added = self.writer.call(rotate).await?;
        self.keys.refresh();
        Ok(added)
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.writer.call(ReplaceSigningKey(new)).await
    }
}
