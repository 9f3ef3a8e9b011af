//! The store of tasks, where the API and the workers meet. It has a trait for each audience:
//! [`TaskStore`] for the API, [`WorkerStore`] for workers, [`ChoreStore`] for cleaning up, [`KeyStore`] for API
//! keys, [`WorkerDirectory`] for the registry of workers, [`PauseStore`] for pauses of models, [`OperatorStore`] for
//! operators, [`DeliveryStore`] for webhooks, [`FileStore`] for uploaded files, [`SecretStore`] and [`AllowanceStore`] for
//! data that all processes share.
//!
//! The rules of one task (its transitions and their effects) are those of
//! [`kinora_contract::lifecycle`]; the rules between tasks (fair turns, shares, limits) are those of
//! `queue` and `tasks`. `operations` applies both, once for all databases; `sqlite` and
//! `postgres` have none of their own. The store takes only validated input, never a raw request, and a
//! changing method returns only after the change is synced to disk.

#![forbid(unsafe_code)]

mod audiences;
mod backend;
mod budgets;
mod changes;
mod chores;
mod commit_metrics;
#[cfg(feature = "conformance")]
pub mod conformance;
mod driver;
mod effects;
#[cfg(feature = "faulty")]
pub mod faulty;
mod inspect;
mod keys;
mod open;
mod open_error;
mod operations;
mod operators;
mod outage;
mod pauses;
pub mod postgres;
mod present_time;
mod queue;
mod sql;
pub mod sqlite;
mod tables;
mod tasks;
mod transfer;
mod uploads;
mod webhooks;
mod work;
mod workers;

pub use budgets::{
    Budget, BudgetOwner, BudgetPeriod, ExceededBudget, Spending, Spent, SubmitBudgets,
};
pub use changes::{ChangeReceiver, EndedRequest, EndedTasks, TaskChange, TaskGlance};
pub use chores::{
    Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreStore, ChoreWork, ExpiryCursor,
    PostponeRequest, PostponedExpiry, SweepReport, SweepRequest, WaitingFrom,
};
pub use driver::OpenOptions;
pub use inspect::StoreInspection;
pub use keys::{
    AllowanceGrant, AllowanceStore, ApiKey, KeyAction, KeyActionKind, KeyActor, KeyRotation,
    KeyScope, KeyStore, NewKey, SecretKey, SecretStore,
};
pub use kinora_contract::lifecycle::{
    CallOff, Lease, LeaseLost, LeaseRenewal, MARKS, ReleasedAttempt, RunOutcome, TASK_FILES,
    UPLOADS, mark_key, owns_file, reference_keys, task_of_file, upload_of_key,
};
pub use open::{
    inspect, is_shared, living_workers, migrate, open, open_export, open_import, open_keys,
    open_operations, open_pauses, open_snapshot, open_source, open_webhooks, unsafe_settings,
};
pub use open_error::{LostChanges, OpenError};
pub use operators::{
    LATELY_MS, ModelQueue, OperatorStore, RunningTask, ServiceOverview, TallyRequest, TallyRow,
};
pub use outage::OutageLog;
pub use pauses::{Pause, PauseStore, Pauses};
pub use postgres::{DirectAddress, PostgresOptions, TimeSource};
#[cfg(feature = "conformance")]
pub use sqlite::EmbeddedStore;
pub use sqlite::{BackupSnapshot, SqliteOptions};
pub use tables::copied::{
    COPIED_AT_ONCE, COPIED_TABLES, COPIED_TASKS, COPIED_UPLOADS, CopiedRow, CopiedTable,
};
pub use tasks::{
    CancelOutcome, DeleteOutcome, ExceededQuota, IdempotencyKey, InsertOutcome, ListOrder, NewTask,
    PageRequest, PhaseCounts, QueueBounds, QueueCounts, QueuedCancel, QuotaUsage, RetryAfter,
    TaskPage, TaskStore,
};
pub use transfer::{BackupCounts, BackupSource, StoreExport, StoreImport, TaskFiles};
pub use uploads::{
    AddFileOutcome, FileBounds, FilePage, FilePageRequest, FileStore, NewFile, PENDING_FILE_MS,
    UploadedFile,
};
pub use webhooks::{
    DeliveryAttempt, DeliveryDone, DeliveryNext, DeliveryRequest, DeliveryState, DeliveryStore,
    DueDelivery, LoggedDelivery, ReceiverAnswer, TaskCallback, Webhook, WebhookChange,
    WebhookStore,
};
pub use work::{
    ClaimRequest, ClaimedTask, FETCH_PAUSE_MS_MAX, FetchReport, FetchRequest, LongTasks,
    ReferenceFetch, WorkerStore,
};
pub use workers::{
    DeviceEngine, DeviceEngineState, LivingWorker, ServedModel, SharedDevice, WorkerAnnouncement,
    WorkerDirectory, WorkerPlace, WorkerPlaceState, WorkerState,
};

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Task, TaskId};

/// Looks up tasks by id, for callers who have proved their right to them without a key: by a lease
/// or a signed URL.
#[async_trait]
pub trait TaskReader: Send + Sync + std::fmt::Debug {
    /// The task with this id, in any project.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;
}

/// An open store, behind each of its traits.
#[derive(Clone, Debug)]
pub struct StoreHandles {
    /// Tasks, for their owners.
    pub tasks: Arc<dyn TaskStore>,
    /// Tasks, for workers.
    pub work: Arc<dyn WorkerStore>,
    /// Chores.
    pub chores: Arc<dyn ChoreStore>,
    /// Uploaded files.
    pub files: Arc<dyn FileStore>,
    /// API keys.
    pub keys: Arc<dyn KeyStore>,
    /// The registry of workers.
    pub workers: Arc<dyn WorkerDirectory>,
    /// Pauses of models.
    pub pauses: Arc<dyn PauseStore>,
    /// Data for operators.
    pub operations: Arc<dyn OperatorStore>,
    /// Secrets shared by all processes.
    pub secrets: Arc<dyn SecretStore>,
    /// Webhooks and the deliveries to them.
    pub webhooks: Arc<dyn DeliveryStore>,
    /// Request allowances; `None` if only one process serves, which shares them with nobody.
    pub allowances: Option<Arc<dyn AllowanceStore>>,
    /// The contents of the store when it was opened.
    pub holds: StoreContents,
}

/// A store as one type that implements all traits.
pub trait Store:
    TaskStore
    + WorkerStore
    + ChoreStore
    + FileStore
    + KeyStore
    + WorkerDirectory
    + PauseStore
    + OperatorStore
    + DeliveryStore
    + SecretStore
{
    /// The contents of the store when it was opened.
    fn holds(&self) -> StoreContents;

    /// The shared request allowances, if several processes may serve this store.
    fn allowances(self: Arc<Self>) -> Option<Arc<dyn AllowanceStore>> {
        None
    }
}

impl StoreHandles {
    /// Offers one store behind each of its traits.
    pub fn from_store<S: Store + 'static>(store: Arc<S>) -> Self {
        Self {
            holds: store.holds(),
            allowances: store.clone().allowances(),
            tasks: store.clone(),
            work: store.clone(),
            chores: store.clone(),
            files: store.clone(),
            keys: store.clone(),
            workers: store.clone(),
            pauses: store.clone(),
            webhooks: store.clone(),
            operations: store.clone(),
            secrets: store,
        }
    }
}

/// Maximum number of keys in [`StoreContents::results`].
pub(crate) const HELD_RESULTS_MAX: u32 = 8;

/// The contents of a store when it was opened, which determine the files that must exist beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreContents {
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
