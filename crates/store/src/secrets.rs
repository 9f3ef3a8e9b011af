//! Secrets that all processes of a service share, in the store, so that no operator has to copy
//! them.

use async_trait::async_trait;

use crate::StoreError;

/// The store of shared secrets.
#[async_trait]
pub trait Secrets: Send + Sync + std::fmt::Debug {
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
