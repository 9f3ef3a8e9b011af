//! A delivery as it is stored.

use kinora_contract::{TaskId, UnixMs};

use crate::webhooks::AHEAD_MS_MAX;
use crate::{Delivery, DeliveryState};

/// A delivery with its holder.
#[derive(Debug)]
pub(super) struct DeliveryRow {
    pub(super) delivery: Delivery,
    pub(super) webhook: String,
    pub(super) task: Option<TaskId>,
    /// Of the lease.
    pub(super) token: Option<u64>,
}

impl DeliveryRow {
    /// Whether it is in this state.
    pub(super) fn is(&self, state: DeliveryState) -> bool {
        self.delivery.state == state
    }

    /// A time too far ahead comes from a wrong clock, and counts as past.
    pub(super) const fn is_due(&self, now_ms: UnixMs) -> bool {
        let due_ms = self.delivery.due_ms;
        due_ms <= now_ms || due_ms > now_ms.saturating_add(AHEAD_MS_MAX)
    }
}
