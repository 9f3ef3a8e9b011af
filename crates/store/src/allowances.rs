//! Request allowances that several processes share: each takes a few requests at a time and spends
//! them without asking again.

use async_trait::async_trait;

use crate::StoreError;

/// The shared allowances, one per API key.
#[async_trait]
pub trait Allowances: Send + Sync + std::fmt::Debug {
    /// Takes up to `wanted` requests from the allowance of the key `key`, for the caller alone. The
    /// allowance holds `per_minute` requests (at least 1) and refills steadily by the store's
    /// clock. It is full if nobody has taken from it, and may be full again after the database has
    /// crashed. Requests cannot be given back.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer; then requests may have been taken that nobody
    /// can spend.
    async fn take(&self, key: &str, per_minute: u32, wanted: u32) -> Result<Taken, StoreError>;
}

/// The result of taking from an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Number of requests that the caller may now admit, at most the number it wanted.
    pub granted: u32,
    /// Number of requests left for all processes.
    pub left: u32,
    /// Time until the next request is available, in milliseconds; 0 if some are left.
    pub next_ms: u64,
}
