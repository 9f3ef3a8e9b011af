//! A run's slot at this worker and its seat at the engine. The run and its engine hold them;
//! freeing them wakes the claim loop.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::lineup::EngineSeat;
use crate::short_slot::RunningCost;

/// Resources of a run's engine, dropped in this order when the engine has ended.
pub(crate) struct EnginePermits {
    slot: Arc<Slot>,
    _seat: EngineSeat,
    _freed: Freed,
}

impl EnginePermits {
    /// `slot`, held by a task with this `cost`, and `seat`; `freed` wakes the claim loop when they are free again. Up to `leftovers`
    /// runs may free their slot before their last write ends.
    pub(crate) fn new(
        slot: OwnedSemaphorePermit,
        cost: RunningCost,
        seat: EngineSeat,
        leftovers: &Arc<Semaphore>,
        freed: &Arc<Notify>,
    ) -> Self {
        Self {
            slot: Slot::of(slot, cost, leftovers, freed),
            _seat: seat,
            _freed: Freed(freed.clone()),
        }
    }

    /// The slot for the run itself; it becomes free when both the run and its engine have dropped
    /// it.
    pub(crate) fn hold(&self) -> SlotHold {
        SlotHold::Slot(self.slot.clone())
    }
}

/// A run holds its slot until its outcome is stored: otherwise results would pile up behind a slow
/// disk.
pub(crate) enum SlotHold {
    Slot(Arc<Slot>),
    Leftover { _permit: OwnedSemaphorePermit },
}

impl SlotHold {
    /// Frees the slot although an unneeded result is still being written. At most as many writes as
    /// there are slots may continue like this; later ones keep their slots.
    pub(crate) fn leave(&mut self) {
        if let Self::Slot(slot) = self
            && let Ok(permit) = slot.leftovers.clone().try_acquire_owned()
        {
            *self = Self::Leftover { _permit: permit };
        }
    }
}

/// One of the worker's slots.
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    _cost: RunningCost,
    leftovers: Arc<Semaphore>,
    _freed: Freed,
}

impl Slot {
    fn of(
        permit: OwnedSemaphorePermit,
        cost: RunningCost,
        leftovers: &Arc<Semaphore>,
        freed: &Arc<Notify>,
    ) -> Arc<Self> {
        Arc::new(Self {
            _permit: permit,
            _cost: cost,
            leftovers: leftovers.clone(),
            _freed: Freed(freed.clone()),
        })
    }
}

/// Wakes the claim loop: a slot or a seat may be free.
struct Freed(Arc<Notify>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
