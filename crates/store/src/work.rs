//! The store for workers: the trait [`WorkerStore`], claims of runs and of fetches, and the changes that the
//! holder of a lease makes. Every such change carries a token; a stale one changes nothing. A task with
//! references can be claimed only after a worker has fetched them.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::{
    FetchOutcome, Lease, ReferenceState, StoredLease, TaskEvent, TaskRecord,
};
use kinora_contract::{Failure, Task, TaskId};
use tokio::sync::watch;

use crate::present_time::PresentTime;
use crate::{LeaseLost, LeaseRenewal, Pauses, ReleasedAttempt, RunOutcome, StoreError, TaskReader};

/// Operations for workers. Leases are given as lengths: the store's clock decides when one ends,
/// and a worker's own clock does not matter.
#[async_trait]
pub trait WorkerStore: TaskReader {
    /// Leases waiting tasks whose references are not stored, for the fetch stage: up to
    /// `request.count`, by projects in turn: the project with the fewest leased fetches first, then
    /// the one whose last fetch is longest ago; its oldest task first. No project holds more than
    /// `request.project_max`. A fetch whose lease has ended is leased again.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn lease_fetches(&self, request: FetchRequest)
    -> Result<Vec<ReferenceFetch>, StoreError>;

    /// Ends a fetch: the task becomes claimable (durably), fails, or waits for another try.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the fetch is not the task's current one, or the task has ended:
    /// nothing was changed.
    async fn complete_fetch(
        &self,
        fetch: &ReferenceFetch,
        fetched: FetchReport,
    ) -> Result<(), StoreError>;

    /// Records the stored size of an unfinished task's references, in bytes, which replaces the
    /// allowance. No effect on any other task.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn charge_references(
        &self,
        task: kinora_contract::TaskId,
        bytes: u64,
    ) -> Result<(), StoreError>;

    /// Leases up to `request.count` waiting tasks whose references are stored, by projects in turn.
    /// Turns are weighted by the estimated cost of the started tasks
    /// ([`kinora_contract::VideoSpec::cost`]), as in start-time fair queueing: the project that got
    /// the least work comes first, and one that was idle starts level with the others; its oldest
    /// task first. A task that is given back has used its turn. A project at its share of the
    /// worker's slots ([`ClaimRequest::project_slots_max`]) is skipped. Each lease gets a new,
    /// larger token.
    ///
    /// A task that was running when a worker died, and has one attempt left, is claimed only by a
    /// worker that runs nothing else, which then claims nothing else; when such a task's turn
    /// comes, it holds back further claims until that is possible.
    ///
    /// If the caller has gone before the answer, the claims return to the queue.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError>;

    /// Whether this claim would get a task now, by the same rules. Also true for a task that must run
    /// alone while the worker runs others: the claim gets nothing yet, but holds the worker back until
    /// it can. Claims nothing, so another worker may be faster.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError>;

    /// Extends a lease to `lease_ms` from now and records progress (which never falls), the
    /// engine's name, the decided parts of the spec, a ticket for later attempts, and warnings.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: LeaseRenewal,
    ) -> Result<(), StoreError>;

    /// Stores an encoded preview in place of an earlier one. It is dropped with the lease, and need
    /// not survive the process. No effect under a lost lease.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be stored now.
    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError>;

    /// The lost ones among these leases, by their index in `leases`, each with how it was lost.
    /// Cheap: from memory if the process is the only writer, otherwise one query.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot answer.
    async fn find_lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError>;

    /// Ends a running task by compare-and-set on (id, token, running), and keeps it for
    /// `retention_ms`.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn finish(
        &self,
        lease: &Lease,
        outcome: RunOutcome,
        retention_ms: u64,
    ) -> Result<(), StoreError>;

    /// Returns a running task to its old place in the queue. The caller says whether the attempt
    /// counts, and must not return a last attempt that does.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn release(&self, lease: &Lease, attempt: ReleasedAttempt) -> Result<(), StoreError>;

    /// Number of starts in a row, including this one, that followed a death of the previous
    /// process: 0 after a clean stop. `None` if many processes share the store: nothing is known of
    /// this one.
    fn unclean_starts(&self) -> Option<u64>;

    /// Ends the series of unclean starts: this process has lived long enough.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn confirm_start(&self) -> Result<(), StoreError>;

    /// A counter that moves when a task may be ready to claim or to fetch. Only a hint that
    /// shortens waiting; polling must be enough.
    fn work_hints(&self) -> watch::Receiver<u64>;

    /// A counter that moves when a task's owner has withdrawn a lease. Only a hint that shortens
    /// waiting; polling must be enough.
    fn withdrawals(&self) -> watch::Receiver<u64>;
}

