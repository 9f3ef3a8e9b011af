//! Webhooks and deliveries, for the delivering process and for commands beside it.

use async_trait::async_trait;
use tokio::sync::watch;

use super::super::beside::Beside;
use super::super::deliveries::Trim;
use super::super::{PostgresStore, script};
use crate::tables::webhooks;
use crate::{
    Deliveries, Delivery, DeliveryDone, DeliveryRequest, DueDelivery, OpenError, StoreError,
    Webhook, WebhookChange, Webhooks,
};

#[async_trait]
impl Webhooks for PostgresStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        script::ask(&self.reader, webhooks::all()).await
    }

    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError> {
        self.acts.call(change).await
    }

    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError> {
        script::ask(&self.reader, webhooks::log(webhook, count)).await
    }
}

#[async_trait]
impl Deliveries for PostgresStore {
    async fn take_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.acts.call(request).await
    }

    async fn settle_delivery(&self, done: DeliveryDone) -> Result<(), StoreError> {
        self.acts.call(done).await
    }

    async fn trim_deliveries(&self) -> Result<u64, StoreError> {
        self.acts.call(Trim).await
    }

    fn delivery_hints(&self) -> watch::Receiver<u64> {
        self.shared.ended.subscribe()
    }
}

/// The webhooks of a store, for commands beside the serving processes.
#[derive(Debug)]
pub(crate) struct WebhooksBeside(Beside);

impl WebhooksBeside {
    /// The webhooks of the store in the database at `url`.
    pub(crate) fn of(url: &str) -> Result<Self, OpenError> {
        Beside::of(url).map(Self)
    }
}

#[async_trait]
impl Webhooks for WebhooksBeside {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        script::ask(&self.0.connected().await?.reader, webhooks::all()).await
    }

    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError> {
        self.0.connected().await?.lane.call(change).await
    }

    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError> {
        let log = webhooks::log(webhook, count);
        script::ask(&self.0.connected().await?.reader, log).await
    }
}
