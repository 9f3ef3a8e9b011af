//! Tasks returned by their workers, and the data that an attempt leaves for the next one.

use std::sync::Arc;

use kinora_contract::lifecycle::CallOff;
use kinora_contract::{FailureCode, Status, TaskState, Warning, WarningCode};

use super::Harness;
use super::bench::{Bench, any_call_off, call_off, is_lost};
use super::fixtures::{LEASE_MS, MODELS, NOW, RETENTION_MS, id, renewal, sweep_at, task};
use crate::{Chore, LeaseRenewal, NewTask, ReleasedAttempt, SweepRequest};

fn with_ticket(ticket: &str) -> LeaseRenewal {
    LeaseRenewal {
        ticket: Some(ticket.to_owned()),
        ..renewal(1)
    }
}

/// The ticket survives releases, lost leases and restarts; a stale attempt leaves none.
pub async fn a_ticket_is_given_to_later_attempts_until_the_end(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let first = stores.claim_one().await;
    assert_eq!(first.ticket, None);
    for ticket in ["ticket 1", "ticket 2"] {
        let renewed = stores.renew(&first.lease, with_ticket(ticket)).await;
        renewed.unwrap();
    }
    stores.renew(&first.lease, renewal(2)).await.unwrap();
    let release = stores.work.release(&first.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let second = stores.claim_one().await;
    assert_eq!(second.ticket.as_deref(), Some("ticket 2"));
    stores.sweep(NOW + 3 * LEASE_MS).await;
    let stale = stores.renew(&second.lease, with_ticket("ticket 3")).await;
    assert!(is_lost(&stale), "{stale:?}");
    drop(stores);
    let stores = harness.open("store").await;
    let third = stores.claim_one().await;
    assert_eq!(third.ticket.as_deref(), Some("ticket 2"));
    stores.complete(&third).await.unwrap();
    stores.submit(2, "one").await;
    assert_eq!(stores.claim_one().await.ticket, None, "another task");
}

/// The job of a task that ended in any other way stays listed until its cancel is reported; a task
/// with a result leaves none.
pub async fn the_job_of_a_task_without_a_result_is_called_off(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut claims = Vec::new();
    for number in 1..=6 {
        stores.submit(number, "one").await;
        let claim = stores.claim_one().await;
        let renewal = match number {
            6 => renewal(1),
            _ => with_ticket(&format!("ticket {number}")),
        };
        stores.renew(&claim.lease, renewal).await.unwrap();
        claims.push(claim);
    }
    stores.complete(&claims[0]).await.unwrap();
    stores.sweep(NOW + 1).await;
    assert_eq!(stores.call_offs_due().await, []);

    let failed = Err(FailureCode::GenerationFailed.into());
    let finish = stores.work.finish(&claims[1].lease, failed, RETENTION_MS);
    finish.await.unwrap();
    // Waiting again, with its ticket.
    let release = stores
        .work
        .release(&claims[2].lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    for number in [3, 6] {
        stores.cancel("one", number, RETENTION_MS).await;
    }
    stores.tasks.delete("one", id(4)).await.unwrap();
    let wanted = |numbers: &[u64]| -> Vec<CallOff> {
        let one = |number: &u64| CallOff {
            task: id(*number),
            model: MODELS[0].to_owned(),
            ticket: format!("ticket {number}"),
        };
        numbers.iter().map(one).collect()
    };
    assert_eq!(stores.call_offs_due().await, wanted(&[2, 3, 4]));
    let lost = SweepRequest {
        attempts_max: 1,
        ..sweep_at(NOW + 3 * LEASE_MS)
    };
    // Not with its worker, since its job goes on.
    assert_eq!(stores.sweep_by(lost).await.requeued, 1);
    assert_eq!(stores.call_offs_due().await, wanted(&[2, 3, 4]));
    stores.cancel("one", 5, RETENTION_MS).await;
    assert_eq!(stores.call_offs_due().await, wanted(&[2, 3, 4, 5]));
    drop(stores);

    let stores = harness.open_at("store", NOW + 3 * LEASE_MS).await;
    let chores = stores.take_chores(any_call_off()).await;
    let settled = |chore: &Chore| [id(3), id(5)].contains(&call_off(chore).task);
    let (done, left): (Vec<_>, Vec<_>) = chores.into_iter().partition(settled);
    let done = done.into_iter().map(Chore::done);
    let left = left.into_iter().map(|chore| chore.again(0));
    let all = done.chain(left).collect();
    stores.chores.complete_chores(all).await.unwrap();
    assert_eq!(stores.call_offs_due().await, wanted(&[2, 4]));
}

/// Each run shows its own preview; an ended one shows none.
pub async fn a_preview_is_shown_while_its_lease_lasts(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let shown = async || stores.tasks.preview(id(1)).await.unwrap();
    let put = async |lease, preview: &[u8]| {
        let preview: Arc<[u8]> = preview.into();
        stores.work.put_preview(lease, preview).await.unwrap();
    };
    assert_eq!(shown().await, None);
    let first = stores.claim_one().await;
    for preview in [&b"one"[..], b"two"] {
        put(&first.lease, preview).await;
        assert_eq!(shown().await.as_deref(), Some(preview));
    }
    stores.renew(&first.lease, renewal(2)).await.unwrap();
    assert_eq!(shown().await.as_deref(), Some(&b"two"[..]), "the last one");
    assert_eq!(stores.tasks.preview(id(2)).await.unwrap(), None, "of none");
    let release = stores.work.release(&first.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    assert_eq!(shown().await, None, "given back");

    let second = stores.claim_one().await;
    assert_eq!(shown().await, None, "another run");
    put(&first.lease, b"late").await;
    assert_eq!(shown().await, None, "of a lost lease");
    put(&second.lease, b"three").await;
    put(&first.lease, b"late").await;
    assert_eq!(shown().await.as_deref(), Some(&b"three"[..]), "its own");
    stores.complete(&second).await.unwrap();
    assert_eq!(shown().await, None, "completed");
    put(&second.lease, b"after the end").await;
    assert_eq!(shown().await, None, "completed");
}

/// An orderly stop costs a task nothing.
pub async fn a_release_gives_back_the_old_place_and_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    let release = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let task = stores.task("one", 1).await;
    assert_eq!((task.state.clone(), task.attempt), (TaskState::Waiting, 0));
    assert_eq!(
        task.status(),
        Some(Status::InProgress),
        "its work had begun"
    );
    assert_eq!(stores.position(1).await, None);
    let again = stores.claim_one().await.task;
    assert_eq!((again.id, again.attempt), (id(1), 1));
}

/// A failure costs an attempt, but not the place.
pub async fn a_release_may_count_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    for attempt in 1..=2 {
        let claim = stores.claim_one().await;
        assert_eq!((claim.task.id, claim.task.attempt), (id(1), attempt));
        let given_back = stores
            .work
            .release(&claim.lease, ReleasedAttempt::Counts)
            .await;
        given_back.unwrap();
        assert_eq!(stores.task("one", 1).await.attempt, attempt);
    }
}

/// They survive renewals without warnings, the end of the task and a restart; those of a later
/// attempt replace them.
pub async fn warnings_stay_with_their_task(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let warning = |message: &str| Warning::new(WarningCode::SeedIgnored, message);
    let warning_of = |warnings: Vec<Warning>| LeaseRenewal {
        warnings: Some(warnings),
        ..renewal(1)
    };
    let first = stores.claim_one().await;
    assert_eq!(first.task.warnings, []);
    let two = vec![warning("first"), warning("a \"quoted\" \u{1f30a}")];
    let renewed = stores.renew(&first.lease, warning_of(two.clone())).await;
    renewed.unwrap();
    stores.renew(&first.lease, renewal(2)).await.unwrap();
    assert_eq!(stores.task("one", 1).await.warnings, two);
    drop(stores);
    let stores = harness.open("store").await;
    stores.sweep(NOW + 3 * LEASE_MS).await;
    let second = stores.claim_one().await;
    assert_eq!(second.task.warnings, two);
    let last = vec![warning("last")];
    let renewed = stores.renew(&second.lease, warning_of(last.clone())).await;
    renewed.unwrap();
    stores.complete(&second).await.unwrap();
    assert_eq!(stores.task("one", 1).await.warnings, last);
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.task("one", 1).await.warnings, last);
}

/// The trace survives lost leases, the end of the task and restarts.
pub async fn a_trace_stays_with_its_task(harness: &impl Harness) {
    let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = Some(text.parse().unwrap());
    let stores = harness.open("store").await;
    let traced = NewTask {
        trace,
        ..task(1, "one")
    };
    stores.submit_all([traced, task(2, "two")]).await;
    assert_eq!(stores.task("one", 1).await.trace, trace);
    assert_eq!(stores.claim(2).await.len(), 2);
    drop(stores);
    let stores = harness.open("store").await;
    stores.sweep(NOW + 3 * LEASE_MS).await;
    for claim in stores.claim(2).await {
        let expected = trace.filter(|_| claim.task.project == "one");
        assert_eq!(claim.task.trace, expected);
        stores.complete(&claim).await.unwrap();
    }
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.task("one", 1).await.trace, trace);
    assert_eq!(stores.task("two", 2).await.trace, None);
}
