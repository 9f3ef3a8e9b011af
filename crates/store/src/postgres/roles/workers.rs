//! The registry of workers.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::super::PostgresStore;
use super::super::workers::{Announce, Withdraw, living, served_models};
use crate::{Announcement, LivingWorker, StoreError, Workers};

#[async_trait]
impl Workers for PostgresStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        self.acts.call(Announce(worker.clone(), for_ms)).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.acts.call(Withdraw(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        living(&self.reader, &self.reader.present().await?).await
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        served_models(&self.reader, &self.reader.present().await?).await
    }
}
