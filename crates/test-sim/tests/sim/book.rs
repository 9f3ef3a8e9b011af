//! What the service has promised so far, and what an operation may change of it. After each
//! operation the store is compared with the book: every difference must have a [`Cause`].

use std::collections::BTreeMap;

use kinora_contract::VideoSpec;
use kinora_contract::{Artifact, Failure, Task, TaskId, TaskPhase, TaskState};
use kinora_store::{
    Lease, PostponeRequest, ReferenceFetch, ReleasedAttempt, SweepRequest, reference_keys,
};

use crate::taken::TakenChores;
use crate::world::WORKERS;

/// A task as the book knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) task: Task,
    /// While running.
    pub(crate) held: Option<Held>,
    /// Deaths of its worker so far.
    pub(crate) deaths: u32,
    /// Whether the store has a ticket of it; `None` after an answer that was lost.
    pub(crate) has_ticket: Option<bool>,
}

impl Known {
    pub(crate) fn is_held_by(&self, lease: &Lease) -> bool {
        let held = self.held.as_ref().filter(|_| self.task.id == lease.task);
        held.is_some_and(|held| held.token == Some(lease.token))
    }
}

/// A running task's lease.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) worker: usize,
    /// `None` when the answer to the claim was lost: nobody knows it.
    pub(crate) token: Option<u64>,
    /// It ends at one of these, by steady time; more than one after a renewal whose answer was lost.
    pub(crate) untils_ms: Vec<u64>,
}

/// An idempotency key and what it is bound to.
#[derive(Clone, Debug)]
pub(crate) struct BoundKey {
    pub(crate) request: u64,
    pub(crate) task: TaskId,
    pub(crate) expires_at_ms: u64,
    /// A sweep whose answer was lost may have freed it.
    pub(crate) maybe_free: bool,
}

/// What was asked of the service in an operation. `told` says that it was acknowledged.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// Requests of this number were sent; one task may come of all of them together.
    Submitted {
        request: u64,
    },
    Cancelled {
        task: TaskId,
        failure: Failure,
    },
    Deleted {
        task: TaskId,
    },
    /// A reference of a waiting task cannot be had.
    FetchFailed {
        task: TaskId,
        failure: Failure,
    },
    /// The leases that were answered.
    Claimed {
        worker: usize,
        leases: Vec<Lease>,
        steady_ms: u64,
    },
    Renewed {
        lease: Lease,
        progress: u8,
        /// What was left to the engine or to a reference.
        decided: Option<Box<VideoSpec>>,
        /// Whether it came with a ticket.
        has_ticket: bool,
        until_ms: u64,
        told: bool,
    },
    Finished {
        lease: Lease,
        outcome: Result<Artifact, Failure>,
        told: bool,
    },
    Released {
        lease: Lease,
        attempt: ReleasedAttempt,
        told: bool,
    },
    Swept {
        request: SweepRequest,
        /// Leases that end by then are over.
        steady_ms: u64,
        told: bool,
        /// Since when each worker has been well.
        well_since_ms: [Option<u64>; WORKERS],
    },
    Postponed(PostponeRequest),
    /// The store was closed, or killed, and opened again, perhaps without room to write.
    Reopened {
        full: bool,
    },
}

/// The book.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) tasks: BTreeMap<TaskId, Known>,
    /// Deleted, or expired and past their tombstone.
    pub(crate) gone: BTreeMap<TaskId, String>,
    pub(crate) keys: BTreeMap<(String, String), BoundKey>,
    pub(crate) causes: Vec<Cause>,
    /// Who ran what before the operation.
    pub(crate) company: Vec<(TaskId, Held)>,
    /// How often each turn and each answer was seen.
    pub(crate) seen: BTreeMap<String, u64>,
    /// When each project may have been refused last.
    pub(crate) refused_at_ms: BTreeMap<String, u64>,
    /// Chores that are leased.
    pub(crate) taken: TakenChores,
    /// The token of each task's last fetch.
    pub(crate) fetch_tokens: BTreeMap<TaskId, u64>,
    token_max: u64,
}

