//! The interface for issuing and checking API keys.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use super::super::PostgresStore;
use crate::{Actor, ApiKey, KeyRotation, KeyStore, NewKey, SecretKey, StoreError};

#[async_trait]
impl KeyStore for PostgresStore {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        self.keys.add_key(key, by).await
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        self.keys.add_first_key(key, by).await
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.keys.list_keys().await
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        self.keys.find_serving(sha256, now_ms).await
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        self.keys.revoke_key(id, now_ms, by).await
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        self.keys.rotate_key(rotation, by).await
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.keys.replace_signing_key(new).await
    }
}
