//! The state machine of a task: which events it accepts in which state, and the record afterwards. An
//! event that does not fit is refused and changes nothing; a stale token never gets further than
//! [`TaskRecord::check_token`].

use super::deaths::DeathVerdict;
use super::effects::TaskEffects;
use super::event::{EventRefusal, FetchOutcome, LeaseRenewal, RunOutcome, TaskEvent};
use super::event::{LeaseLost, ReleasedAttempt, StoredLease};
use super::record::{ReferenceState, TaskRecord};
use crate::error::{Failure, FailureCode};
use crate::task::{Task, TaskState};
use crate::time::{LeaseMs, UnixMs};

/// A change of a task.
#[derive(Clone, Debug)]
pub struct TaskTransition {
    /// The task afterwards; `None` if it is removed.
    pub after: Option<TaskRecord>,
    /// The effects outside the task.
    pub effects: TaskEffects,
}

/// The time of a task's end, and how long to keep the task from then on.
#[derive(Clone, Copy)]
struct TaskEnd {
    now_ms: UnixMs,
    retention_ms: u64,
}

impl TaskRecord {
    /// The record after `event`, with its effects.
    ///
    /// # Errors
    /// [`EventRefusal`] if the task's state does not allow the event; then nothing may change.
    pub fn apply(&self, event: TaskEvent) -> Result<TaskTransition, EventRefusal> {
        // A deletion leaves no record to compare with, and only the event knows its time.
        let deletion = match &event {
            TaskEvent::Deleted { now_ms } => Some(TaskEffects::for_deletion(self, *now_ms)),
            _ => None,
        };
        let after = self.after(event)?;
        if let Some(after) = &after {
            let (was, is) = (self.task.state.phase(), after.task.state.phase());
            // A second barrier behind the checks of each event: whatever they miss, no stored task
            // takes a step that the table of phases does not allow.
            if was != is && !was.may_become(is) {
                return Err(EventRefusal::Impossible);
            }
        }
        Ok(TaskTransition {
            effects: deletion.unwrap_or_else(|| TaskEffects::between(Some(self), after.as_ref())),
            after,
        })
    }

    fn after(&self, event: TaskEvent) -> Result<Option<Self>, EventRefusal> {
        let after = match event {
            TaskEvent::Claimed { held, now_ms } => self.claimed(held, now_ms)?,
            TaskEvent::Renewed {
                token,
                until_ms,
                ends_ms,
                renewal,
            } => self.renewed(token, until_ms, ends_ms, renewal)?,
            TaskEvent::Finished {
                token,
                outcome,
                now_ms,
                retention_ms,
            } => self.finished(
                token,
                *outcome,
                TaskEnd {
                    now_ms,
                    retention_ms,
                },
            )?,
            TaskEvent::Released { token, attempt } => self.released(token, attempt)?,
            TaskEvent::WorkerLost {
                verdict,
                now_ms,
                retention_ms,
            } => self.worker_lost(
                verdict,
                TaskEnd {
                    now_ms,
                    retention_ms,
                },
            )?,
            TaskEvent::FetchBegun { token, until_ms } => self.fetch_begun(token, until_ms)?,
            TaskEvent::FetchDue => self.fetch_due()?,
            TaskEvent::FetchEnded { token, outcome } => self.fetch_ended(token, outcome)?,
            TaskEvent::ReferencesStored { bytes } => self.references_stored(bytes)?,
            TaskEvent::Cancelled {
                failure,
                now_ms,
                retention_ms,
            } => self.cancelled(
                failure,
                TaskEnd {
                    now_ms,
                    retention_ms,
                },
            )?,
            TaskEvent::WaitedTooLong {
                now_ms,
                retention_ms,
            } => self.waited_too_long(TaskEnd {
                now_ms,
                retention_ms,
            })?,
            TaskEvent::Expired { now_ms } => self.expired(now_ms)?,
            TaskEvent::Postponed { expires_at_ms } => self.postponed(expires_at_ms)?,
            TaskEvent::Deleted { .. } => return Ok(None),
        };
        Ok(Some(after))
    }

    fn claimed(&self, held: StoredLease, now_ms: UnixMs) -> Result<Self, EventRefusal> {
        self.expect(self.is_claimable())?;
        Ok(self.with_task(Some(held), |task| {
            task.state = TaskState::Running;
            task.attempt = task.attempt.saturating_add(1);
            start(task, now_ms);
        }))
    }

