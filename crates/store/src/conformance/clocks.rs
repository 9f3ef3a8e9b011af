//! Wrong clocks: what a step of the wall clock must not end, and the corrections afterwards.

use kinora_contract::TaskPhase;

use super::bench::Bench;
use super::fixtures::{
    EXPIRY, LEASE_MS, NOW, RETENTION_MS, cancelled, claiming, fetching, id, renewal, sweep_at,
    task, with_images,
};
use super::{Harness, Site};
use crate::{
    ClaimRequest, ClaimedTask, ExpiryCursor, FetchRequest, InsertOutcome, ListOrder, PageRequest,
    PostponeRequest, PostponedExpiry, SweepReport, SweepRequest, WaitingFrom,
};

const YEAR_MS: u64 = 365 * 24 * 3_600_000;

/// The lease ends to the millisecond by steady time.
pub async fn a_lease_outlives_any_step_of_the_wall_clock(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    stores.clock.advance(LEASE_MS - 1);
    for wall_ms in [0, NOW - YEAR_MS, NOW + LEASE_MS, NOW + 10 * YEAR_MS] {
        stores.clock.set(wall_ms);
        let swept = stores.sweep(wall_ms).await;
        assert_eq!(swept, SweepReport::default(), "{wall_ms}");
        stores.check(&claim.lease).await.unwrap();
    }
    // A renewal does not extend it either while the wall clock is wrong.
    stores.renew(&claim.lease, renewal(1)).await.unwrap();
    stores.clock.advance(LEASE_MS);
    stores.clock.set(NOW);
    assert_eq!(stores.sweep(NOW).await.requeued, 1);
}

/// A worker gives only a length. Its claim, renewal and fetch count from the store's current time.
pub async fn leases_run_by_the_clock_of_the_store(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let short = ClaimRequest {
        lease_ms: 700,
        ..claiming(1)
    };
    stores.clock.advance(5_000);
    let claims: [ClaimedTask; 1] = stores.work.claim(short).await.unwrap().try_into().unwrap();
    let [claim] = claims;
    // Both ends, each after a step of only the wall clock.
    for lease_ms in [700, 3_000] {
        stores.clock.advance(lease_ms - 1);
        stores.clock.set(NOW + YEAR_MS);
        assert_eq!(stores.sweep(NOW + YEAR_MS).await.requeued, 0);
        stores.clock.set(NOW - YEAR_MS);
        if lease_ms == 700 {
            let renewed = stores.work.renew(&claim.lease, 3_000, renewal(1));
            renewed.await.unwrap();
        }
    }
    stores.clock.advance(1);
    stores.clock.set(NOW - YEAR_MS);
    assert_eq!(stores.sweep(NOW - YEAR_MS).await.requeued, 1);

    stores.submit_all([with_images(2, "one", 1)]).await;
    let fetch = || FetchRequest {
        lease_ms: 700,
        ..fetching(1)
    };
    assert_eq!(stores.work.lease_fetches(fetch()).await.unwrap().len(), 1);
    stores.clock.advance(699);
    stores.clock.set(NOW + YEAR_MS);
    assert!(stores.work.lease_fetches(fetch()).await.unwrap().is_empty());
    stores.clock.advance(1);
    stores.clock.set(0);
    assert_eq!(stores.work.lease_fetches(fetch()).await.unwrap().len(), 1);
}

/// The store reports both of its clocks, and records times by the wall clock.
pub async fn a_store_tells_the_time_by_which_it_judges(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let first = stores.chores.clock().await.unwrap();
    assert_eq!(first.wall_ms, NOW);
    stores.clock.advance(70);
    stores.clock.set(NOW + 9_000);
    let second = stores.chores.clock().await.unwrap();
    assert_eq!(second.wall_ms, NOW + 9_000);
    assert_eq!(second.steady_ms - first.steady_ms, 70);
    assert_eq!(stores.submit(1, "one").await.created_at_ms, NOW + 9_000);
}

