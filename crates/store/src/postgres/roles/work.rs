//! For workers.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;
use tokio::sync::watch;

use super::super::acts::{self, Leased};
use super::super::claims::Claimable;
use super::super::statement::Statement;
use super::super::{PostgresStore, rows};
use crate::act::Act;
use crate::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Outcome, Renewal,
    StoreError, Work,
};

impl PostgresStore {
    async fn act(&self, task: TaskId, act: Act) -> Result<(), StoreError> {
        let answer = self.acts.call(Leased { task, act }).await?;
        answer.map_err(StoreError::LeaseLost)
    }
}

#[async_trait]
impl Work for PostgresStore {
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        self.queue.call(request).await
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let Leased { task, act } = acts::settle(fetch, fetched);
        self.act(task, act).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        self.acts.call(acts::ChargeReferences { task, bytes }).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.shared.estimates.learn(&request);
        self.queue.call(request).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        // Usually nothing waits, which costs no lock to see.
        let ask = format!(
            "SELECT 1 FROM tasks WHERE place = {} AND model = ANY($1) LIMIT 1",
            rows::CLAIMABLE
        );
        let ask = Statement::new(ask).texts(request.models.clone());
        let waiting = self.reader.query(ask).await?;
        if waiting.is_empty() {
            return Ok(false);
        }
        self.queue.call(Claimable(request.clone())).await
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
        let lease = lease.clone();
        self.acts.call(acts::PutPreview { lease, preview }).await
    }

    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let ids: Vec<TaskId> = leases.iter().map(|lease| lease.task).collect();
        let found = self.reader.find_all(&ids).await?;
        let mut lost = Vec::new();
        for (place, (lease, record)) in leases.iter().zip(found).enumerate() {
            if let Err(how) = Record::judge_lease(record?.as_deref(), lease) {
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

    /// Other processes also serve the store, so deaths of this one reveal nothing.
    fn unclean_starts(&self) -> Option<u64> {
        None
    }

    async fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.shared.work.subscribe()
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.shared.withdrawn.subscribe()
    }
}