/// A worker's request for tasks.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Worker name, for logs and operators: host and process.
    pub worker: String,
    /// The models that this worker serves; tasks of other models are ignored.
    pub models: Vec<String>,
    /// The pauses that the worker obeys: tasks of paused models are ignored, too, and none of them
    /// holds the worker back.
    pub paused: Pauses,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of concurrent tasks of this worker.
    pub slots: usize,
    /// Maximum number of concurrent tasks of one project at this worker. 0: all slots, or all but
    /// one while another project has a claimable task; with a single slot, that one.
    pub project_slots_max: usize,
    /// Limits the long tasks of the claim; `None`: any task may be claimed.
    pub long_tasks: Option<LongTasks>,
    /// Maximum number of runs of one task: the last one after a death runs alone.
    pub attempts_max: u32,
    /// Whether the worker's process has lived long enough, or follows a clean stop, so that it may make
    /// the last attempt of a task whose worker has died before. Otherwise such a task waits, and with it
    /// the tasks behind it in its project.
    pub is_settled: bool,
    /// Length of the lease in milliseconds.
    pub lease_ms: u64,
}

impl ClaimRequest {
    /// The claim without the paused models.
    pub(crate) fn without_paused(mut self) -> Self {
        self.models.retain(|model| !self.paused.contains(model));
        self
    }

    /// The lease for a claim at this time.
    pub(crate) fn stored_lease(&self, token: u64, now: &PresentTime) -> StoredLease {
        StoredLease {
            token,
            // Two ends: `until_ms` by the wall clock is shown to operators, and only `ends_ms`, by
            // the clock of leases, decides.
            until_ms: now.wall_ms.saturating_add(self.lease_ms),
            ends_ms: now.lease_ms.saturating_add(self.lease_ms),
            worker: self.worker.clone(),
        }
    }
}

/// How many long tasks a claim may take, so that the worker's last slot remains for short ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongTasks {
    /// A task is long if its estimated cost ([`kinora_contract::VideoSpec::cost`]) is above this.
    pub cost_over: u64,
    /// Maximum number of long tasks in this claim.
    pub count: usize,
}

impl LongTasks {
    /// Whether the task must wait until a long one has ended. A task with a ticket never waits: its job
    /// already runs at another server.
    pub(crate) fn holds_back(&self, record: &TaskRecord) -> bool {
        self.count == 0 && self.is_long(record) && record.ticket.is_none()
    }

    /// The cost of tasks that may be claimed, if no long one may be.
    pub(crate) fn cost_max(&self) -> Option<u64> {
        (self.count == 0).then_some(self.cost_over)
    }

    /// Counts a claimed task.
    pub(crate) fn charge(&mut self, record: &TaskRecord) {
        self.count -= usize::from(self.count > 0 && self.is_long(record));
    }

    fn is_long(&self, record: &TaskRecord) -> bool {
        record.task.spec.cost() > self.cost_over
    }
}

/// A leased task.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// The task as it stands after the claim; `task.attempt` counts this claim.
    pub task: Task,
    /// The lease.
    pub lease: Lease,
    /// The ticket of an earlier attempt ([`crate::LeaseRenewal::ticket`]).
    pub ticket: Option<String>,
}

impl ClaimedTask {
    /// For a task that was just claimed under this token.
    pub(crate) fn new(claimed: &TaskRecord, token: u64) -> Self {
        let task = Task::clone(&claimed.task);
        let lease = Lease {
            task: task.id,
            token,
        };
        Self {
            task,
            lease,
            ticket: claimed.ticket.as_deref().map(str::to_owned),
        }
    }
}

/// A change under a lease. Fails if the lease is lost, without an effect.
#[derive(Debug)]
pub(crate) struct LeasedChange {
    pub(crate) task: TaskId,
    pub(crate) action: LeaseAction,
}

/// An event without its time: the time of the transaction applies.
#[derive(Debug)]
pub(crate) enum LeaseAction {
    Renew {
        token: u64,
        lease_ms: u64,
        renewal: LeaseRenewal,
    },
    Finish {
        token: u64,
        outcome: Box<RunOutcome>,
        retention_ms: u64,
    },
    Release {
        token: u64,
        attempt: ReleasedAttempt,
    },
    SettleFetch {
        token: u64,
        fetched: FetchReport,
    },
}

impl LeasedChange {
    /// Gives back a task whose claimant has gone.
    pub(crate) const fn return_claim(claim: &ClaimedTask) -> Self {
        let Lease { task, token } = claim.lease;
        Self {
            task,
            action: LeaseAction::Release {
                token,
                // The worker never saw the task, so nothing was tried.
                attempt: ReleasedAttempt::Forgiven,
            },
        }
    }