/// The second process has lived for a year when the first begins, and then its clock is set: the store judges alike
/// through both.
pub async fn clocks_that_disagree_change_nothing(harness: &impl Harness) {
    let [first, second] = harness.open_apart("store").await;
    let present = async |site: &Site| site.chores.clock().await.unwrap().wall_ms;
    let begun_ms = present(&first).await;
    second.submit(1, "one").await;
    let claim = first.claim_one().await;
    for wall_ms in [NOW + 2 * YEAR_MS, 0] {
        second.clock.advance(10 * LEASE_MS);
        second.clock.set(wall_ms);
        let due = present(&second).await;
        assert!(due.abs_diff(begun_ms) < YEAR_MS / 2, "{due} by {wall_ms}");
        let swept = second.chores.sweep(sweep_at(due)).await.unwrap();
        assert_eq!(swept, SweepReport::default(), "by {wall_ms}");
        for site in [&first, &second] {
            site.check(&claim.lease).await.unwrap();
            site.renew(&claim.lease, renewal(1)).await.unwrap();
        }
    }
    second.complete(&claim).await.unwrap();
    let ended_ms = present(&first).await;
    let task = first.task("one", 1).await;
    let finished_ms = task.finished_at_ms.unwrap();
    let times = [begun_ms, task.created_at_ms, finished_ms, ended_ms];
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(task.expires_at_ms, Some(finished_ms + RETENTION_MS));
}

/// An embedded store ends with its process: steady time starts again, and the holder of the lease
/// is gone. In a store that outlives its processes the lease lasts for its full time, since the
/// holder may be another process.
pub async fn a_lease_of_an_earlier_process_is_over(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    drop(stores);
    let stores = harness.open("store").await;
    if harness.outlives_its_processes() {
        stores.clock.advance(LEASE_MS - 1);
        stores.clock.set(NOW);
        assert_eq!(stores.sweep(NOW).await, SweepReport::default());
        stores.check(&claim.lease).await.unwrap();
        stores.clock.advance(1);
        stores.clock.set(NOW);
    }
    stores.sweep(NOW).await;
    let task = stores.task("one", 1).await;
    assert_eq!(task.state.phase(), TaskPhase::Waiting);
}

/// Results, tombstones and waiting tasks.
pub async fn nothing_ends_by_a_clock_that_is_not_trusted(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    stores.cancel("one", 2, 0).await;
    stores.sweep(NOW).await;
    let doubted = SweepRequest {
        due_ms: None,
        waiting_ms_max: Some(1),
        ..sweep_at(NOW)
    };
    stores.clock.set(NOW + 10 * YEAR_MS);
    assert_eq!(stores.sweep_by(doubted).await, SweepReport::default());
    let mut phases = Vec::new();
    for number in 1..=3 {
        phases.push(stores.task("one", number).await.state.phase());
    }
    assert_eq!(
        phases,
        [TaskPhase::Completed, TaskPhase::Expired, TaskPhase::Waiting]
    );
}

/// A tombstone's lifetime starts at the sweep that created it, even if that sweep was late.
pub async fn a_late_sweep_expires_and_does_not_forget(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    let late = EXPIRY + YEAR_MS;
    for (now_ms, expired, forgotten) in [
        (late, 1, 0),
        (late, 0, 0),
        (late + 9_999, 0, 0),
        (late + 10_000, 0, 1),
    ] {
        let swept = stores.sweep(now_ms).await;
        assert_eq!((swept.expired, swept.forgotten), (expired, forgotten));
    }
    // Also if tombstones are not kept at all.
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    let none = SweepRequest {
        tombstone_ms: 0,
        ..sweep_at(late + 10_000 + RETENTION_MS + YEAR_MS)
    };
    let both = [stores.sweep_by(none).await, stores.sweep_by(none).await];
    let both = both.map(|swept| (swept.expired, swept.forgotten));
    assert_eq!(both, [(1, 0), (0, 1)]);
}

/// A task created before the clock went back starts and ends no earlier, however it ends.
pub async fn times_of_a_task_never_run_backwards(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let ahead = NOW + 7_200_000;
    stores.clock.set(ahead);
    for number in 1..=5 {
        stores.submit(number, "one").await;
    }
    stores.clock.set(NOW);
    let claims = stores.claim(3).await;
    stores.complete(&claims[0]).await.unwrap();
    let failed = stores
        .work
        .finish(&claims[1].lease, Err(cancelled()), RETENTION_MS);
    failed.await.unwrap();
    for number in [3, 4] {
        stores.cancel("one", number, RETENTION_MS).await;
    }
    stores.claim_one().await;
    let last = SweepRequest {
        attempts_max: 1,
        ..sweep_at(NOW)
    };
    stores.clock.advance(LEASE_MS);
    stores.clock.set(NOW);
    assert_eq!(stores.sweep_by(last).await.lost, 1);
    for number in 1..=5 {
        let task = stores.task("one", number).await;
        let started = (number != 4).then_some(ahead);
        assert_eq!(task.started_at_ms, started, "{number}");
        assert_eq!(task.finished_at_ms, Some(ahead), "{number}");
        let kept_ms = match number {
            5 => last.retention_ms,
            _ => RETENTION_MS,
        };
        assert_eq!(task.expires_at_ms, Some(ahead + kept_ms), "{number}");
    }
}

