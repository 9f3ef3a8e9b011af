//! For those who issue and check API keys.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use super::ReferenceStore;
use super::state::State;
use crate::{ApiKey, KeyStore, NewKey, StoreError};

#[async_trait]
impl KeyStore for ReferenceStore {
    async fn add_key(&self, key: NewKey) -> Result<ApiKey, StoreError> {
        self.state().add_key(key)
    }

    async fn add_first_key(&self, key: NewKey) -> Result<bool, StoreError> {
        let mut state = self.state();
        if !state.keys.is_empty() {
            return Ok(false);
        }
        state.add_key(key).map(|_| true)
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let mut keys: Vec<ApiKey> = self.state().keys.iter().rev().cloned().collect();
        keys.sort_by_key(|one| Reverse(one.key.created_at_ms));
        Ok(keys)
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let mut state = self.state();
        let found = state.keys.iter_mut().find(|one| one.key.sha256 == *sha256);
        Ok(found.map(|one| {
            if one.notes_use(one.last_used_at_ms.unwrap_or(0), now_ms) {
                one.last_used_at_ms = Some(now_ms);
            }
            Arc::new(one.clone())
        }))
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs) -> Result<bool, StoreError> {
        let mut state = self.state();
        let found = state.key(id);
        Ok(found.map(|one| one.revoke(now_ms)).is_some())
    }

    async fn rotate_key(
        &self,
        old: &str,
        new: NewKey,
        now_ms: UnixMs,
        grace_ms: u64,
    ) -> Result<Option<ApiKey>, StoreError> {
        let mut state = self.state();
        if state.key(old).is_none() {
            return Ok(None);
        }
        let added = state.add_key(new)?;
        if let Some(one) = state.key(old) {
            one.retire(now_ms, grace_ms);
        }
        Ok(Some(added))
    }
}

impl State {
    fn key(&mut self, id: &str) -> Option<&mut ApiKey> {
        self.keys.iter_mut().find(|one| one.key.id == id)
    }

    fn add_key(&mut self, key: NewKey) -> Result<ApiKey, StoreError> {
        let is_taken = |one: &ApiKey| one.key.id == key.id || one.key.sha256 == key.sha256;
        if self.keys.iter().any(is_taken) {
            return Err(StoreError::Unavailable("the key is taken".into()));
        }
        let added = ApiKey {
            key,
            revoked_at_ms: None,
            last_used_at_ms: None,
        };
        self.keys.push(added.clone());
        Ok(added)
    }
}

impl ApiKey {
    /// Revoking twice keeps the first time.
    fn revoke(&mut self, now_ms: UnixMs) {
        self.revoked_at_ms.get_or_insert(now_ms);
    }

    /// Ends it `grace_ms` after `now_ms` unless it ends earlier by itself.
    fn retire(&mut self, now_ms: UnixMs, grace_ms: u64) {
        if grace_ms == 0 {
            return self.revoke(now_ms);
        }
        let end_ms = now_ms.saturating_add(grace_ms);
        let own_ms = self.key.expires_at_ms.unwrap_or(end_ms);
        self.key.expires_at_ms = Some(own_ms.min(end_ms));
    }
}
