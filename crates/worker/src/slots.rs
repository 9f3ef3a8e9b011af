//! The slots of a worker. A run and its engine hold one; freeing it wakes the claim loop. The last
//! free slot is for short tasks: while other slots run tasks that cost clearly more than usual, a
//! short task of a project that has none here finds this one free, or held by another short task.
//!
//! The usual cost is the median over what this worker started lately. Each project counts once,
//! however many tasks it has sent: a project alone with equal tasks uses all slots, and one that
//! fills the queue with long tasks does not make them the usual ones. The same holds for the last
//! free seat of an engine that has two or more. Nothing outlives the process: after a start all
//! tasks are usual.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Task;
use kinora_store::LongTasks;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::lineup::{EngineQueue, EngineSeat};

/// Projects whose costs are remembered; the one that started a task the longest ago is forgotten for a further one.
const PROJECTS_MAX: usize = 64;
/// Costs remembered of one project: its last tasks.
const COSTS_MAX: usize = 16;

/// A task that holds a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SlotTask {
    model: String,
    cost: u64,
}

/// The costs of a worker's tasks: the running ones, and those that it started lately.
#[derive(Debug)]
pub(crate) struct ShortSlot {
    slots: usize,
    memory: Duration,
    recent: HashMap<String, VecDeque<TaskStart>>,
    running: Arc<Mutex<Vec<SlotTask>>>,
}

#[derive(Clone, Copy, Debug)]
struct TaskStart {
    at: Duration,
    cost: u64,
}

impl ShortSlot {
    /// Creates the state for a worker with this many slots, which remembers starts for as long as
    /// `memory`. With a `memory` of zero, or a single slot, no task is long.
    pub(crate) fn new(slots: usize, memory: Duration) -> Self {
        Self {
            slots,
            memory,
            recent: HashMap::new(),
            running: Arc::default(),
        }
    }

    /// Records the start of a task, which runs until the returned cost is dropped.
    pub(crate) fn start(&mut self, task: &Task, at: Duration) -> RunningCost {
        let (project, cost) = (&task.project, task.spec.cost());
        if !self.recent.contains_key(project) && self.recent.len() >= PROJECTS_MAX {
            self.forget_one();
        }
        let starts = self.recent.entry(project.clone()).or_default();
        if starts.len() >= COSTS_MAX {
            starts.pop_front();
        }
        starts.push_back(TaskStart { at, cost });
        let own = SlotTask {
            model: task.spec.model.clone(),
            cost,
        };
        lock(&self.running).push(own.clone());
        RunningCost {
            own,
            running: self.running.clone(),
        }
    }

    /// The long tasks of this queue that may be claimed now; `None`: no task is long.
    pub(crate) fn long_tasks(&mut self, queue: &EngineQueue, now: Duration) -> Option<LongTasks> {
        if self.slots < 2 || self.memory.is_zero() {
            return None;
        }
        let cost_over = self.cost_over(now)?;
        let running = lock(&self.running);
        let long = running.iter().filter(|running| running.cost > cost_over);
        let own = long.clone().filter(|one| queue.models.contains(&one.model));
        // Example: of four slots, one is kept from long tasks. If two of them run, one more may be
        // claimed; if three do, none.
        let slots = (self.slots - 1).saturating_sub(long.count());
        let seats = match queue.seats_max {
            Some(seats) if seats > 1 => (seats - 1).saturating_sub(own.count()),
            _ => usize::MAX,
        };
        Some(LongTasks {
            cost_over,
            count: slots.min(seats),
        })
    }

    /// The cost above which a task is long: half as much again as the usual one, since tasks that differ by a reference
    /// or by a second block nobody for long, and a slot kept from them would be idle for nothing.
    fn cost_over(&mut self, now: Duration) -> Option<u64> {
        let memory = self.memory;
        self.recent.retain(|_, starts| {
            starts.retain(|start| now.saturating_sub(start.at) < memory);
            !starts.is_empty()
        });
        let projects = self.recent.values();
        let usual = projects.filter_map(|starts| median(starts.iter().map(|start| start.cost)));
        let usual = median(usual)?;
        // Half as much again: tasks that cost 100 as a rule are long above 150.
        Some(usual.saturating_add(usual / 2))
    }

    fn forget_one(&mut self) {
        let oldest = self
            .recent
            .iter()
            .min_by_key(|(_, starts)| starts.back().map(|start| start.at));
        if let Some(project) = oldest.map(|(project, _)| project.clone()) {
            self.recent.remove(&project);
        }
    }
}

/// The lower one of the two in the middle, if there are two.
fn median(costs: impl Iterator<Item = u64>) -> Option<u64> {
    let mut costs: Vec<u64> = costs.collect();
    costs.sort_unstable();
    costs.get(costs.len().saturating_sub(1) / 2).copied()
}

/// The cost of a task that holds a slot.
#[derive(Debug)]
pub(crate) struct RunningCost {
    own: SlotTask,
    running: Arc<Mutex<Vec<SlotTask>>>,
}

impl Drop for RunningCost {
    fn drop(&mut self) {
        let mut running = lock(&self.running);
        if let Some(place) = running.iter().position(|one| *one == self.own) {
            running.swap_remove(place);
        }
    }
}

fn lock(running: &Mutex<Vec<SlotTask>>) -> MutexGuard<'_, Vec<SlotTask>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resources of a run's engine, dropped in this order when the engine has ended.
pub(crate) struct EnginePermits {
    slot: Arc<WorkerSlot>,
    _seat: EngineSeat,
    // Last: fields are dropped in this order, and the claim loop must find slot and seat free when
    // it wakes.
    _freed: WakeOnFree,
}

impl EnginePermits {
    /// Takes `slot`, for a task with this `cost`, and `seat`; `freed` wakes the claim loop when they
    /// are free again. Up to `leftovers` runs may free their slot before their last write ends.
    pub(crate) fn new(
        slot: OwnedSemaphorePermit,
        cost: RunningCost,
        seat: EngineSeat,
        leftovers: &Arc<Semaphore>,
        freed: &Arc<Notify>,
    ) -> Self {
        Self {
            slot: WorkerSlot::new(slot, cost, leftovers, freed),
            _seat: seat,
            _freed: WakeOnFree(freed.clone()),
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
    Slot(Arc<WorkerSlot>),
    Leftover { _permit: OwnedSemaphorePermit },
}

impl SlotHold {
    /// Frees the slot although an unneeded result is still being written. At most as many writes as
    /// there are slots may continue like this; later ones keep their slots.
    pub(crate) fn release_early(&mut self) {
        if let Self::Slot(slot) = self
            && let Ok(permit) = slot.leftovers.clone().try_acquire_owned()
        {
            *self = Self::Leftover { _permit: permit };
        }
    }
}

/// One of the worker's slots.
pub(crate) struct WorkerSlot {
    _permit: OwnedSemaphorePermit,
    _cost: RunningCost,
    leftovers: Arc<Semaphore>,
    _freed: WakeOnFree,
}

impl WorkerSlot {
    fn new(
        permit: OwnedSemaphorePermit,
        cost: RunningCost,
        leftovers: &Arc<Semaphore>,
        freed: &Arc<Notify>,
    ) -> Arc<Self> {
        Arc::new(Self {
            _permit: permit,
            _cost: cost,
            leftovers: leftovers.clone(),
            _freed: WakeOnFree(freed.clone()),
        })
    }
}

/// Wakes the claim loop: a slot or a seat may be free.
struct WakeOnFree(Arc<Notify>);

impl Drop for WakeOnFree {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests;