/// Tasks created by the wrong clock wait from the correction on; later ones count from their own
/// time.
pub async fn waiting_counts_from_the_correction_of_the_clock(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, created_ms) in [(1, 0), (2, NOW - 1), (3, NOW), (4, NOW + 500)] {
        stores.clock.set(created_ms);
        assert_eq!(stores.submit(number, "one").await.created_at_ms, created_ms);
    }
    let at = |now_ms| SweepRequest {
        waiting_ms_max: Some(1_000),
        waiting_from: WaitingFrom {
            created_before_ms: NOW,
            from_ms: NOW + 300,
        },
        ..sweep_at(now_ms)
    };
    for (now_ms, waited) in [
        (NOW + 999, 0),
        (NOW + 1_000, 1),
        (NOW + 1_299, 0),
        (NOW + 1_300, 2),
        (NOW + 1_500, 1),
    ] {
        let swept = stores.sweep_by(at(now_ms)).await;
        assert_eq!(swept.waited, waited, "{}", now_ms - NOW);
    }
}

/// Each task that ended under the wrong clock is postponed once, for any batch size, and clients
/// see the new expiry.
pub async fn results_of_a_corrected_clock_are_kept_longer(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..7 {
        // Several end and expire together.
        stores.pass_until(NOW + number / 2);
        stores.submit(number, "one").await;
        stores.cancel("one", number, 100).await;
    }
    let mut below = Some(ExpiryCursor::END);
    let mut calls = 0;
    while let Some(place) = below {
        let postpone = PostponeRequest {
            from_ms: NOW + 1,
            before_ms: NOW + 3,
            by: PostponedExpiry::By(5_000),
            retention_ms: 100,
            below: place,
            batch: 3,
        };
        below = stores.chores.postpone(postpone).await.unwrap();
        calls += 1;
        assert!(calls <= 3, "it comes to no end");
    }
    let moved = [0, 0, 1, 1, 1, 1, 0].map(|moved| moved * 5_000);
    for (number, moved_ms) in (0..).zip(moved) {
        let task = stores.task("one", number).await;
        let expected = NOW + number / 2 + 100 + moved_ms;
        assert_eq!(task.expires_at_ms, Some(expected), "{number}");
    }
    assert_eq!(stores.sweep(NOW + 5_000).await.expired, 3);
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.sweep(NOW + 6_000).await.expired, 4);
}

/// A machine that boots in 2000: its results are kept for their full time from the correction on.
pub async fn what_was_moved_out_of_the_past_is_moved_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, past_ms) in [(1, 946_684_800_000), (2, NOW)] {
        stores.clock.set(past_ms);
        stores.submit(number, "one").await;
        let ended = stores.cancel("one", number, 700).await;
        assert_eq!(ended.expires_at_ms, Some(past_ms + 700));
    }
    for from_ms in [NOW, NOW + YEAR_MS] {
        let postpone = PostponeRequest {
            from_ms: 0,
            before_ms: NOW - YEAR_MS,
            by: PostponedExpiry::From(from_ms),
            retention_ms: 700,
            below: ExpiryCursor::END,
            batch: 10,
        };
        assert_eq!(stores.chores.postpone(postpone).await.unwrap(), None);
        for number in [1, 2] {
            let end = stores.task("one", number).await.expires_at_ms;
            assert_eq!(end, Some(NOW + 700), "{number}");
        }
    }
}

/// This holds for ids that different processes draw: a client that follows the list must not miss a
/// task that was accepted after the last one that it saw.
pub async fn ids_of_a_project_sort_in_the_order_of_acceptance(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut seen = Vec::new();
    for number in [5, 9, 3, 7, 8, 1] {
        let submitted = stores.tasks.insert(task(number, "one")).await.unwrap();
        let InsertOutcome::Inserted(accepted) = submitted else {
            panic!("{submitted:?}")
        };
        let request = PageRequest {
            project: "one".to_owned(),
            after: seen.last().copied(),
            limit: 9,
            order: ListOrder::Ascending,
        };
        let more = stores.tasks.list(request).await.unwrap().tasks;
        let more: Vec<_> = more.iter().map(|task| task.id).collect();
        assert_eq!(more, [accepted.id], "{number}");
        assert_eq!(
            stores.tasks.get("one", accepted.id).await.unwrap(),
            Some(accepted)
        );
        seen.extend(more);
    }
    // Ids that are in order already stay as they were drawn.
    assert_eq!(seen[..2], [id(5), id(9)]);
}
