//! Webhooks and deliveries.

use async_trait::async_trait;
use kinora_contract::limits::{WEBHOOK_LOG_MAX, WEBHOOK_PENDING_MAX};
use kinora_contract::webhook::event_id;
use kinora_contract::{TaskId, UnixMs};
use tokio::sync::watch;

use super::ReferenceStore;
use super::delivery_row::DeliveryRow;
use super::state::State;
use crate::{
    Attempted, Callback, Deliveries, Delivery, DeliveryDone, DeliveryNext, DeliveryRequest,
    DeliveryState, DueDelivery, StoreError, Webhook, WebhookChange, Webhooks,
};

#[async_trait]
impl Webhooks for ReferenceStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        let mut webhooks = self.state().webhooks.clone();
        webhooks.sort_by(|one, other| {
            (one.created_at_ms, &one.id).cmp(&(other.created_at_ms, &other.id))
        });
        Ok(webhooks)
    }

    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError> {
        self.state().change_webhook(change)
    }

    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError> {
        let state = self.state();
        let own = state.deliveries.values().rev();
        let own = own.filter(|row| row.webhook == webhook).take(count);
        Ok(own.map(|row| row.delivery.clone()).collect())
    }
}

#[async_trait]
impl Deliveries for ReferenceStore {
    async fn take_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        Ok(self.state().take_deliveries(&request))
    }

    async fn settle_delivery(&self, done: DeliveryDone) -> Result<(), StoreError> {
        self.state().settle_delivery(done);
        Ok(())
    }

    async fn trim_deliveries(&self) -> Result<u64, StoreError> {
        Ok(self.state().trim_deliveries())
    }

    fn delivery_hints(&self) -> watch::Receiver<u64> {
        self.state().ended.subscribe()
    }
}

impl State {
    /// Adds the delivery to a task's callback, for its end.
    pub(super) fn note_callback(&mut self, task: TaskId, callback: &Callback) {
        let Callback { webhook, url } = callback;
        self.add_delivery(event_id(task), Some(task), webhook);
        if let Some(mut row) = self.deliveries.last_entry() {
            let delivery = &mut row.get_mut().delivery;
            delivery.state = DeliveryState::Waiting;
            delivery.url = Some(url.clone());
        }
    }

    /// Records that a task has ended: its callback and the webhooks of its project must be
    /// notified.
    pub(super) fn note_end(&mut self, project: &str, task: TaskId) {
        let event = event_id(task);
        for row in self.deliveries.values_mut() {
            if row.delivery.event == event && row.is(DeliveryState::Waiting) {
                row.delivery.state = DeliveryState::Pending;
            }
        }
        let told = self.webhooks.iter().filter(|one| {
            one.project == project && one.url.is_some() && one.disabled_at_ms.is_none()
        });
        for id in told.map(|one| one.id.clone()).collect::<Vec<_>>() {
            self.add_delivery(event.clone(), Some(task), &id);
        }
    }

    fn add_delivery(&mut self, event: String, task: Option<TaskId>, webhook: &str) {
        let number = self.next_number();
        let delivery = Delivery {
            number,
            event,
            task: task.map(|task| task.to_string()),
            url: None,
            state: DeliveryState::Pending,
            attempts: 0,
            due_ms: 0,
            last: None,
        };
        let row = DeliveryRow {
            delivery,
            webhook: webhook.to_owned(),
            task,
            token: None,
        };
        self.deliveries.insert(number, row);
    }

    fn webhook(&mut self, id: &str) -> Option<&mut Webhook> {
        self.webhooks.iter_mut().find(|one| one.id == id)
    }

    fn change_webhook(&mut self, change: WebhookChange) -> Result<bool, StoreError> {
        match change {
            WebhookChange::Add(new) => {
                let mut others = self.webhooks.iter();
                if others.any(|one| one.id == new.id) {
                    return Err(StoreError::Unavailable("the id is taken".into()));
                }
                let is_twin = |one: &Webhook| one.project == new.project && one.url.is_none();
                if new.url.is_none() && self.webhooks.iter().any(is_twin) {
                    return Ok(false);
                }
                self.webhooks.push(new);
                Ok(true)
            }
            WebhookChange::Remove { id } => {
                let before = self.webhooks.len();
                self.webhooks.retain(|one| one.id != id);
                self.deliveries.retain(|_, row| row.webhook != id);
                Ok(self.webhooks.len() < before)
            }
            WebhookChange::Rotate {
                id,
                secret,
                old_until_ms,
            } => Ok(self.webhook(&id).is_some_and(|webhook| {
                let old = std::mem::replace(&mut webhook.secret, secret);
                webhook.old_secret = Some((old, old_until_ms));
                true
            })),
            WebhookChange::Test { id, event } => {
                let serves = |one: &mut Webhook| one.url.is_some() && one.disabled_at_ms.is_none();
                let is_there = self.webhook(&id).is_some_and(serves);
                if is_there {
                    self.add_delivery(event, None, &id);
                }
                Ok(is_there)
            }
            WebhookChange::Redeliver { number } => Ok(self.redeliver(number)),
        }
    }

