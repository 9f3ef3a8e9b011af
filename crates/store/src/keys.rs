//! API keys as stored: hashes only. Who may do what, and until when.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use crate::{Actor, KeyAction, KeyActionKind, StoreError};

/// Uses of a key that are nearer to the noted one than this are not noted.
const USE_NOTED_EVERY_MS: u64 = 60_000;

/// Where API keys live. Every change of a key adds an entry to the log ([`crate::Operations::key_log`]) in its own
/// transaction.
#[async_trait]
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// Adds a key.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError>;

    /// Adds a key unless the store has or had any; returns whether it was added. Of any number of processes that try
    /// at once, one adds its key.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError>;

    /// Every key, newest first, revoked ones included.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// The key whose secret has this SHA-256, revoked and expired ones included: the caller
    /// judges. A serving store notes the time as the last use of a usable key, see
    /// [`ApiKey::last_used_at_ms`].
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError>;

    /// Revokes a key by its id; `false` when there is none. Revoking twice keeps the first time.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError>;

    /// Adds the new key and ends the old one, in one step: both happen or neither does. `None`, and nothing changed,
    /// when there is no such old key.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError>;
}

/// A key that takes the place of another.
#[derive(Clone, Debug)]
pub struct KeyRotation {
    /// Id of the key that ends.
    pub old: String,
    /// The key in its place.
    pub new: NewKey,
    /// The present.
    pub now_ms: UnixMs,
    /// How long the old key still works, unless it ends earlier by itself; 0: it is revoked.
    pub grace_ms: u64,
}

/// A key to be added.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Short public identifier: `key_` and 12 characters.
    pub id: String,
    /// SHA-256 of the secret text.
    pub sha256: [u8; 32],
    /// What people call it.
    pub name: String,
    /// Whose tasks it sees.
    pub project: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The models it may use; `None` for all.
    pub models: Option<Vec<String>>,
    /// Its own bound on requests per minute; `None` for the configured one.
    pub requests_per_minute: Option<u32>,
    /// Its own bound on unfinished tasks of its project; `None` for the configured one.
    pub unfinished_max: Option<u32>,
    /// When it was made.
    pub created_at_ms: UnixMs,
    /// From when on it is refused.
    pub expires_at_ms: Option<UnixMs>,
}

impl NewKey {
    /// The log's entry that `by` added it.
    pub(crate) fn created_by(&self, by: &Actor) -> KeyAction {
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
    /// What it was made with.
    pub key: NewKey,
    /// When it was revoked.
    pub revoked_at_ms: Option<UnixMs>,
    /// When it last opened something, to about a minute: uses within a minute of the noted one are
    /// not noted, and a crash forgets those of the last seconds.
    pub last_used_at_ms: Option<UnixMs>,
}

impl ApiKey {
    /// Whether the key opens anything at `now_ms`.
    pub fn is_usable(&self, now_ms: UnixMs) -> bool {
        self.revoked_at_ms.is_none() && self.key.expires_at_ms.is_none_or(|end| now_ms < end)
    }

    /// Whether a use at `now_ms` is to be noted, after one that was noted at `noted_ms` (0: none). A clock that was
    /// set back is noted too.
    pub(crate) fn notes_use(&self, noted_ms: UnixMs, now_ms: UnixMs) -> bool {
        noted_ms.abs_diff(now_ms) >= USE_NOTED_EVERY_MS && self.is_usable(now_ms)
    }
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Submit, cancel, delete.
    Write,
    /// Query, list, download.
    Read,
    /// See the whole service: what waits and runs in all projects, and who works.
    Operations,
}

impl Scope {
    /// Every scope.
    const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Operations];
    /// The scopes of a key that is given none: those on its project's own videos.
    pub const VIDEOS: [Self; 2] = [Self::Write, Self::Read];

    /// The name used in keys and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "videos:write",
            Self::Read => "videos:read",
            Self::Operations => "operations:read",
        }
    }

    /// The scope with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}