    fn renewed(
        &self,
        token: u64,
        until_ms: UnixMs,
        ends_ms: LeaseMs,
        renewal: LeaseRenewal,
    ) -> Result<Self, EventRefusal> {
        self.check_token(token)?;
        // A renewal may arrive late, after the time when the lease ended but before a sweep has
        // judged it. It counts then: the worker is alive, and nobody else has the task.
        let held = self.lease.clone().map(|held| StoredLease {
            until_ms,
            ends_ms,
            ..held
        });
        let mut after = self.with_task(held, |task| {
            // Never falls, and only completed tasks have 100.
            task.progress = task.progress.max(renewal.progress.min(99));
            if renewal.engine.is_some() {
                task.engine = renewal.engine;
            }
            if let Some(decided) = renewal.decided {
                task.spec = *decided;
            }
            if let Some(warnings) = renewal.warnings {
                task.warnings = warnings;
            }
            if let Some(cost) = &mut task.cost {
                if let Some(charged) = renewal.charged {
                    cost.record_charge(charged);
                }
                // After a failed job, the ticket becomes another.
                if renewal.ticket.is_some() && renewal.ticket.as_deref() != self.ticket.as_deref() {
                    cost.begin_next_job();
                }
            }
        });
        if let Some(ticket) = renewal.ticket {
            after.ticket = Some(ticket)
                .filter(|ticket| !ticket.is_empty())
                .map(Into::into);
        }
        Ok(after)
    }

    fn finished(&self, token: u64, outcome: RunOutcome, at: TaskEnd) -> Result<Self, EventRefusal> {
        self.check_token(token)?;
        Ok(self.with_task(None, |task| {
            task.state = match outcome {
                Ok(artifact) => {
                    task.progress = 100;
                    TaskState::Completed(Box::new(artifact))
                }
                Err(failure) => TaskState::Failed(failure),
            };
            end(task, at);
        }))
    }

    fn released(&self, token: u64, attempt: ReleasedAttempt) -> Result<Self, EventRefusal> {
        self.check_token(token)?;
        let after = self.with_task(None, |task| {
            task.state = TaskState::Waiting;
            // The claim counted this attempt; taking it back makes the task as fresh as before.
            if attempt != ReleasedAttempt::Counts {
                task.attempt = task.attempt.saturating_sub(1);
            }
        });
        Ok(match attempt {
            ReleasedAttempt::ReferencesLost => {
                // As after a submit: without the files, the next worker could not run it.
                let lost = ReferenceState::from_stored(false, &after.task);
                after.with_references(lost)
            }
            ReleasedAttempt::Counts | ReleasedAttempt::Forgiven => after,
        })
    }

    fn worker_lost(&self, verdict: DeathVerdict, at: TaskEnd) -> Result<Self, EventRefusal> {
        self.expect(self.is_running())?;
        let mut after = match verdict {
            DeathVerdict::Lost => return Ok(self.failed(FailureCode::WorkerLost.into(), at)),
            DeathVerdict::Again => self.with_task(None, |task| task.state = TaskState::Waiting),
            DeathVerdict::Spared => self.with_task(None, |task| {
                task.state = TaskState::Waiting;
                task.attempt = task.attempt.saturating_sub(1);
            }),
        };
        // Deaths only grow. From the first one on, the task's last attempt runs alone.
        after.deaths = after.deaths.saturating_add(1);
        Ok(after)
    }

    fn fetch_begun(&self, token: u64, until_ms: LeaseMs) -> Result<Self, EventRefusal> {
        let is_wanted = matches!(self.references, ReferenceState::Wanted { .. });
        self.expect(self.is_waiting() && is_wanted)?;
        Ok(self.with_references(ReferenceState::Away {
            tries: self.references.tries().saturating_add(1),
            until_ms,
            token: Some(token),
        }))
    }

    fn fetch_due(&self) -> Result<Self, EventRefusal> {
        let is_away = matches!(self.references, ReferenceState::Away { .. });
        self.expect(self.is_waiting() && is_away)?;
        let tries = self.references.tries();
        Ok(self.with_references(ReferenceState::Wanted { tries }))
    }

