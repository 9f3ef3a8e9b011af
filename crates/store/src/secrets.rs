//! Secrets that all processes of a service share. They are kept in the store so that no operator has to copy them.

use async_trait::async_trait;

use crate::StoreError;

/// Where shared secrets live.
#[async_trait]
pub trait Secrets: Send + Sync + std::fmt::Debug {
    /// The key that signs result addresses; `None` where none was kept yet.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError>;

    /// Keeps `offered` as the key that signs result addresses, unless the store has one, and returns the key that it
    /// has then. Any number of processes may offer at once: all get the same key. It never changes.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read or stored now.
    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError>;
}

/// 32 secret bytes. Never printed, not even by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey(pub [u8; 32]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(..)")
    }
}
