//! The source of references.

use std::fmt::Debug;

use async_trait::async_trait;
use kinora_fetch::{FetchError, Fetcher};

/// The source of references: the network, or a simulation of it.
#[async_trait]
pub trait ReferenceSource: Send + Sync + Debug {
    /// As [`Fetcher::fetch`].
    ///
    /// # Errors
    /// As [`Fetcher::fetch`].
    async fn fetch(&self, request: &kinora_fetch::Request<'_>) -> Result<u64, FetchError>;
}

#[async_trait]
impl ReferenceSource for Fetcher {
    async fn fetch(&self, request: &kinora_fetch::Request<'_>) -> Result<u64, FetchError> {
        Self::fetch(self, request).await
    }
}
