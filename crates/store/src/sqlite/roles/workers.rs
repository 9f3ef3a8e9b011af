//! The registry of workers.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use super::super::SqliteStore;
use super::super::memory::Memory;
use super::super::reads::Readers;
use super::super::workers::{RemoveRow, WriteRow};
use crate::{Announcement, LivingWorker, StoreError, Workers};

#[async_trait]
impl Workers for SqliteStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        let (now, length) = (self.clock.steady(), Duration::from_millis(for_ms));
        if self.workers.announce(worker, length, now) {
            let worker = worker.clone();
            let id = worker.id.clone();
            self.writer.call(WriteRow { worker, for_ms }).await?;
            self.workers.note_written(&id, now);
        }
        Ok(())
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.workers.withdraw(id);
        self.writer.call(RemoveRow(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let read = |readers: &Readers, _: &Memory| readers.running();
        let running = self.read(None, read).await?;
        Ok(self.workers.living(self.clock.steady(), &running))
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.workers.served_models(self.clock.steady()))
    }
}
