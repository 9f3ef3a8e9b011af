//! The interface for workers.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;
use tokio::sync::watch;

use super::super::leases::{Claimable, Leased};
use super::super::{SqliteStore, fetches, starts, usage};
use crate::act::Act;
use crate::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Outcome, Renewal,
    StoreError, Work,
};

impl SqliteStore {
    async fn act(&self, task: TaskId, act: Act) -> Result<(), StoreError> {
        let answer = self.writer.call(Leased { task, act }).await?;
        answer.map_err(StoreError::LeaseLost)
    }
}

#[async_trait]
impl Work for SqliteStore {
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        // Asked after every submit, usually without any.
        if !self.memory.has_unready() {
            return Ok(Vec::new());
        }
        self.writer.call(request).await
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let Leased { task, act } = fetches::settle(fetch, fetched);
        self.act(task, act).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let charge = usage::ChargeReferences { task, bytes };
        self.writer.call(charge).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.memory.queue.learn(&request);
        self.writer.call(request).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        self.writer.call(Claimable(request.clone())).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: Renewal,
    ) -> Result<(), StoreError> {
        let act = Act::Renew {
            token: lease.token,
            lease_ms,
            renewal,
        };
        self.act(lease.task, act).await
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        // A running task is in memory.
        let held = || {
            let record = self.memory.cache.get(lease.task).ok();
            Record::judge_lease(record.as_deref(), lease).is_ok()
        };
        self.memory.previews.put(lease, preview, held);
        Ok(())
    }

    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let mut lost = Vec::new();
        for (place, lease) in leases.iter().enumerate() {
            let record = self.find(None, lease.task).await?;
            if let Err(how) = Record::judge_lease(record.as_deref(), lease) {
                lost.push((place, how));
            }
        }
        Ok(lost)
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Outcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        let act = Act::Finish {
            token: lease.token,
            outcome,
            retention_ms,
        };
        self.act(lease.task, act).await
    }

    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError> {
        let token = lease.token;
        self.act(lease.task, Act::Release { token, attempt }).await
    }

    fn unclean_starts(&self) -> Option<u64> {
        Some(self.unclean_starts)
    }

    async fn settle(&self) -> Result<(), StoreError> {
        self.writer.call(starts::Settle).await
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.memory.work_hints()
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.memory.withdrawals()
    }
}