    /// Ends a task only if it still waits for this very fetch, never during another process's run.
    fn fetch_ended(&self, token: u64, outcome: FetchOutcome) -> Result<Self, EventRefusal> {
        if self.is_terminal() {
            return Err(LeaseLost::Withdrawn.into());
        }
        if !self.is_waiting() || self.references.fetch_token() != Some(token) {
            return Err(LeaseLost::Superseded.into());
        }
        Ok(match outcome {
            FetchOutcome::AtHand => self.with_references(ReferenceState::AtHand),
            FetchOutcome::Failed {
                failure,
                now_ms,
                retention_ms,
            } => self.failed(
                failure,
                TaskEnd {
                    now_ms,
                    retention_ms,
                },
            ),
            FetchOutcome::Back { not_before_ms } => self.with_references(ReferenceState::Away {
                tries: self.references.tries(),
                until_ms: not_before_ms,
                token: None,
            }),
        })
    }

    fn references_stored(&self, bytes: u64) -> Result<Self, EventRefusal> {
        self.expect(!self.is_terminal())?;
        // The allowance of the submit is replaced by the real size.
        let without = self.charged_bytes.saturating_sub(self.reference_bytes);
        Ok(Self {
            reference_bytes: bytes,
            charged_bytes: without.saturating_add(bytes),
            ..self.clone()
        })
    }

    fn cancelled(&self, failure: Failure, at: TaskEnd) -> Result<Self, EventRefusal> {
        self.expect(!self.is_terminal())?;
        let mut after = self.with_task(None, |task| {
            task.state = TaskState::Failed(failure);
            end(task, at);
            if let (Some(cost), Some(amount)) = (&mut task.cost, self.cost_if_withdrawn()) {
                cost.amount = amount;
            }
        });
        // The worker still holds a token. Keeping it lets `check_token` tell it that the owner withdrew
        // the task, so that the worker stops quietly instead of reporting a lost lease.
        after.lease.clone_from(&self.lease);
        Ok(after)
    }

    fn waited_too_long(&self, at: TaskEnd) -> Result<Self, EventRefusal> {
        self.expect(self.awaits_first_worker())?;
        Ok(self.failed(FailureCode::TaskExpired.into(), at))
    }

    /// From now on the task answers 410, for the full time however late this happens.
    fn expired(&self, now_ms: UnixMs) -> Result<Self, EventRefusal> {
        self.expect(self.has_files_to_expire())?;
        Ok(self.with_task(self.lease.clone(), |task| {
            task.state = TaskState::Expired;
            // From here on `expires_at_ms` is the start of the tombstone. A sweep that ran late
            // must not shorten the time for which the task answers 410.
            task.expires_at_ms = task.expires_at_ms.max(Some(now_ms));
        }))
    }

    fn postponed(&self, expires_at_ms: UnixMs) -> Result<Self, EventRefusal> {
        self.expect(self.has_files_to_expire())?;
        Ok(self.with_task(self.lease.clone(), |task| {
            task.expires_at_ms = Some(expires_at_ms);
        }))
    }

    fn has_files_to_expire(&self) -> bool {
        matches!(
            self.task.state,
            TaskState::Completed(_) | TaskState::Failed(_)
        )
    }

    fn failed(&self, failure: Failure, at: TaskEnd) -> Self {
        self.with_task(None, |task| {
            task.state = TaskState::Failed(failure);
            end(task, at);
        })
    }

    fn expect(&self, possible: bool) -> Result<(), EventRefusal> {
        match (possible, self.is_terminal()) {
            (true, _) => Ok(()),
            (false, true) => Err(EventRefusal::Ended),
            (false, false) => Err(EventRefusal::Impossible),
        }
    }
}

/// Records the claim; the first one sets the start. Times never run backwards within a task,
/// whatever the clock did.
fn start(task: &mut Task, now_ms: UnixMs) {
    let at_ms = now_ms.max(task.created_at_ms);
    task.started_at_ms.get_or_insert(at_ms);
}

/// Records the end of the task; not before its start, even if the clock was set back. The retention
/// counts from that time: if the step back is wrong, the result does not expire too early. From now on the cost is
/// final.
fn end(task: &mut Task, at: TaskEnd) {
    let begun_ms = task.started_at_ms.unwrap_or(0).max(task.created_at_ms);
    let ended_ms = at.now_ms.max(begun_ms);
    task.finished_at_ms = Some(ended_ms);
    task.expires_at_ms = Some(ended_ms.saturating_add(at.retention_ms));
    if let Some(cost) = &mut task.cost {
        cost.settle(match &task.state {
            TaskState::Completed(artifact) => Some(artifact.duration_seconds),
            _ => None,
        });
    }
}
