//! Every event in every state: whether it is allowed, the task afterwards, and the effects. First a task
//! in each of its states, and short names for events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::FailureCode;
use crate::spec::{FrameSize, SPEC_VERSION, VideoInputs, VideoLength, VideoSpec};
use crate::task::{Artifact, Priority, StoredFile, Task, TaskPhase, TaskState};
use crate::{Amount, CostReservation, Currency, Money, TaskCost};
use crate::{Failure, Size, TaskId};

const NOW: u64 = 1_000_000;
const KEPT_MS: u64 = 500;
const TOKEN: u64 = 7;
const FETCH: u64 = 3;

fn task(images: usize) -> Task {
    let inputs = match images {
        0 => VideoInputs::Text,
        _ => VideoInputs::References {
            images: vec!["https://example.org/i".to_owned(); images],
            audios: Vec::new(),
        },
    };
    Task {
        id: TaskId::from_parts(NOW, [1; 10]),
        project: "one".to_owned(),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: "model".to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: Some("rain".to_owned()),
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(64, 64)),
            seed: 1,
            generate_audio: true,
            inputs,
            draft: false,
            final_of: None,
            edit: None,
        },
        metadata: BTreeMap::new(),
        priority: Priority::Normal,
        state: TaskState::Waiting,
        progress: 0,
        created_at_ms: NOW,
        started_at_ms: None,
        finished_at_ms: None,
        expires_at_ms: None,
        attempt: 0,
        engine: None,
        warnings: Vec::new(),
        trace: None,
        cost: None,
    }
}

fn artifact() -> Artifact {
    let file = |name: &str| StoredFile {
        key: format!("made/{name}"),
        bytes: 10,
        sha256: String::new(),
    };
    Artifact {
        video: file("video"),
        thumbnail: file("thumbnail"),
        spritesheet: file("sheet"),
        first_frame: Some(file("first")),
        last_frame: Some(file("last")),
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 64,
        height: 64,
        has_audio: true,
    }
}

fn failure() -> Failure {
    FailureCode::GenerationFailed.into()
}

fn waiting(images: usize) -> TaskRecord {
    TaskRecord::accepted(1, task(images))
}

fn held(token: u64) -> StoredLease {
    StoredLease {
        token,
        until_ms: NOW + 30,
        ends_ms: 30,
        worker: "worker".to_owned(),
    }
}

fn claim(token: u64) -> TaskEvent {
    TaskEvent::Claimed {
        held: held(token),
        now_ms: NOW,
    }
}

