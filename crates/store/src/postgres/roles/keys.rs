//! For those who issue and check API keys.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use super::super::PostgresStore;
use crate::{ApiKey, KeyStore, NewKey, StoreError};

#[async_trait]
impl KeyStore for PostgresStore {
    async fn add_key(&self, key: NewKey) -> Result<ApiKey, StoreError> {
        self.keys.add_key(key).await
    }

    async fn add_first_key(&self, key: NewKey) -> Result<bool, StoreError> {
        self.keys.add_first_key(key).await
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

    async fn revoke_key(&self, id: &str, now_ms: UnixMs) -> Result<bool, StoreError> {
        self.keys.revoke_key(id, now_ms).await
    }

    async fn rotate_key(
        &self,
        old: &str,
        new: NewKey,
        now_ms: UnixMs,
        grace_ms: u64,
    ) -> Result<Option<ApiKey>, StoreError> {
        self.keys.rotate_key(old, new, now_ms, grace_ms).await
    }
}
