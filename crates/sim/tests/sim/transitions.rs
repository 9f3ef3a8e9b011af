//! How a task may have come from how it was known to how it is found: every change needs a cause
//! among those of the operation, and the cause needs a right to it.

use std::collections::BTreeMap;

use kinora_contract::{FailureCode, Inputs, Phase, State, Task, VideoSpec};
use kinora_store::Attempt;

use crate::book::{Book, Cause, Held, Known};
use crate::world::{ATTEMPTS_MAX, LEASE_MS, TOMBSTONE_MS};

/// What must still be there of an accepted request: an ended task keeps no inputs, unless a final may be
/// made of it, and an expired one no texts.
fn what_stays(before: &Task, found: &Task) -> (VideoSpec, BTreeMap<String, String>) {
    let (mut spec, mut metadata) = (before.spec.clone(), before.metadata.clone());
    let serves_finals = spec.draft && matches!(found.state, State::Completed(_));
    if found.state.phase().is_terminal() && !serves_finals {
        spec.inputs = Inputs::Text;
        spec.negative_prompt = None;
    }
    if matches!(found.state, State::Expired) {
        spec.prompt.clear();
        metadata.clear();
    }
    (spec, metadata)
}

impl Book {
    pub(crate) fn may_vanish(&self, known: &Known) {
        let task = &known.task;
        // A late sweep expires and forgets at once.
        let ended = task.state.phase().is_terminal();
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Deleted { task: deleted } => *deleted == task.id,
            Cause::Swept { now_ms, .. } => ended && tombstone_end(task) <= *now_ms,
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
        let (spec, metadata) = what_stays(before, found);
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
        assert!(
            found.progress >= before.progress,
            "P2: progress fell from {} to {} on {}",
            before.progress,
            found.progress,
            before.id
        );
        let whole = matches!(found.state.phase(), Phase::Completed | Phase::Expired);
        assert!(
            found.progress < 100 || whole,
            "P2: 100 is for completed tasks: {found:?}"
        );
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
        assert_eq!(
            found.attempt,
            before.attempt + 1,
            "P5: an attempt is not counted"
        );
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
                Cause::Renewed {
                    lease,
                    progress,
                    until_ms,
                    told,
                } if known.is_held_by(lease) => {
                    progress_max = progress_max.max(*progress);
                    if *told {
                        held.untils_ms.clear();
                    }
                    held.untils_ms.push(*until_ms);
                }
                // Without room the leases of the dead stand until they end by themselves.
                Cause::Reopened { full: true } => held.untils_ms.push(0),
                Cause::Reopened { full: false } => held.untils_ms = vec![0],
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

    fn may_go_back(&self, known: &Known, found: &Task) {
        let attempt = known.task.attempt;
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Released {
                lease,
                attempt: this,
                ..
            } => {
                let forgiven = u32::from(*this != Attempt::Counts);
                known.is_held_by(lease) && found.attempt == attempt - forgiven
            }
            Cause::Swept { now_ms, .. } => {
                self.may_be_over(known, *now_ms) && attempt < ATTEMPTS_MAX
            }
            Cause::Reopened { .. } => attempt < ATTEMPTS_MAX,
            _ => false,
        });
        assert!(explained, "P10: a live lease was taken: {known:?}");
    }

    fn may_complete(&self, known: &Known, found: &Task) {
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Finished {
                lease,
                outcome: Ok(artifact),
                ..
            } => {
                known.is_held_by(lease)
                    && found.state == State::Completed(Box::new(artifact.clone()))
            }
            _ => false,
        });
        assert!(
            explained,
            "P2: completed by another than its lease: {known:?}: {found:?}"
        );
    }

    fn may_fail(&self, known: &Known, found: &Task) {
        let State::Failed(failed) = &found.state else {
            return;
        };
        let lost = failed.code == FailureCode::WorkerLost.as_str();
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Cancelled { task, failure } => *task == found.id && failed == failure,
            Cause::FetchFailed { task, failure } => {
                let waited = known.task.state.phase() == Phase::Waiting;
                *task == found.id && waited && failed == failure
            }
            Cause::Finished {
                lease,
                outcome: Err(failure),
                ..
            } => known.is_held_by(lease) && failed == failure,
            Cause::Swept { now_ms, .. } => {
                lost && self.may_be_over(known, *now_ms) && known.task.attempt >= ATTEMPTS_MAX
            }
            _ => false,
        });
        assert!(explained, "P2: failed for no reason: {known:?}: {found:?}");
    }

    fn may_expire(&self, known: &Known) {
        let explained = self.causes.iter().any(|cause| match cause {
            Cause::Swept { now_ms, .. } => {
                known.task.expires_at_ms.is_some_and(|end| end <= *now_ms)
            }
            _ => false,
        });
        assert!(explained, "P4: expired before its time: {known:?}");
    }

    fn may_be_over(&self, known: &Known, now_ms: u64) -> bool {
        let held = known.held.as_ref().unwrap();
        held.untils_ms
            .iter()
            .any(|until_ms| is_over(*until_ms, now_ms))
    }
}

/// Whether a lease that ends then is over at `now_ms`: also when it ends so late that the clock
/// by which it was made must have been wrong.
pub(crate) fn is_over(until_ms: u64, now_ms: u64) -> bool {
    until_ms <= now_ms || until_ms > now_ms + 2 * LEASE_MS
}

fn tombstone_end(task: &Task) -> u64 {
    task.expires_at_ms
        .unwrap_or(u64::MAX)
        .saturating_add(TOMBSTONE_MS)
}
