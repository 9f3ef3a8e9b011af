//! Webhooks and deliveries.

use async_trait::async_trait;
use tokio::sync::watch;

use super::super::SqliteStore;
use super::super::memory::Memory;
use super::super::reads::Readers;
use crate::tables::webhooks;
use crate::{
    Deliveries, Delivery, DeliveryDone, DeliveryRequest, DueDelivery, StoreError, Webhook,
    WebhookChange, Webhooks,
};

#[async_trait]
impl Webhooks for SqliteStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.ask(webhooks::all()).await
    }

    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError> {
        self.writer.call(change).await
    }

    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError> {
        self.ask(webhooks::log(webhook, count)).await
    }
}

#[async_trait]
impl Deliveries for SqliteStore {
    async fn take_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.writer.call(request).await
    }

    async fn settle_delivery(&self, done: DeliveryDone) -> Result<(), StoreError> {
        self.writer.call(done).await
    }

    async fn trim_deliveries(&self) -> Result<u64, StoreError> {
        let read = |readers: &Readers, _: &Memory| readers.excess_deliveries();
        // Found by a reader, so that the writer only removes.
        let excess = self.read(None, read).await?;
        if excess.is_empty() {
            return Ok(0);
        }
        self.writer.call(excess).await
    }

    fn delivery_hints(&self) -> watch::Receiver<u64> {
        self.memory.delivery_hints()
    }
}