    fn redeliver(&mut self, number: u64) -> bool {
        let row = self.deliveries.get_mut(&number);
        let ended = |row: &&mut DeliveryRow| {
            row.is(DeliveryState::Delivered) || row.is(DeliveryState::Failed)
        };
        row.filter(ended).is_some_and(|row| {
            row.token = None;
            row.delivery.state = DeliveryState::Pending;
            (row.delivery.due_ms, row.delivery.attempts) = (0, 0);
            true
        })
    }

    fn take_deliveries(&mut self, request: &DeliveryRequest) -> Vec<DueDelivery> {
        let now_ms = self.now().wall_ms;
        let mut due = Vec::new();
        for webhook in self
            .webhooks
            .iter()
            .filter(|one| one.disabled_at_ms.is_none())
        {
            let own = self.deliveries.values();
            let own = own.filter(|row| row.webhook == webhook.id && row.is(DeliveryState::Pending));
            let (ready, others): (Vec<_>, Vec<_>) = own.partition(|row| row.is_due(now_ms));
            let under_way = others.iter().filter(|row| row.token.is_some()).count();
            let mut ready: Vec<_> = ready
                .iter()
                .map(|row| (row.delivery.due_ms, row.delivery.number))
                .collect();
            ready.sort_unstable();
            let placed = (under_way..request.each).zip(ready);
            due.extend(placed.map(|(place, (due_ms, number))| (place, due_ms, number)));
        }
        due.sort_unstable();
        due.truncate(request.count);
        let until_ms = now_ms.saturating_add(request.lease_ms);
        let leased = due
            .into_iter()
            .filter_map(|(_, _, number)| self.lease_delivery(number, now_ms, until_ms));
        leased.collect()
    }

    fn lease_delivery(
        &mut self,
        number: u64,
        now_ms: UnixMs,
        until_ms: UnixMs,
    ) -> Option<DueDelivery> {
        let token = self.next_number();
        let row = self.deliveries.get_mut(&number)?;
        let webhook = self.webhooks.iter().find(|one| one.id == row.webhook)?;
        row.token = Some(token);
        row.delivery.attempts += 1;
        row.delivery.due_ms = until_ms;
        Some(DueDelivery {
            number,
            token,
            attempts: row.delivery.attempts,
            event: row.delivery.event.clone(),
            task: row.task,
            project: webhook.project.clone(),
            url: row.delivery.url.clone().or_else(|| webhook.url.clone())?,
            secrets: webhook.secrets(now_ms),
        })
    }

    fn settle_delivery(&mut self, done: DeliveryDone) {
        let now_ms = self.now().wall_ms;
        let row = self.deliveries.get_mut(&done.number);
        // Another process holds it, or it no longer exists.
        let Some(row) = row.filter(|row| row.token == Some(done.token)) else {
            return;
        };
        if let DeliveryNext::Later { .. } = done.next {
            row.token = None;
            row.delivery.due_ms = done.next.due_ms(now_ms);
            row.delivery.attempts -= 1;
            return;
        }
        row.token = None;
        row.delivery.state = done.next.state();
        row.delivery.due_ms = done.next.due_ms(now_ms);
        row.delivery.last = Some(Attempted {
            at_ms: now_ms,
            answer: done.answer,
        });
        let id = row.webhook.clone();
        if done.next == DeliveryNext::Gone {
            self.disable(&id, now_ms);
        }
    }

    fn trim_deliveries(&mut self) -> u64 {
        let mut dropped = 0;
        let ids: Vec<String> = self.webhooks.iter().map(|one| one.id.clone()).collect();
        for id in ids {
            let own = self.deliveries.iter().rev();
            let own = own.filter(|(_, row)| row.webhook == id);
            let oldest = own.map(|(number, _)| *number).nth(WEBHOOK_LOG_MAX as usize);
            let is_old = |number: u64| oldest.is_some_and(|oldest| number <= oldest);
            self.deliveries.retain(|number, row| {
                let is_over = row.is(DeliveryState::Delivered) || row.is(DeliveryState::Failed);
                row.webhook != id || !is_over || !is_old(*number)
            });
            let own = self.deliveries.values();
            let own = own.filter(|row| row.webhook == id && row.is(DeliveryState::Pending));
            let places = own.map(|row| (row.delivery.due_ms, row.delivery.number));
            let mut places: Vec<_> = places.collect();
            places.sort_unstable();
            for (_, number) in places.iter().rev().skip(WEBHOOK_PENDING_MAX as usize) {
                if self
                    .deliveries
                    .get(number)
                    .is_some_and(|row| row.token.is_none())
                {
                    self.deliveries.remove(number);
                    dropped += 1;
                    if let Some(webhook) = self.webhook(&id) {
                        webhook.dropped += 1;
                    }
                }
            }
        }
        dropped
    }

    fn disable(&mut self, id: &str, now_ms: UnixMs) {
        let Some(webhook) = self.webhook(id).filter(|one| one.url.is_some()) else {
            return;
        };
        webhook.disabled_at_ms = Some(now_ms);
        for row in self.deliveries.values_mut() {
            if row.webhook == id && row.is(DeliveryState::Pending) {
                row.token = None;
                row.delivery.state = DeliveryState::Failed;
            }
        }
    }

    /// Ends the leases of dead processes.
    pub(super) fn free_deliveries(&mut self) {
        for row in self.deliveries.values_mut() {
            if row.token.take().is_some() {
                row.delivery.due_ms = 0;
            }
        }
    }
}
