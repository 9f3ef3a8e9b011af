//! Allowances of requests that several processes share: each takes a few at a time and spends them without asking.

use async_trait::async_trait;

use crate::StoreError;

/// The shared allowances, one for each API key.
#[async_trait]
pub trait Allowances: Send + Sync + std::fmt::Debug {
    /// Takes up to `wanted` requests from the allowance of the key `key`, for the caller alone. The allowance holds
    /// `per_minute` requests (at least 1) and refills steadily by the store's clock; it is full where nobody has taken
    /// from it, and may be full again after the database has crashed. Nothing is given back.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer; then requests may have been taken that nobody can spend.
    async fn take(&self, key: &str, per_minute: u32, wanted: u32) -> Result<Taken, StoreError>;
}

/// What an allowance gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Requests that the caller may now admit, at most as many as it wanted.
    pub granted: u32,
    /// Requests that are left for all processes.
    pub left: u32,
    /// When the next request is there, in milliseconds from now; 0 where some are left.
    pub next_ms: u64,
}
