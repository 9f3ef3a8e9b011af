//! How a task may have come from how it was known to how it is found: every change needs a cause
//! among those of the operation, and the cause needs a right to it.

use std::collections::BTreeMap;

use kinora_contract::{FailureCode, Task, TaskPhase, TaskState, VideoSpec};
use kinora_store::{PostponedExpiry, ReleasedAttempt};

use crate::book::{Book, Cause, Held, Known};
use crate::world::{ATTEMPTS_MAX, LEASE_MS, TOMBSTONE_MS};

/// What must still be there of an accepted request: an ended task keeps no addresses of its references, unless a final
/// may be made of it, and an expired one no texts.
fn what_stays(before: &Task, found: &Task) -> (VideoSpec, BTreeMap<String, String>) {
    let (mut spec, mut metadata) = (before.spec.clone(), before.metadata.clone());
    let serves_finals = spec.draft && matches!(found.state, TaskState::Completed(_));
    if found.state.phase().is_terminal() && !serves_finals {
        spec.inputs.clear_urls();
    }
    if matches!(found.state, TaskState::Expired) {
        spec.prompt.clear();
        spec.negative_prompt = None;
        metadata.clear();
    }
    (spec, metadata)
}

impl Book {
    pub(crate) fn may_vanish(&self, known: &Known) {
        let task = &known.task;
        // However late a sweep is: it does not expire and forget at once.
        let expired = matches!(task.state, TaskState::Expired);
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Deleted { task: deleted } => *deleted == task.id,
            Cause::Swept { request, .. } => {
                let end_ms = tombstone_end(task);
                expired && request.due_ms.is_some_and(|due_ms| end_ms <= due_ms)
            }
            _ => false,
        });
        assert!(
            explained,
            "P1: the acknowledged task {} is lost: {known:?}",
            task.id
        );
    }

    /// How the task may have come from what is known to what is found.
    pub(crate) fn explain(&self, known: &Known, found: &Task) -> Known {
        let before = &known.task;
        let (mut spec, metadata) = what_stays(before, found);
        if spec != found.spec {
            spec = self.decided(known).unwrap_or(spec);
        }
        assert_eq!(
            (&spec, &metadata, before.created_at_ms, &before.project),
            (
                &found.spec,
                &found.metadata,
                found.created_at_ms,
                &found.project
            ),
            "P1: what was accepted has changed"
        );
        assert_progress(before, found);
        let phases = (before.state.phase(), found.state.phase());
        let mut deaths = known.deaths;
        let held = match phases {
            (TaskPhase::Waiting, TaskPhase::Waiting) => None,
            (TaskPhase::Waiting, TaskPhase::Running) => Some(self.claimed(known, found)),
            (TaskPhase::Running, TaskPhase::Running) => Some(self.renewed(known, found)),
            (TaskPhase::Running, TaskPhase::Waiting) => {
                deaths += u32::from(self.may_go_back(known, found));
                None
            }
            (TaskPhase::Running, TaskPhase::Completed) => {
                self.may_complete(known, found);
                None
            }
            (TaskPhase::Waiting | TaskPhase::Running, TaskPhase::Failed) => {
                self.may_fail(known, found);
                None
            }
            (TaskPhase::Completed | TaskPhase::Failed, TaskPhase::Expired) => {
                self.may_expire(known, found);
                None
            }
            (one, other) if one == other => {
                let kept_longer = Task {
                    expires_at_ms: found
                        .expires_at_ms
                        .filter(|end| self.may_be_moved(before, *end)),
                    ..before.clone()
                };
                assert!(
                    found == before || *found == kept_longer,
                    "P2: a terminal state has changed: {before:?} became {found:?}"
                );
                None
            }
            (TaskPhase::Waiting, _) => panic!("P2: {} was never run: {found:?}", before.id),
            _ => panic!("P2: a terminal state was left: {before:?} became {found:?}"),
        };
        Known {
            task: found.clone(),
            held,
            deaths,
            has_ticket: self.has_ticket(known),
        }
    }

    /// Whether the store has a ticket of the task now.
    fn has_ticket(&self, known: &Known) -> Option<bool> {
        let kept = self.causes.iter().filter_map(|cause| match cause {
            Cause::Renewed {
                lease,
                has_ticket: true,
                told,
                ..
            } if known.is_held_by(lease) => Some(*told),
            _ => None,
        });
        match kept.max() {
            Some(true) => Some(true),
            Some(false) => known.has_ticket.filter(|has_ticket| *has_ticket),
            None => known.has_ticket,
        }
    }

    /// The spec with the choices that its run has made.
    fn decided(&self, known: &Known) -> Option<VideoSpec> {
        self.causes.iter().find_map(|cause| match cause {
            Cause::Renewed {
                lease,
                decided: Some(decided),
                ..
            } if known.is_held_by(lease) => Some(VideoSpec {
                // All else is as it was accepted.
                frame: decided.frame,
                seconds: decided.seconds,
                ..known.task.spec.clone()
            }),
            _ => None,
        })
    }

    fn claimed(&self, known: &Known, found: &Task) -> Held {
        let before = &known.task;
        let claim = self.causes.iter().find_map(|cause| match cause {
            Cause::Claimed {
                worker,
                leases,
                steady_ms,
            } => Some((*worker, leases, *steady_ms)),
            _ => None,
        });
        let (worker, leases, steady_ms) =
            claim.unwrap_or_else(|| panic!("P5: {} runs unclaimed", found.id));
        assert_eq!(
            found.attempt,
            before.attempt + 1,
            "P5: an attempt is not counted"
        );
        let lease = leases.iter().find(|lease| lease.task == found.id);
        if known.deaths > 0 && found.attempt >= ATTEMPTS_MAX {
            let live = |held: &Held| held.untils_ms.iter().all(|until_ms| *until_ms > steady_ms);
            let mut company = self.company.iter();
            let beside = company.any(|(_, held)| held.worker == worker && live(held));
            assert!(
                leases.len() <= 1 && !beside,
                "P5: {} had died before, and was not claimed alone",
                found.id
            );
        }
        Held {
            worker,
            token: lease.map(|lease| lease.token),
            untils_ms: vec![steady_ms + LEASE_MS],
        }
    }

    fn renewed(&self, known: &Known, found: &Task) -> Held {
        let mut held = known.held.clone().unwrap();
        let mut progress_max = known.task.progress;
        for cause in &self.causes {
            match cause {
                Cause::Renewed {
                    lease,
                    progress,
                    until_ms,
                    told,
                    ..
                } if known.is_held_by(lease) => {
                    progress_max = progress_max.max(*progress);
                    if *told {
                        held.untils_ms.clear();
                    }
                    held.untils_ms.push(*until_ms);
                }
                // Without room the leases of the dead stand until they end by themselves.
                Cause::Reopened { full: true } => held.untils_ms.push(0),
                Cause::Reopened { full: false } => {
                    assert!(
                        known.task.attempt >= ATTEMPTS_MAX
                            && (self.was_alone(found.id, held.worker)
                                || held.untils_ms.contains(&0)),
                        "P5: a task that had company, or attempts, was not given back: {known:?}"
                    );
                    held.untils_ms = vec![0];
                }
                _ => {}
            }
        }
        assert_eq!(
            found.attempt, known.task.attempt,
            "P3: {} was claimed while it ran",
            found.id
        );
        assert!(
            found.progress <= progress_max,
            "P3: a stale lease has reported progress: {known:?}"
        );
        held
    }

    /// Asserts a right to it, and says whether it was a death of the worker.
    fn may_go_back(&self, known: &Known, found: &Task) -> bool {
        let attempt = known.task.attempt;
        let worker = known.held.as_ref().unwrap().worker;
        let is_forgiven = found.attempt == attempt - 1;
        // The last attempt is forgiven to one that had company.
        let of_own = match attempt < ATTEMPTS_MAX {
            true => found.attempt == attempt,
            false => is_forgiven && !self.was_alone(found.id, worker),
        };
        // Each is forgiven to one whose job is at another server.
        let after_death = match self.has_ticket(known) {
            Some(true) => is_forgiven,
            Some(false) => of_own,
            None => is_forgiven || of_own,
        };
        let mut died = false;
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Released {
                lease,
                attempt: this,
                ..
            } => {
                let forgiven = u32::from(*this != ReleasedAttempt::Counts);
                known.is_held_by(lease) && found.attempt == attempt - forgiven
            }
            Cause::Swept { .. } => {
                died = self.may_be_over(known, cause) && after_death;
                died
            }
            Cause::Reopened { .. } => {
                died = after_death;
                died
            }
            _ => false,
        });
        assert!(explained, "P10: a live lease was taken: {known:?}");
        died
    }

    fn may_complete(&self, known: &Known, found: &Task) {
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Finished {
                lease,
                outcome: Ok(artifact),
                ..
            } => {
                known.is_held_by(lease)
                    && found.state == TaskState::Completed(Box::new(artifact.clone()))
            }
            _ => false,
        });
        assert!(
            explained,
            "P2: completed by another than its lease: {known:?}: {found:?}"
        );
    }

    fn may_fail(&self, known: &Known, found: &Task) {
        let TaskState::Failed(failed) = &found.state else {
            return;
        };
        let lost = failed.code == FailureCode::WorkerLost.as_str();
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Cancelled { task, failure } => *task == found.id && failed == failure,
            Cause::FetchFailed { task, failure } => {
                let waited = known.task.state.phase() == TaskPhase::Waiting;
                *task == found.id && waited && failed == failure
            }
            Cause::Finished {
                lease,
                outcome: Err(failure),
                ..
            } => known.is_held_by(lease) && failed == failure,
            Cause::Swept { .. } => {
                let last = known.task.attempt >= ATTEMPTS_MAX;
                lost && last && self.may_be_over(known, cause) && self.may_be_lost(known)
            }
            _ => false,
        });
        assert!(explained, "P2: failed for no reason: {known:?}: {found:?}");
    }

    /// Whether its worker ran nothing else, or the store found so when it was opened.
    fn may_be_lost(&self, known: &Known) -> bool {
        let held = known.held.as_ref();
        held.is_some_and(|held| {
            self.may_have_been_alone(known.task.id, held.worker) || held.untils_ms.contains(&0)
        })
    }

    fn may_expire(&self, known: &Known, found: &Task) {
        let end_ms = known.task.expires_at_ms;
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Swept { request, .. } => {
                // Without a present that is trusted nothing expires.
                request.due_ms.is_some()
                    && end_ms.is_some_and(|end| Some(end) <= request.due_ms)
                    && found.expires_at_ms == request.due_ms
            }
            _ => false,
        });
        assert!(
            explained,
            "P4: expired before its time: {known:?}: {found:?}"
        );
    }

    /// Whether an ended task may be kept until `end_ms` now.
    fn may_be_moved(&self, before: &Task, end_ms: u64) -> bool {
        let (Some(ended_ms), Some(was_ms)) = (before.finished_at_ms, before.expires_at_ms) else {
            return false;
        };
        self.causes.iter().any(|cause| match cause {
            Cause::Postponed(request) => {
                let own = (request.from_ms..request.before_ms).contains(&ended_ms);
                let moved = match request.by {
                    PostponedExpiry::By(by_ms) => {
                        was_ms.max(ended_ms + request.retention_ms + by_ms)
                    }
                    PostponedExpiry::From(from_ms) => from_ms + (was_ms - ended_ms),
                };
                own && end_ms == moved && before.state != TaskState::Expired
            }
            _ => false,
        })
    }

    /// Whether a sweep may have found the task's lease over: not while leases are spared, and not where its worker
    /// was well since before it was renewed last.
    fn may_be_over(&self, known: &Known, sweep: &Cause) -> bool {
        let Cause::Swept {
            request,
            steady_ms,
            well_since_ms,
            ..
        } = sweep
        else {
            return false;
        };
        let held = known.held.as_ref().unwrap();
        let is_over = held.untils_ms.iter().any(|until_ms| until_ms <= steady_ms);
        let renewed_ms = held
            .untils_ms
            .iter()
            .min()
            .map(|until_ms| until_ms.saturating_sub(LEASE_MS));
        let well_since_ms = well_since_ms[held.worker].unwrap_or(u64::MAX);
        let was_well = renewed_ms.is_some_and(|renewed_ms| well_since_ms < renewed_ms);
        assert!(
            !is_over || !was_well,
            "P5: the lease of a worker that is well was not renewed: {known:?}"
        );
        is_over && !request.spares_leases
    }
}

fn tombstone_end(task: &Task) -> u64 {
    task.expires_at_ms
        .unwrap_or(u64::MAX)
        .saturating_add(TOMBSTONE_MS)
}

fn assert_progress(before: &Task, found: &Task) {
    assert!(
        found.progress >= before.progress,
        "P2: progress fell from {} to {} on {}",
        before.progress,
        found.progress,
        before.id
    );
    let whole = matches!(
        found.state.phase(),
        TaskPhase::Completed | TaskPhase::Expired
    );
    assert!(
        found.progress < 100 || whole,
        "P2: 100 is for completed tasks: {found:?}"
    );
}
