//! The registry of workers, and shared secrets.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::ReferenceStore;
use super::state::{Announced, State};
use crate::workers::served;
use crate::{Announcement, LivingWorker, SecretKey, Secrets, StoreError, Workers};

impl State {
    fn living(&self) -> impl Iterator<Item = &Announced> {
        let now_ms = self.clock.steady_ms();
        let all = self.workers.values();
        all.filter(move |one| now_ms < one.until_steady_ms)
    }
}

#[async_trait]
impl Workers for ReferenceStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let now_ms = state.clock.steady_ms();
        let announced = Announced {
            worker: worker.clone(),
            seen_steady_ms: now_ms,
            until_steady_ms: now_ms.saturating_add(for_ms),
        };
        state.workers.insert(worker.id.clone(), announced);
        Ok(())
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.state().workers.remove(id);
        Ok(())
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let state = self.state();
        let now_ms = state.clock.steady_ms();
        let running = |id: &str| {
            let leases = state.running().filter_map(|record| record.lease.as_ref());
            leases.filter(|held| held.worker == id).count() as u64
        };
        let living = state.living().map(|one| LivingWorker {
            worker: one.worker.clone(),
            seen_ms_ago: now_ms.saturating_sub(one.seen_steady_ms),
            running: running(&one.worker.id),
        });
        Ok(living.collect())
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        Ok(served(self.state().living().map(|one| &one.worker)))
    }
}

#[async_trait]
impl Secrets for ReferenceStore {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        Ok(self.state().signing_key)
    }

    async fn keep_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        Ok(*self.state().signing_key.get_or_insert(offered))
    }
}