    /// Ends a fetch.
    pub(crate) fn complete_fetch(fetch: &ReferenceFetch, fetched: FetchReport) -> Self {
        Self {
            task: fetch.task.id,
            action: LeaseAction::SettleFetch {
                token: fetch.token,
                fetched,
            },
        }
    }
}

impl LeaseAction {
    /// The event at this time.
    pub(crate) fn event_at(&self, now: &PresentTime) -> TaskEvent {
        // The time of the transaction, not of the call: a change may wait for its turn at the
        // writer, and a lease must be extended from the moment at which the extension takes effect.
        let now_ms = now.wall_ms;
        match self {
            Self::Renew {
                token,
                lease_ms,
                renewal,
            } => TaskEvent::Renewed {
                token: *token,
                until_ms: now_ms.saturating_add(*lease_ms),
                ends_ms: now.lease_ms.saturating_add(*lease_ms),
                renewal: renewal.clone(),
            },
            Self::Finish {
                token,
                outcome,
                retention_ms,
            } => TaskEvent::Finished {
                token: *token,
                outcome: outcome.clone(),
                now_ms,
                retention_ms: *retention_ms,
            },
            Self::Release { token, attempt } => TaskEvent::Released {
                token: *token,
                attempt: *attempt,
            },
            Self::SettleFetch { token, fetched } => TaskEvent::FetchEnded {
                token: *token,
                outcome: fetched.outcome_at(now),
            },
        }
    }
}

/// Maximum pause before the next fetch, in milliseconds.
pub const FETCH_PAUSE_MS_MAX: u64 = 600_000;

/// A fetch stage's request for tasks.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The models that this worker serves.
    pub models: Vec<String>,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of tasks of one project that are fetched at a time, in total.
    pub project_max: usize,
    /// Length of a fetch's lease in milliseconds: a task that is not settled by then may be taken
    /// again.
    pub lease_ms: u64,
}

impl FetchRequest {
    /// Whether a fetch under a token, or a pause without one, is over.
    pub(crate) fn is_over(&self, away: ReferenceState, now: &PresentTime) -> bool {
        let ReferenceState::Away {
            until_ms, token, ..
        } = away
        else {
            return false;
        };
        // A fetch has the length of its lease. A pause has none of its own, so its end is judged by
        // the longest possible pause.
        let length_ms = token.map_or(FETCH_PAUSE_MS_MAX, |_| self.lease_ms);
        now.is_over(until_ms, length_ms)
    }

    /// The event that begins a fetch under this token, at this time of the store's clock.
    pub(crate) const fn begin_event(&self, token: u64, now: &PresentTime) -> TaskEvent {
        TaskEvent::FetchBegun {
            token,
            until_ms: now.lease_ms.saturating_add(self.lease_ms),
        }
    }
}

/// A task whose references must be fetched, with the right to settle the fetch.
#[derive(Clone, Debug)]
pub struct ReferenceFetch {
    /// The waiting task.
    pub task: Arc<Task>,
    /// Distinguishes this lease from earlier and later ones of the same task.
    pub token: u64,
    /// Number of times the task was taken since its references were last complete, including this
    /// one.
    pub tries: u32,
}

impl ReferenceFetch {
    /// For a task whose fetch has just begun under this token.
    pub(crate) fn new(begun: &TaskRecord, token: u64) -> Self {
        Self {
            task: begun.task.clone(),
            token,
            tries: begun.references.tries(),
        }
    }
}

/// The outcome of a fetch.
#[derive(Clone, Debug)]
pub enum FetchReport {
    /// Every reference is stored: workers can claim the task, even after a restart.
    AtHand,
    /// A reference cannot be fetched: the task fails.
    Failed {
        /// The failure of the task.
        failure: Failure,
        /// How long to keep the failed task, in milliseconds.
        retention_ms: u64,
    },
    /// A fault of this service, or of a host for the moment: the task may be taken again later.
    Back {
        /// Minimum pause in milliseconds.
        pause_ms: u64,
    },
}

impl FetchReport {
    /// The outcome as an event, at this time of the store's clock.
    pub(crate) fn outcome_at(&self, now: &PresentTime) -> FetchOutcome {
        match self {
            Self::AtHand => FetchOutcome::AtHand,
            Self::Failed {
                failure,
                retention_ms,
            } => FetchOutcome::Failed {
                failure: failure.clone(),
                now_ms: now.wall_ms,
                retention_ms: *retention_ms,
            },
            Self::Back { pause_ms } => FetchOutcome::Back {
                not_before_ms: now.lease_ms.saturating_add(*pause_ms),
            },
        }
    }
}