impl Book {
    pub(crate) fn saw(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Task) -> bool) -> u64 {
        self.tasks
            .values()
            .filter(|known| wanted(&known.task))
            .count() as u64
    }

    pub(crate) fn phase(&self, id: TaskId) -> Option<TaskPhase> {
        self.tasks.get(&id).map(|known| known.task.state.phase())
    }

    /// Whether this lease is the one under which its task runs.
    pub(crate) fn holds(&self, lease: &Lease) -> bool {
        self.tasks
            .get(&lease.task)
            .is_some_and(|known| known.is_held_by(lease))
    }

    /// Enters a task that was found for the first time: a request of this operation made it.
    pub(crate) fn enter(&mut self, task: &Task) {
        let number = number_of(task).expect("a new task has its metadata");
        let made = self.causes.iter().position(
            |cause| matches!(cause, Cause::Submitted { request, .. } if *request == number),
        );
        let made =
            made.unwrap_or_else(|| panic!("P6: request {number} has made another task: {task:?}"));
        self.causes.remove(made);
        assert_eq!(
            task.state.phase(),
            TaskPhase::Waiting,
            "P5: born in another phase: {task:?}"
        );
        let known = Known {
            task: task.clone(),
            held: None,
            deaths: 0,
            has_ticket: Some(false),
        };
        self.tasks.insert(task.id, known);
    }

    /// Enters a fetch that was handed out.
    pub(crate) fn enter_fetch(&mut self, fetch: &ReferenceFetch) {
        let earlier = self.fetch_tokens.insert(fetch.task.id, fetch.token);
        assert!(
            earlier.is_none_or(|token| token < fetch.token),
            "P3: the token of a fetch was given out again: {fetch:?}"
        );
    }

    /// Whether this fetch is the last that was handed out of its task.
    pub(crate) fn is_fetched_by(&self, fetch: &ReferenceFetch) -> bool {
        self.fetch_tokens.get(&fetch.task.id) == Some(&fetch.token)
    }

    /// Whether a task names this file, or an unfinished one may come to.
    pub(crate) fn is_wanted(&self, key: &str) -> bool {
        let id: Option<TaskId> = key.split('/').nth(1).and_then(|id| id.parse().ok());
        let Some(known) = id.and_then(|id| self.tasks.get(&id)) else {
            return false;
        };
        match &known.task.state {
            TaskState::Waiting | TaskState::Running => true,
            TaskState::Completed(artifact) => {
                artifact.files().any(|file| file.key == key)
                    || known.task.spec.draft
                        && reference_keys(&known.task).contains(&key.to_owned())
            }
            TaskState::Failed(_) | TaskState::Expired => false,
        }
    }

    /// Whether a result names this file, or its task is a draft that is there: such a file is never to be removed.
    pub(crate) fn is_named(&self, key: &str) -> bool {
        let id: Option<TaskId> = key.split('/').nth(1).and_then(|id| id.parse().ok());
        let known = id.and_then(|id| self.tasks.get(&id));
        known.is_some_and(|known| {
            matches!(known.task.state, TaskState::Completed(_)) && self.is_wanted(key)
        })
    }

    /// Remembers who ran what.
    pub(crate) fn look_at_company(&mut self) {
        let known = self.tasks.iter();
        self.company = known
            .filter_map(|(id, known)| Some((*id, known.held.clone()?)))
            .collect();
    }

    /// Whether the worker of this task ran nothing else.
    pub(crate) fn was_alone(&self, id: TaskId, worker: usize) -> bool {
        let mut others = self.company.iter();
        !others.any(|(other, held)| *other != id && held.worker == worker)
    }

    /// The same, when what raced with the sweep may have ended the others before it.
    pub(crate) fn may_have_been_alone(&self, id: TaskId, worker: usize) -> bool {
        let ended = |other: TaskId| {
            self.causes.iter().any(|cause| match cause {
                Cause::Cancelled { task, .. } => *task == other,
                Cause::Finished { lease, .. } => lease.task == other,
                _ => false,
            })
        };
        let mut others = self.company.iter();
        !others.any(|(other, held)| *other != id && held.worker == worker && !ended(*other))
    }

    /// Notes what was done. An acknowledged change by a lease that does not hold is a violation.
    pub(crate) fn note(&mut self, cause: Cause) {
        let obeyed = match &cause {
            Cause::Renewed {
                lease, told: true, ..
            }
            | Cause::Finished {
                lease, told: true, ..
            }
            | Cause::Released {
                lease, told: true, ..
            } => Some(lease),
            _ => None,
        };
        let stale = obeyed.is_some_and(|lease| !self.holds(lease));
        assert!(!stale, "P3: a stale lease was obeyed: {cause:?}");
        self.causes.push(cause);
    }

    /// Writes down how a task stands in the store now.
    pub(crate) fn observe(&mut self, id: TaskId, found: Option<&Task>) {
        let Some(known) = self.tasks.get(&id) else {
            return;
        };
        let moves_leases =
            |cause: &Cause| matches!(cause, Cause::Renewed { .. } | Cause::Reopened { .. });
        if found == Some(&known.task) && !self.causes.iter().any(moves_leases) {
            return;
        }
        let next = found.map(|task| self.explain(known, task));
        match next {
            Some(next) => {
                let turn = (known.task.state.phase(), next.task.state.phase());
                if turn.0 != turn.1 {
                    let code = match &next.task.state {
                        TaskState::Failed(failure) => failure.code.clone(),
                        _ => String::new(),
                    };
                    self.saw(format!("{:?} to {:?} {code}", turn.0, turn.1));
                }
                self.tasks.insert(id, next);
            }
            None => {
                self.may_vanish(known);
                let project = known.task.project.clone();
                self.tasks.remove(&id);
                self.keys.retain(|_, key| key.task != id);
                self.gone.insert(id, project);
            }
        }
    }

    /// What each acknowledgement of this operation has promised, now that the store was looked at.
    pub(crate) fn settle(&mut self) {
        for cause in std::mem::take(&mut self.causes) {
            match cause {
                Cause::Claimed { leases, .. } => {
                    for lease in leases {
                        assert!(
                            lease.token > self.token_max,
                            "P3: a token was given out again"
                        );
                        self.token_max = lease.token;
                    }
                }
                Cause::Swept {
                    request,
                    steady_ms,
                    told,
                    ..
                } => self.settle_sweep(request, steady_ms, told),
                Cause::Finished {
                    lease,
                    outcome,
                    told: true,
                } => {
                    let Some(known) = self.tasks.get(&lease.task) else {
                        continue;
                    };
                    let wanted = match outcome {
                        Ok(artifact) => TaskState::Completed(Box::new(artifact)),
                        Err(failure) => TaskState::Failed(failure),
                    };
                    assert_eq!(
                        known.task.state, wanted,
                        "P2: an acknowledged finish is lost"
                    );
                }
                _ => {}
            }
        }
    }

    fn settle_sweep(&mut self, request: SweepRequest, steady_ms: u64, told: bool) {
        let freed = |key: &BoundKey| {
            let due_ms = request.due_ms;
            due_ms.is_some_and(|due_ms| key.expires_at_ms + request.keys_kept_ms <= due_ms)
        };
        for key in self.keys.values_mut() {
            key.maybe_free |= freed(key);
        }
        if !told {
            return;
        }
        self.keys.retain(|_, key| !freed(key));
        for known in self.tasks.values() {
            let over = known
                .held
                .as_ref()
                .is_some_and(|held| held.untils_ms.iter().all(|until_ms| *until_ms <= steady_ms));
            assert!(
                !over || request.spares_leases,
                "P5: a sweep left a task without a live lease running: {known:?}"
            );
        }
    }
}

/// The number of the request that made the task: its metadata say so. `None` of an expired task, which
/// has none.
pub(crate) fn number_of(task: &Task) -> Option<u64> {
    let number = task.metadata.get("request")?;
    Some(number.parse().unwrap())
}
