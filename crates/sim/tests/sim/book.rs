//! What the service has promised so far, and what an operation may change of it. After each
//! operation the store is compared with the book: every difference must have a [`Cause`].

use std::collections::{BTreeMap, BTreeSet};

use kinora_contract::{Artifact, Failure, FailureCode, Phase, State, Task, TaskId};
use kinora_store::{Lease, TaskView};

use crate::world::{ATTEMPTS_MAX, LEASE_MS, TOMBSTONE_MS};

/// A task as the book knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) task: Task,
    /// While running.
    pub(crate) held: Option<Held>,
}

/// A running task's lease.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// `None` when the answer to the claim was lost: nobody knows it.
    pub(crate) token: Option<u64>,
    /// It ends at one of these; more than one after a renewal whose answer was lost.
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
    Submitted { request: u64, now_ms: u64 },
    Cancelled { task: TaskId, failure: Failure },
    Deleted { task: TaskId },
    /// The leases that were answered.
    Claimed { leases: Vec<Lease>, now_ms: u64 },
    Renewed { lease: Lease, progress: u8, until_ms: u64, told: bool },
    Finished { lease: Lease, outcome: Result<Artifact, Failure>, told: bool },
    Released { lease: Lease, told: bool },
    Swept { now_ms: u64, told: bool },
    /// The store was closed, or killed, and opened again.
    Reopened,
}

/// The book.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) tasks: BTreeMap<TaskId, Known>,
    /// Deleted, or expired and past their tombstone.
    pub(crate) gone: BTreeMap<TaskId, String>,
    pub(crate) keys: BTreeMap<(String, String), BoundKey>,
    pub(crate) causes: Vec<Cause>,
    /// Blobs that were put when their lease was over already.
    pub(crate) late: BTreeSet<String>,
    token_max: u64,
}

impl Book {
    pub(crate) fn count(&self, wanted: impl Fn(&Task) -> bool) -> u64 {
        self.tasks.values().filter(|known| wanted(&known.task)).count() as u64
    }

    pub(crate) fn phase(&self, id: TaskId) -> Option<Phase> {
        self.tasks.get(&id).map(|known| known.task.state.phase())
    }

    /// Whether this lease is the one under which its task runs.
    pub(crate) fn holds(&self, lease: &Lease) -> bool {
        let held = self.tasks.get(&lease.task).and_then(|known| known.held.as_ref());
        held.is_some_and(|held| held.token == Some(lease.token))
    }

    /// Enters a task that was found for the first time: a request of this operation made it.
    pub(crate) fn enter(&mut self, task: &Task) {
        let number = number_of(task);
        let made = self.causes.iter().position(
            |cause| matches!(cause, Cause::Submitted { request, .. } if *request == number),
        );
        let made = made.unwrap_or_else(|| panic!("P6: request {number} has made another task: {task:?}"));
        self.causes.remove(made);
        assert_eq!(task.state.phase(), Phase::Waiting, "P5: born in another phase: {task:?}");
        let known = Known {
            task: task.clone(),
            held: None,
        };
        self.tasks.insert(task.id, known);
    }

    /// Notes what was done. An acknowledged change by a lease that does not hold is a violation.
    pub(crate) fn note(&mut self, cause: Cause) {
        let obeyed = match &cause {
            Cause::Renewed { lease, told: true, .. }
            | Cause::Finished { lease, told: true, .. }
            | Cause::Released { lease, told: true } => Some(lease),
            _ => None,
        };
        let stale = obeyed.is_some_and(|lease| !self.holds(lease));
        assert!(!stale, "P3: a stale lease was obeyed: {cause:?}");
        self.causes.push(cause);
    }