fn finish(token: u64, outcome: RunOutcome) -> TaskEvent {
    TaskEvent::Finished {
        token,
        outcome: Box::new(outcome),
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

fn cancel() -> TaskEvent {
    TaskEvent::Cancelled {
        failure: FailureCode::Cancelled.into(),
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

fn deleted() -> TaskEvent {
    TaskEvent::Deleted { now_ms: NOW }
}

fn fetch_ended(token: u64, outcome: FetchOutcome) -> TaskEvent {
    TaskEvent::FetchEnded { token, outcome }
}

fn fetch_failed(token: u64) -> TaskEvent {
    fetch_ended(
        token,
        FetchOutcome::Failed {
            failure: failure(),
            now_ms: NOW,
            retention_ms: KEPT_MS,
        },
    )
}

/// Applies the events, each of which must be allowed.
fn after(record: TaskRecord, events: impl IntoIterator<Item = TaskEvent>) -> TaskRecord {
    events.into_iter().fold(record, |record, event| {
        let shown = format!("{event:?}");
        let transition = record.apply(event);
        let transition = transition.unwrap_or_else(|refused| panic!("{shown}: {refused}"));
        transition.after.expect("it is there")
    })
}

fn running() -> TaskRecord {
    after(waiting(0), [claim(TOKEN)])
}

/// A named record in each state.
fn records() -> Vec<(&'static str, TaskRecord)> {
    let begun = TaskEvent::FetchBegun {
        token: FETCH,
        until_ms: 30,
    };
    let back = fetch_ended(FETCH, FetchOutcome::Back { not_before_ms: 9 });
    vec![
        ("ready", waiting(0)),
        ("wanted", waiting(2)),
        ("fetching", after(waiting(2), [begun.clone()])),
        ("paused", after(waiting(2), [begun, back])),
        ("running", running()),
        (
            "again",
            after(running(), [released(ReleasedAttempt::Counts)]),
        ),
        (
            "completed",
            after(running(), [finish(TOKEN, Ok(artifact()))]),
        ),
        ("failed", after(running(), [finish(TOKEN, Err(failure()))])),
        ("cancelled", after(running(), [cancel()])),
        (
            "expired",
            after(
                running(),
                [
                    finish(TOKEN, Ok(artifact())),
                    TaskEvent::Expired { now_ms: NOW },
                ],
            ),
        ),
    ]
}

fn released(attempt: ReleasedAttempt) -> TaskEvent {
    TaskEvent::Released {
        token: TOKEN,
        attempt,
    }
}

fn lost(verdict: DeathVerdict) -> TaskEvent {
    TaskEvent::WorkerLost {
        verdict,
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

fn renewed(token: u64) -> TaskEvent {
    TaskEvent::Renewed {
        token,
        until_ms: NOW + 60,
        ends_ms: 60,
        renewal: LeaseRenewal::default(),
    }
}

/// Each event, with the names of the states that allow it.
fn events() -> Vec<(TaskEvent, Vec<&'static str>)> {
    let unfinished = ["ready", "wanted", "fetching", "paused", "running", "again"];
    let ended = ["completed", "failed", "cancelled"];
    let all = records().iter().map(|(name, _)| *name).collect();
    vec![
        (claim(8), vec!["ready", "again"]),
        (renewed(TOKEN), vec!["running"]),
        (finish(TOKEN, Ok(artifact())), vec!["running"]),
        (finish(TOKEN, Err(failure())), vec!["running"]),
        (released(ReleasedAttempt::Counts), vec!["running"]),
        (released(ReleasedAttempt::Forgiven), vec!["running"]),
        (released(ReleasedAttempt::ReferencesLost), vec!["running"]),
        (lost(DeathVerdict::Again), vec!["running"]),
        (lost(DeathVerdict::Spared), vec!["running"]),
        (lost(DeathVerdict::Lost), vec!["running"]),
        (renewed(TOKEN + 1), vec![]),
        (finish(TOKEN + 1, Ok(artifact())), vec![]),
        (
            TaskEvent::FetchBegun {
                token: 4,
                until_ms: 30,
            },
            vec!["wanted"],
        ),
        (TaskEvent::FetchDue, vec!["fetching", "paused"]),
        (fetch_ended(FETCH, FetchOutcome::AtHand), vec!["fetching"]),
        (fetch_failed(FETCH), vec!["fetching"]),
        (fetch_failed(FETCH + 1), vec![]),
        (TaskEvent::ReferencesStored { bytes: 5 }, unfinished.into()),
        (cancel(), unfinished.into()),
        (
            TaskEvent::WaitedTooLong {
                now_ms: NOW,
                retention_ms: KEPT_MS,
            },
            vec!["ready", "wanted", "fetching", "paused"],
        ),
        (TaskEvent::Expired { now_ms: NOW }, ended.into()),
        (TaskEvent::Postponed { expires_at_ms: 9 }, ended.into()),
        (deleted(), all),
    ]
}

#[test]
fn every_event_happens_in_its_states_and_in_no_other() {
    for (name, record) in records() {
        for (event, possible) in events() {
            let shown = format!("{event:?} of a task that is {name}");
            let happened = record.apply(event);
            assert_eq!(happened.is_ok(), possible.contains(&name), "{shown}");
        }
    }
}

#[test]
fn a_refusal_says_how_a_lease_was_lost() {
    let refused = |name: &str, event: TaskEvent| {
        let (_, record) = records()
            .into_iter()
            .find(|(other, _)| *other == name)
            .unwrap();
        record.apply(event).map(|_| ()).unwrap_err()
    };
    let (withdrawn, superseded) = (
        EventRefusal::LeaseLost(LeaseLost::Withdrawn),
        EventRefusal::LeaseLost(LeaseLost::Superseded),
    );
    assert_eq!(refused("cancelled", renewed(TOKEN)), withdrawn);
    assert_eq!(refused("completed", renewed(TOKEN)), superseded);
    assert_eq!(refused("again", renewed(TOKEN)), superseded);
    assert_eq!(refused("running", renewed(TOKEN + 1)), superseded);
    assert_eq!(refused("failed", fetch_failed(FETCH)), withdrawn);
    assert_eq!(refused("running", fetch_failed(FETCH)), superseded);
    assert_eq!(refused("completed", cancel()), EventRefusal::Ended);
    assert_eq!(refused("wanted", claim(8)), EventRefusal::Impossible);
    let gone = TaskRecord::check_lease(
        None,
        &Lease {
            task: task(0).id,
            token: TOKEN,
        },
    );
    assert_eq!(gone, Err(LeaseLost::Withdrawn));
}

fn effects(record: &TaskRecord, event: TaskEvent) -> TaskEffects {
    record.apply(event).unwrap().effects
}

fn keys(effects: &TaskEffects) -> BTreeSet<&str> {
    effects.garbage.iter().map(String::as_str).collect()
}

#[test]
fn files_become_garbage_when_nobody_needs_them_any_more() {
    let fetched = fetch_ended(FETCH, FetchOutcome::AtHand);
    let begun = TaskEvent::FetchBegun {
        token: FETCH,
        until_ms: 30,
    };
    let run = after(waiting(2), [begun, fetched, claim(TOKEN)]);
    let of_run = run.running_lease().unwrap().file_keys();
    let of_run: BTreeSet<&str> = of_run.iter().map(String::as_str).collect();
    let references = reference_keys(&run.task);
    let references: BTreeSet<&str> = references.iter().map(String::as_str).collect();
    let result: BTreeSet<&str> = [
        "made/video",
        "made/thumbnail",
        "made/sheet",
        "made/first",
        "made/last",
    ]
    .into();
    let both = |one: &BTreeSet<&'static str>| one.clone();
    assert_eq!(keys(&effects(&run, renewed(TOKEN))), BTreeSet::new());
    assert_eq!(
        keys(&effects(&run, released(ReleasedAttempt::Forgiven))),
        of_run
    );
    let failed = effects(&run, finish(TOKEN, Err(failure())));
    assert_eq!(keys(&failed), &of_run | &references);
    assert_eq!(keys(&effects(&run, cancel())), &of_run | &references);
    assert_eq!(keys(&effects(&run, deleted())), &of_run | &references);
    // The result stays; its references are dropped, except those of a draft, whose final may need
    // them.
    let completed = effects(&run, finish(TOKEN, Ok(artifact())));
    assert_eq!(keys(&completed), references);
    let mut draft = run.clone();
    Arc::make_mut(&mut draft.task).spec.draft = true;
    let made = draft.apply(finish(TOKEN, Ok(artifact()))).unwrap();
    assert_eq!(keys(&made.effects), BTreeSet::new());
    let made = made.after.unwrap();
    let expired = effects(&made, TaskEvent::Expired { now_ms: NOW });
    assert_eq!(keys(&expired), &both(&result) | &references);
    assert!(expired.erases && made.apply(cancel()).is_err());
}

#[test]
fn an_upstream_job_is_called_off_unless_there_is_a_result_or_another_attempt() {
    let ticket = TaskEvent::Renewed {
        token: TOKEN,
        until_ms: 0,
        ends_ms: 0,
        renewal: LeaseRenewal {
            ticket: Some("job 1".to_owned()),
            ..LeaseRenewal::default()
        },
    };
    let run = after(running(), [ticket]);
    let called_off = |event| effects(&run, event).call_off.map(|one| one.ticket);
    for event in [
        cancel(),
        finish(TOKEN, Err(failure())),
        lost(DeathVerdict::Lost),
        deleted(),
    ] {
        assert_eq!(called_off(event).as_deref(), Some("job 1"));
    }
    for event in [
        finish(TOKEN, Ok(artifact())),
        released(ReleasedAttempt::Counts),
        lost(DeathVerdict::Again),
        renewed(TOKEN),
    ] {
        assert_eq!(called_off(event), None);
    }
    let again = after(run, [released(ReleasedAttempt::Counts), claim(8)]);
    assert_eq!(
        again.ticket.as_deref(),
        Some("job 1"),
        "the next attempt follows it"
    );
}

#[test]
fn a_task_is_counted_when_it_ends_and_never_again() {
    let ending =
        |record: &TaskRecord, event| effects(record, event).ending.map(|ending| ending.tally);
    let worked = |engine_ms: u64| TaskTally {
        engine_ms,
        ..TaskTally::default()
    };
    let mut run = running();
    Arc::make_mut(&mut run.task).started_at_ms = Some(NOW - 250);
    let completed = TaskTally {
        completed: 1,
        video_ms: 5_000,
        ..worked(250)
    };
    let failed = TaskTally {
        failed: 1,
        ..worked(250)
    };
    let cancelled = TaskTally {
        cancelled: 1,
        ..worked(250)
    };
    let done = finish(TOKEN, Ok(artifact()));
    assert_eq!(ending(&run, done.clone()), Some(completed));
    let broken = finish(TOKEN, Err(failure()));
    assert_eq!(ending(&run, broken), Some(failed));
    assert_eq!(ending(&run, lost(DeathVerdict::Lost)), Some(failed));
    assert_eq!(ending(&run, cancel()), Some(cancelled));
    // No engine has worked for it.
    let unseen = TaskTally {
        engine_ms: 0,
        ..cancelled
    };
    assert_eq!(ending(&waiting(0), cancel()), Some(unseen));
    assert_eq!(ending(&run, deleted()), Some(cancelled));
    for event in [
        released(ReleasedAttempt::Counts),
        lost(DeathVerdict::Again),
        renewed(TOKEN),
    ] {
        assert_eq!(ending(&run, event), None);
    }
    let ended = after(run, [done]);
    let expired = TaskEvent::Expired { now_ms: NOW };
    for event in [
        TaskEvent::Postponed { expires_at_ms: 9 },
        expired,
        deleted(),
    ] {
        assert_eq!(ending(&ended, event), None);
    }
    let day = effects(&running(), cancel()).ending.map(|one| one.day);
    assert_eq!(day, Some(NOW / 86_400_000));
}

/// A run that has reserved 1.0 and costs 0.18 for each second.
fn priced_run() -> TaskRecord {
    let mut run = running();
    Arc::make_mut(&mut run.task).cost = Some(TaskCost {
        amount: Amount::from_micros(1_000_000),
        currency: Currency::USD,
        is_estimated: true,
        fixed: Amount::ZERO,
        per_second: Amount::from_micros(180_000),
        charged: None,
        charged_before: Amount::ZERO,
        reserved: Some(CostReservation {
            key: "key_a".to_owned(),
            day: 7,
        }),
    });
    run
}

fn renewed_with(renewal: LeaseRenewal) -> TaskEvent {
    TaskEvent::Renewed {
        token: TOKEN,
        until_ms: NOW,
        ends_ms: 9,
        renewal,
    }
}

/// The day and the correction of a reservation.
fn spending_change(record: &TaskRecord, event: TaskEvent) -> Option<(u64, i64)> {
    let change = effects(record, event).spending;
    change.map(|change| (change.reserved.day, change.micros))
}

#[test]
fn the_end_of_a_task_corrects_its_reservation_once() {
    let (run, change) = (priced_run(), spending_change);
    let charged = renewed_with(LeaseRenewal {
        charged: Some(Money {
            amount: Amount::from_micros(1_500_000),
            currency: Currency::USD,
        }),
        ..LeaseRenewal::default()
    });
    let charged_run = after(run.clone(), [charged.clone()]);
    let done = || finish(TOKEN, Ok(artifact()));
    // 5 s were made, for 0.9.
    assert_eq!(change(&run, done()), Some((7, -100_000)));
    assert_eq!(change(&charged_run, done()), Some((7, 500_000)));
    for (event, free, charged) in [
        (finish(TOKEN, Err(failure())), -1_000_000, 500_000),
        (cancel(), -1_000_000, 500_000),
        (deleted(), -1_000_000, 500_000),
        (lost(DeathVerdict::Lost), -1_000_000, 500_000),
    ] {
        assert_eq!(change(&run, event.clone()), Some((7, free)), "{event:?}");
        assert_eq!(
            change(&charged_run, event.clone()),
            Some((7, charged)),
            "{event:?}"
        );
    }
    for event in [
        lost(DeathVerdict::Again),
        released(ReleasedAttempt::Counts),
        charged,
    ] {
        assert_eq!(change(&run, event), None);
    }
    let ended = after(run, [done()]);
    let cost = ended.task.cost.clone().unwrap();
    assert_eq!((cost.amount.micros(), cost.is_estimated), (900_000, false));
    for event in [TaskEvent::Expired { now_ms: NOW }, deleted()] {
        assert_eq!(change(&ended, event), None);
    }
}

#[test]
fn whoever_withdraws_a_task_pays_for_its_job_at_a_server() {
    // At a server, whoever withdraws a task pays for it; nobody else does.
    let ticket = LeaseRenewal {
        ticket: Some("job 1".to_owned()),
        ..LeaseRenewal::default()
    };
    let at_server = after(priced_run(), [renewed_with(ticket)]);
    for (event, corrected, micros) in [
        (cancel(), None, 1_000_000),
        (deleted(), None, 1_000_000),
        (finish(TOKEN, Err(failure())), Some(-1_000_000), 0),
        (lost(DeathVerdict::Lost), Some(-1_000_000), 0),
    ] {
        let effects = effects(&at_server, event.clone());
        let change = effects.spending.map(|change| change.micros);
        assert_eq!(change, corrected, "{event:?}");
        let counted = effects.ending.map(|ending| ending.tally.cost_micros);
        assert_eq!(counted, Some(micros), "{event:?}");
    }
    // Charges of jobs that follow each other add up; those of one job replace each other.
    let job = |ticket: &str, micros| {
        renewed_with(LeaseRenewal {
            ticket: Some(ticket.to_owned()),
            charged: Some(Money {
                amount: Amount::from_micros(micros),
                currency: Currency::USD,
            }),
            ..LeaseRenewal::default()
        })
    };
    let next = after(at_server.clone(), [job("job 1", 1), job("job 2", 200_000)]);
    for (event, micros) in [
        (finish(TOKEN, Ok(artifact())), 1_100_000),
        (cancel(), 1_200_000),
    ] {
        let counted = effects(&next, event).ending;
        assert_eq!(counted.map(|one| one.tally.cost_micros), Some(micros));
    }
    let again = after(next, [job("job 2", 70_000), job("job 2", 50_000)]);
    let counted = effects(&again, deleted()).ending;
    assert_eq!(counted.map(|one| one.tally.cost_micros), Some(250_000));
    let cancelled = after(at_server, [cancel()]);
    let cost = cancelled.task.cost.as_ref().unwrap();
    assert_eq!(
        (cost.amount.micros(), cost.is_estimated),
        (1_000_000, false)
    );
}

#[test]
fn hints_go_to_those_whom_a_change_concerns() {
    let begun = TaskEvent::FetchBegun {
        token: FETCH,
        until_ms: 30,
    };
    let hints = |record: &TaskRecord, event: TaskEvent| {
        let after = record.apply(event).unwrap().after;
        let hints = WakeHints::between(Some(record), after.as_ref());
        (hints.work, hints.withdrawn, hints.ended)
    };
    let new = WakeHints::between(None, Some(&waiting(0)));
    assert_eq!((new.work, new.withdrawn, new.ended), (true, false, false));
    assert_eq!(hints(&waiting(2), begun.clone()), (false, false, false));
    assert_eq!(hints(&waiting(0), claim(1)), (false, false, false));
    assert_eq!(
        hints(&running(), released(ReleasedAttempt::Counts)),
        (true, false, false)
    );
    assert_eq!(hints(&running(), cancel()), (false, true, true));
    assert_eq!(hints(&running(), deleted()), (false, true, true));
    assert_eq!(
        hints(&running(), finish(TOKEN, Ok(artifact()))),
        (false, false, true)
    );
    let fetching = after(waiting(2), [begun]);
    assert_eq!(hints(&fetching, cancel()), (false, true, true));
    assert_eq!(
        hints(&fetching, fetch_ended(FETCH, FetchOutcome::AtHand)),
        (true, false, false)
    );
}

proptest! {
    /// For any events in any order: only steps that `may_become` allows, progress never falls, ends
    /// are final, and the charge equals the sum of all changes.
    #[test]
    fn no_sequence_of_events_breaks_the_rules(
        images in 0_usize..3,
        steps in prop::collection::vec((0_usize..23, 0_u8..=120), 1..60),
    ) {
        let mut record = waiting(images);
        let (mut bytes, mut tasks) = (TaskEffects::between(None, Some(&record)).bytes, 1);
        let mut token = TOKEN;
        for (step, progress) in steps {
            let mut event = events()[step].0.clone();
            match &mut event {
                TaskEvent::Claimed { held, .. } => {
                    token += 10;
                    held.token = token;
                }
                TaskEvent::Renewed { token: of, renewal, .. } => {
                    *of = token;
                    renewal.progress = progress;
                }
                TaskEvent::Finished { token: of, .. } | TaskEvent::Released { token: of, .. } => *of = token,
                _ => {}
            }
            let Ok(transition) = record.apply(event) else { continue };
            bytes += transition.effects.bytes;
            tasks += transition.effects.tasks;
            let Some(next) = transition.after else { break };
            let (was, is) = (record.task.state.phase(), next.task.state.phase());
            prop_assert!(was == is || was.may_become(is), "{:?} to {:?}", was, is);
            prop_assert!(next.task.progress >= record.task.progress);
            prop_assert_eq!(next.task.progress == 100, was_completed(&next));
            prop_assert_eq!(next.is_running(), next.running_lease().is_some());
            prop_assert!(!next.is_terminal() || next.ticket.is_none());
            prop_assert_eq!(u64::try_from(bytes).unwrap(), next.charged_bytes);
            prop_assert_eq!(tasks, i64::from(is != TaskPhase::Expired));
            record = next;
        }
    }
}

/// Whether the task has or had a result.
fn was_completed(record: &TaskRecord) -> bool {
    match record.task.state {
        TaskState::Completed(_) => true,
        TaskState::Expired => record.task.progress == 100,
        _ => false,
    }
}
