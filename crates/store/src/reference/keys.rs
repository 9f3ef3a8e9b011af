//! The interface for API keys.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;
use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;

use super::ReferenceStore;
use super::state::State;
use crate::{
    Actor, ApiKey, KeyAction, KeyActionKind, KeyRotation, KeyStore, NewKey, SecretKey, StoreError,
};

#[async_trait]
impl KeyStore for ReferenceStore {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        self.state().add_logged(key, by)
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        let mut state = self.state();
        if !state.keys.is_empty() {
            return Ok(false);
        }
        state.add_logged(key, by).map(|_| true)
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

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(one) = state.key(id) else {
            return Ok(false);
        };
        let before = one.clone();
        one.revoke(now_ms);
        if before.revoked_at_ms.is_none() {
            state.log(KeyAction {
                at_ms: now_ms,
                kind: KeyActionKind::Revoked,
                ..before.key.created_by(by)
            });
        }
        Ok(true)
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        let mut state = self.state();
        let Some(old) = state.key(&rotation.old).map(|one| one.key.clone()) else {
            return Ok(None);
        };
        let added = state.add_key(rotation.new)?;
        if let Some(one) = state.key(&rotation.old) {
            one.retire(rotation.now_ms, rotation.grace_ms);
        }
        state.log(KeyAction {
            at_ms: rotation.now_ms,
            kind: KeyActionKind::Rotated,
            successor: Some(added.key.id.clone()),
            ..old.created_by(by)
        });
        Ok(Some(added))
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.state().signing_key = Some(new);
        Ok(())
    }
}

impl State {
    fn key(&mut self, id: &str) -> Option<&mut ApiKey> {
        self.keys.iter_mut().find(|one| one.key.id == id)
    }

    fn log(&mut self, entry: KeyAction) {
        self.key_log.push_back(entry);
        if self.key_log.len() > KEY_LOG_ENTRIES_MAX {
            self.key_log.pop_front();
        }
    }

    fn add_logged(&mut self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        let entry = key.created_by(by);
        let added = self.add_key(key)?;
        self.log(entry);
        Ok(added)
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
    /// A second call keeps the first time.
    fn revoke(&mut self, now_ms: UnixMs) {
        self.revoked_at_ms.get_or_insert(now_ms);
    }

    /// Makes it expire `grace_ms` after `now_ms`, unless it expires earlier.
    fn retire(&mut self, now_ms: UnixMs, grace_ms: u64) {
        if grace_ms == 0 {
            return self.revoke(now_ms);
        }
        let end_ms = now_ms.saturating_add(grace_ms);
        let own_ms = self.key.expires_at_ms.unwrap_or(end_ms);
        self.key.expires_at_ms = Some(own_ms.min(end_ms));
    }
}