    /// Writes down how a task stands in the store now.
    pub(crate) fn observe(&mut self, id: TaskId, found: Option<&TaskView>) {
        let Some(known) = self.tasks.get(&id) else { return };
        let next = found.map(|view| self.explain(known, &view.task));
        match next {
            Some(next) => {
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

    fn may_vanish(&self, known: &Known) {
        let task = &known.task;
        let expired = matches!(task.state, State::Expired);
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Deleted { task: deleted } => *deleted == task.id,
            Cause::Swept { now_ms, .. } => expired && tombstone_end(task) <= *now_ms,
            _ => false,
        });
        assert!(explained, "P1: the acknowledged task {} is lost: {known:?}", task.id);
    }

    /// How the task may have come from what is known to what is found.
    fn explain(&self, known: &Known, found: &Task) -> Known {
        let before = &known.task;
        assert_eq!(
            (&before.spec, &before.metadata, before.created_at_ms, &before.project),
            (&found.spec, &found.metadata, found.created_at_ms, &found.project),
            "P1: what was accepted has changed"
        );
        assert!(
            found.progress >= before.progress,
            "P2: progress fell from {} to {} on {}",
            before.progress, found.progress, before.id
        );
        let whole = matches!(found.state.phase(), Phase::Completed | Phase::Expired);
        assert!(found.progress < 100 || whole, "P2: 100 is for completed tasks: {found:?}");
        let phases = (before.state.phase(), found.state.phase());
        let held = match phases {
            (Phase::Waiting, Phase::Waiting) => None,
            (Phase::Waiting, Phase::Running) => Some(self.claimed(before, found)),
            (Phase::Running, Phase::Running) => Some(self.renewed(known, found)),
            (Phase::Running, Phase::Waiting) => {
                self.may_go_back(known, found);
                None
            }
            (Phase::Running, Phase::Completed) => {
                self.may_complete(known, found);
                None
            }
            (Phase::Waiting | Phase::Running, Phase::Failed) => {
                self.may_fail(known, found);
                None
            }
            (Phase::Completed | Phase::Failed, Phase::Expired) => {
                self.may_expire(known);
                None
            }
            (one, other) if one == other => {
                assert_eq!(before, found, "P2: a terminal state has changed");
                None
            }
            (Phase::Waiting, _) => panic!("P2: {} was never run: {found:?}", before.id),
            _ => panic!("P2: a terminal state was left: {before:?} became {found:?}"),
        };
        Known {
            task: found.clone(),
            held,
        }
    }

    fn claimed(&self, before: &Task, found: &Task) -> Held {
        let claim = self.causes.iter().find_map(|cause| match cause {
            Cause::Claimed { leases, now_ms } => Some((leases, *now_ms)),
            _ => None,
        });
        let (leases, now_ms) = claim.unwrap_or_else(|| panic!("P5: {} runs unclaimed", found.id));
        assert_eq!(found.attempt, before.attempt + 1, "P5: an attempt is not counted");
        let lease = leases.iter().find(|lease| lease.task == found.id);
        Held {
            token: lease.map(|lease| lease.token),
            untils_ms: vec![now_ms + LEASE_MS],
        }
    }

    fn renewed(&self, known: &Known, found: &Task) -> Held {
        let mut held = known.held.clone().unwrap();
        let mut progress_max = known.task.progress;
        for cause in &self.causes {
            match cause {
                Cause::Renewed { lease, progress, until_ms, told } if self.holds(lease) => {
                    progress_max = progress_max.max(*progress);
                    if *told {
                        held.untils_ms.clear();
                    }
                    held.untils_ms.push(*until_ms);
                }
                Cause::Reopened => held.untils_ms = vec![0],
                _ => {}
            }
        }
        assert_eq!(found.attempt, known.task.attempt, "P3: {} was claimed while it ran", found.id);
        assert!(found.progress <= progress_max, "P3: a stale lease has reported progress: {known:?}");
        held
    }

    fn may_go_back(&self, known: &Known, found: &Task) {
        let attempt = known.task.attempt;
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Released { lease, .. } => self.holds(lease) && found.attempt == attempt - 1,
            Cause::Swept { now_ms, .. } => self.may_be_over(known, *now_ms) && attempt < ATTEMPTS_MAX,
            Cause::Reopened => attempt < ATTEMPTS_MAX,
            _ => false,
        });
        assert!(explained, "P10: a live lease was taken: {known:?}");
    }

    fn may_complete(&self, known: &Known, found: &Task) {
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Finished { lease, outcome: Ok(artifact), .. } => {
                self.holds(lease) && found.state == State::Completed(Box::new(artifact.clone()))
            }
            _ => false,
        });
        assert!(explained, "P2: completed by another than its lease: {known:?}: {found:?}");
    }

    fn may_fail(&self, known: &Known, found: &Task) {
        let State::Failed(failed) = &found.state else { return };
        let lost = failed.code == FailureCode::WorkerLost.as_str();
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Cancelled { task, failure } => *task == found.id && failed == failure,
            Cause::Finished { lease, outcome: Err(failure), .. } => self.holds(lease) && failed == failure,
            Cause::Swept { now_ms, .. } => {
                lost && self.may_be_over(known, *now_ms) && known.task.attempt >= ATTEMPTS_MAX
            }
            _ => false,
        });
        assert!(explained, "P2: failed for no reason: {known:?}: {found:?}");
    }

    fn may_expire(&self, known: &Known) {
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Swept { now_ms, .. } => known.task.expires_at_ms.is_some_and(|end| end <= *now_ms),
            _ => false,
        });
        assert!(explained, "P4: expired before its time: {known:?}");
    }

    fn may_be_over(&self, known: &Known, now_ms: u64) -> bool {
        let held = known.held.as_ref().unwrap();
        held.untils_ms.iter().any(|until_ms| is_over(*until_ms, now_ms))
    }

    /// What each acknowledgement of this operation has promised, now that the store was looked at.
    pub(crate) fn settle(&mut self) {
        for cause in std::mem::take(&mut self.causes) {
            match cause {
                Cause::Claimed { leases, .. } => {
                    for lease in leases {
                        assert!(lease.token > self.token_max, "P3: a token was given out again");
                        self.token_max = lease.token;
                    }
                }
                Cause::Swept { now_ms, told } => self.settle_sweep(now_ms, told),
                Cause::Finished { lease, outcome, told: true } => {
                    let Some(known) = self.tasks.get(&lease.task) else { continue };
                    let wanted = match outcome {
                        Ok(artifact) => State::Completed(Box::new(artifact)),
                        Err(failure) => State::Failed(failure),
                    };
                    assert_eq!(known.task.state, wanted, "P2: an acknowledged finish is lost");
                }
                _ => {}
            }
        }
    }

    fn settle_sweep(&mut self, now_ms: u64, told: bool) {
        for key in self.keys.values_mut() {
            key.maybe_free |= key.expires_at_ms <= now_ms;
        }
        if !told {
            return;
        }
        self.keys.retain(|_, key| key.expires_at_ms > now_ms);
        for known in self.tasks.values() {
            let over = known.held.as_ref().is_some_and(|held| {
                held.untils_ms.iter().all(|until_ms| is_over(*until_ms, now_ms))
            });
            assert!(!over, "P5: a sweep left a task without a live lease running: {known:?}");
        }
    }
}

/// The number of the request that made the task: its metadata say so.
pub(crate) fn number_of(task: &Task) -> u64 {
    task.metadata["request"].parse().unwrap()
}

/// Whether a lease that ends then is over at `now_ms`: also when it ends so late that the clock
/// by which it was made must have been wrong.
fn is_over(until_ms: u64, now_ms: u64) -> bool {
    until_ms <= now_ms || until_ms > now_ms + 2 * LEASE_MS
}

pub(crate) fn tombstone_end(task: &Task) -> u64 {
    task.expires_at_ms.unwrap_or(u64::MAX).saturating_add(TOMBSTONE_MS)
}
