//! API keys as stored (hashes, permissions and expiry, but never the keys themselves), their shared
//! request allowances, and the secret that signs result URLs. Every process of a service sees the same,
//! so no operator has to copy them.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;
use serde::{Deserialize, Serialize};

use crate::{Budget, StoreError};

/// Uses of a key within this time of the recorded one are not recorded.
const USE_NOTED_EVERY_MS: u64 = 60_000;

/// The store of API keys. Every change of a key adds an entry to the log
/// ([`crate::OperatorStore::key_log`]) in the same transaction.
#[async_trait]
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// Adds a key.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn add_key(&self, key: NewKey, by: &KeyActor) -> Result<ApiKey, StoreError>;

    /// Adds a key unless the store has or had any; returns whether it was added. If several
    /// processes try concurrently, exactly one succeeds.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn add_first_key(&self, key: NewKey, by: &KeyActor) -> Result<bool, StoreError>;

    /// Every key, newest first, including revoked ones.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// The key whose secret has this SHA-256, even if it is revoked or expired: the caller checks
    /// that. A serving store records the time as the last use of a usable key, see
    /// [`ApiKey::last_used_at_ms`].
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError>;

    /// Revokes a key by its id; `false` if there is none. A second call keeps the first time.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &KeyActor)
    -> Result<bool, StoreError>;

    /// Adds the new key and ends the old one, in one step: both happen or neither. `None`, with
    /// nothing changed, if the old key does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &KeyActor,
    ) -> Result<Option<ApiKey>, StoreError>;

    /// Replaces the key that signs result URLs, which invalidates all URLs that were handed out. Serving
    /// processes find the new key by [`crate::SecretStore::signing_key`].
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError>;
}

/// The replacement of a key.
#[derive(Clone, Debug)]
pub struct KeyRotation {
    /// Id of the key that ends.
    pub old: String,
    /// The new key.
    pub new: NewKey,
    /// The current time.
    pub now_ms: UnixMs,
    /// How long the old key still works, unless it ends earlier; 0: it is revoked.
    pub grace_ms: u64,
}

/// A key to add.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Short public identifier: `key_` and 12 characters.
    pub id: String,
    /// SHA-256 of the secret text.
    pub sha256: [u8; 32],
    /// Its name, for people.
    pub name: String,
    /// The project whose tasks it can access.
    pub project: String,
    /// Its permissions.
    pub scopes: Vec<KeyScope>,
    /// The models it may use; `None` for all.
    pub models: Option<Vec<String>>,
    /// Its own limit on requests per minute; `None` for the configured one.
    pub requests_per_minute: Option<u32>,
    /// Its own limit on unfinished tasks of its project; `None` for the configured one.
    pub unfinished_max: Option<u32>,
    /// What its tasks may cost.
    pub budget: Budget,
    /// Time of creation.
    pub created_at_ms: UnixMs,
    /// Time of expiry.
    pub expires_at_ms: Option<UnixMs>,
}

impl NewKey {
    /// The log entry for its creation by `by`.
    pub(crate) fn created_by(&self, by: &KeyActor) -> KeyAction {
        KeyAction {
            at_ms: self.created_at_ms,
            kind: KeyActionKind::Created,
            key: self.id.clone(),
            name: self.name.clone(),
            project: self.project.clone(),
            successor: None,
            by: by.clone(),
        }
    }
}

/// A stored key.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// The key's data.
    pub key: NewKey,
    /// Time of revocation.
    pub revoked_at_ms: Option<UnixMs>,
    /// Time of the last successful use, to about a minute: uses within a minute of the recorded one
    /// are not recorded, and a crash loses those of the last seconds.
    pub last_used_at_ms: Option<UnixMs>,
}

impl ApiKey {
    /// Whether the key is valid at `now_ms`.
    pub fn is_usable(&self, now_ms: UnixMs) -> bool {
        self.revoked_at_ms.is_none() && self.key.expires_at_ms.is_none_or(|end| now_ms < end)
    }

    /// Whether to record a use at `now_ms`, given the recorded one at `noted_ms` (0: none). A use
    /// by a clock that was set back is recorded too.
    pub(crate) fn should_record_use(&self, noted_ms: UnixMs, now_ms: UnixMs) -> bool {
        // A key is used by every request. Writing each use would cost a transaction per request,
        // and an operator who looks for unused keys needs no more than a minute.
        noted_ms.abs_diff(now_ms) >= USE_NOTED_EVERY_MS && self.is_usable(now_ms)
    }
}

/// A permission of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyScope {
    /// Submit, cancel, delete.
    Write,
    /// Query, list, download.
    Read,
    /// See the whole service: queue, running tasks and workers of all projects.
    Operations,
    /// Pause and resume models.
    Control,
}

impl KeyScope {
    /// Every scope.
    const ALL: [Self; 4] = [Self::Write, Self::Read, Self::Operations, Self::Control];
    /// The default scopes of a key: those on its project's own videos.
    pub const VIDEOS: [Self; 2] = [Self::Write, Self::Read];

    /// The name used in keys and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "videos:write",
            Self::Read => "videos:read",
            Self::Operations => "operations:read",
            Self::Control => "operations:write",
        }
    }

    /// The scope with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The author of a change of keys: the user of a command, or the service at its first start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyActor {
    /// Name of the system's user.
    pub user: String,
    /// Name of the machine.
    pub host: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyAction {
    /// Time of the change, by the clock of its author.
    pub at_ms: UnixMs,
    /// Kind of the change.
    pub kind: KeyActionKind,
    /// Id of the key.
    pub key: String,
    /// The key's name.
    pub name: String,
    /// The key's project.
    pub project: String,
    /// Id of the key that replaces it.
    pub successor: Option<String>,
    /// The author.
    pub by: KeyActor,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyActionKind {
    /// The key was added.
    Created,
    /// Another key replaced it.
    Rotated,
    /// The key was revoked.
    Revoked,
}

impl KeyActionKind {
    /// The name for people, programs and databases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Rotated => "rotated",
            Self::Revoked => "revoked",
        }
    }

    /// The kind with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Created, Self::Rotated, Self::Revoked]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

/// The store of shared secrets.
#[async_trait]
pub trait SecretStore: Send + Sync + std::fmt::Debug {
    /// The key that signs result URLs; `None` if there is none yet.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError>;

    /// Stores `offered` as the key that signs result URLs, unless the store has one, and returns
    /// the stored key. If several processes offer keys concurrently, all get the same one. Only
    /// [`crate::KeyStore::replace_signing_key`] changes it.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read or stored now.
    async fn store_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError>;
}

/// 32 secret bytes. Never printed, not even by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey(pub [u8; 32]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// The request allowances that several processes share, one per API key. Each process takes a few
/// requests at a time and spends them without asking again.
#[async_trait]
pub trait AllowanceStore: Send + Sync + std::fmt::Debug {
    /// Takes up to `wanted` requests from the allowance of the key `key`, for the caller alone. The
    /// allowance holds `per_minute` requests (at least 1) and refills steadily by the store's
    /// clock. It is full if nobody has taken from it, and may be full again after the database has
    /// crashed. Requests cannot be given back.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; then requests may have been taken that nobody
    /// can spend.
    async fn acquire(
        &self,
        key: &str,
        per_minute: u32,
        wanted: u32,
    ) -> Result<AllowanceGrant, StoreError>;
}

/// The result of taking from an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowanceGrant {
    /// Number of requests that the caller may now admit, at most the number it wanted.
    pub granted: u32,
    /// Number of requests left for all processes.
    pub left: u32,
    /// Time until the next request is available, in milliseconds; 0 if some are left.
    pub next_ms: u64,
}
