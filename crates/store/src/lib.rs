//! The store of tasks, where API and workers meet. It has a trait for each audience: [`Tasks`] for
//! the API, [`Work`] for workers, [`Chores`] for cleaning up, [`KeyStore`] for API keys,
//! [`Workers`] for the registry of workers, [`Operations`] for operators, [`Deliveries`] for
//! webhooks, [`Secrets`] and [`Allowances`] for data shared by all processes. All take only input
//! that `kinora-contract` has validated, never a raw request. A store adds no rules:
//! [`kinora_contract::lifecycle`] defines the transitions of a task and their effects. A changing
//! method returns only after the change is synced to disk.

#![forbid(unsafe_code)]

mod allowances;
mod audiences;
mod backend;
mod backup;
mod changes;
mod chores;
#[cfg(feature = "conformance")]
pub mod conformance;
mod driver;
mod effects;
#[cfg(feature = "faulty")]
pub mod faulty;
mod fetch;
mod inspect;
mod keys;
mod lease;
mod metered;
mod moves;
mod open;
mod open_error;
mod open_options;
mod operations;
mod operators;
mod outage;
mod page;
pub mod postgres;
mod present;
mod queue;
mod reads;
mod secrets;
mod signals;
mod sql;
pub mod sqlite;
mod stored;
mod sweep;
mod tables;
mod task;
mod tasks;
mod usages;
mod webhooks;
mod work;
mod workers;

pub use allowances::{Allowances, Taken};
pub use backup::{BackupSource, Counts as BackupCounts, TaskFiles};
pub use changes::{Changes, Ended, EndedRequest, Glance, TaskChange};
pub use chores::{Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreWork, Chores};
pub use fetch::{FETCH_PAUSE_MS_MAX, Fetch, FetchRequest, Fetched};
pub use inspect::Inspection;
pub use keys::{Actor, KeyAction, KeyActionKind};
pub use keys::{ApiKey, KeyRotation, KeyStore, NewKey, Scope};
pub use kinora_contract::lifecycle::{
    Attempt, CallOff, Lease, LeaseLost, MARKS, Outcome, Renewal, TASK_FILES, mark_key, names_file,
    reference_keys, task_of_file,
};
pub use lease::{Claim, ClaimRequest, LongTasks};
pub use moves::{Export, Import};
pub use open::{
    inspect, is_shared, living_workers, migrate, open, open_export, open_import, open_keys,
    open_operations, open_snapshot, open_source, open_webhooks, unsafe_settings,
};
pub use open_error::{Loss, OpenError};
pub use open_options::OpenOptions;
pub use operators::{LATELY_MS, ModelQueue, Operations, Overview, RunningTask};
pub use operators::{TallyRequest, TallyRow};
pub use outage::Outage;
pub use page::{Order, Page, PageRequest};
pub use postgres::{DirectAddress, PostgresOptions, Time};
pub use secrets::{SecretKey, Secrets};
#[cfg(feature = "conformance")]
pub use sqlite::EmbeddedStore;
pub use sqlite::{Snapshot, SqliteOptions};
pub use sweep::{ExpiryCursor, Postpone, Postponed, SweepRequest, Swept, WaitingFrom};
pub use tables::copied::{COPIED_AT_ONCE, COPIED_TABLES, COPIED_TASKS, CopiedRow, CopiedTable};
pub use task::{
    Cancellation, Count, Counts, Deletion, Idempotency, Insertion, NewTask, QueueBounds, Quota,
    RetryAfter, Usage,
};

pub use reads::Reads;
pub use tasks::Tasks;
pub use webhooks::{
    Answer, Attempted, Callback, Deliveries, Delivery, DeliveryDone, DeliveryNext, DeliveryRequest,
    DeliveryState, DueDelivery, Webhook, WebhookChange, Webhooks,
};
pub use work::Work;
pub use workers::{
    Announcement, DeviceEngine, DeviceEngineState, LivingWorker, ServedModel, SharedDevice,
    WorkerPlace, WorkerPlaceState, WorkerState, Workers,
};

use std::sync::Arc;

/// An open store, behind each of its traits.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Tasks, for their owners.
    pub tasks: Arc<dyn Tasks>,
    /// Tasks, for workers.
    pub work: Arc<dyn Work>,
    /// Chores.
    pub chores: Arc<dyn Chores>,
    /// API keys.
    pub keys: Arc<dyn KeyStore>,
    /// The registry of workers.
    pub workers: Arc<dyn Workers>,
    /// Data for operators.
    pub operations: Arc<dyn Operations>,
    /// Secrets shared by all processes.
    pub secrets: Arc<dyn Secrets>,
    /// Webhooks and the deliveries to them.
    pub webhooks: Arc<dyn Deliveries>,
    /// Request allowances; `None` if only one process serves, which has nobody to share with.
    pub allowances: Option<Arc<dyn Allowances>>,
    /// The contents at the opening.
    pub holds: Holds,
}

/// A store as one type: all its traits, and its contents at the opening.
pub trait Store:
    Tasks + Work + Chores + KeyStore + Workers + Operations + Deliveries + Secrets
{
    /// The contents at the opening.
    fn holds(&self) -> Holds;

    /// Its allowances, if several processes may serve it.
    fn allowances(self: Arc<Self>) -> Option<Arc<dyn Allowances>> {
        None
    }
}

impl Stores {
    /// The traits of this store.
    pub fn of<S: Store + 'static>(store: Arc<S>) -> Self {
        Self {
            holds: store.holds(),
            allowances: store.clone().allowances(),
            tasks: store.clone(),
            work: store.clone(),
            chores: store.clone(),
            keys: store.clone(),
            workers: store.clone(),
            webhooks: store.clone(),
            operations: store.clone(),
            secrets: store,
        }
    }
}

/// Maximum number of keys in [`Holds::results`].
pub(crate) const HELD_RESULTS_MAX: u32 = 8;

/// The contents of a store at its opening, which determine the files that must exist beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Whether there are any tasks.
    pub tasks: bool,
    /// Keys of the videos of a few completed tasks, those kept longest; empty if no task has a
    /// result.
    pub results: Vec<String>,
}

/// Why a call to a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lease's token is stale: the task was cancelled, deleted, taken over or finished.
    #[error("the lease is lost: {0}")]
    LeaseLost(LeaseLost),
    /// Full disk, closed store, broken connection: a later retry may succeed.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Stored data cannot be interpreted; retries are useless.
    #[error("the store has data that this version cannot read: {0}")]
    Corrupt(String),
}
