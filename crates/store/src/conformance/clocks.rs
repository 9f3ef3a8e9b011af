//! Clocks that are wrong: what a step of the wall clock must not end, and what is made good after one.

use kinora_contract::Phase;

use super::Harness;
use super::fixtures::{Bench, EXPIRY, LEASE_MS, NOW, cancelled, id, renewed, sweep_at, task};
use crate::{
    NewTask, Order, PageRequest, Place, Postpone, Postponed, SweepRequest, Swept, WaitingFrom,
};

const YEAR_MS: u64 = 365 * 24 * 3_600_000;

/// The usual sweep, by a wall clock of its own.
fn sweep_by(now_ms: u64, steady_ms: u64) -> SweepRequest {
    SweepRequest {
        now_ms,
        ..sweep_at(steady_ms)
    }
}

/// Not a millisecond early or late, by steady time.
pub async fn a_lease_outlives_any_step_of_the_wall_clock(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    for wall in [0, NOW - YEAR_MS, NOW + LEASE_MS, NOW + 10 * YEAR_MS] {
        let swept = stores.tasks.sweep(sweep_by(wall, NOW + LEASE_MS - 1)).await;
        assert_eq!(swept.unwrap(), Swept::default(), "{wall}");
        stores.tasks.check(&claim.lease).await.unwrap();
    }
    // Nor does a renewal by a wrong wall clock keep it.
    let mut far = renewed(1);
    far.until_ms = NOW + 10 * YEAR_MS;
    stores.tasks.renew(&claim.lease, far).await.unwrap();
    let over = sweep_by(NOW, NOW + 2 * LEASE_MS);
    assert_eq!(stores.tasks.sweep(over).await.unwrap().requeued, 1);
}

/// Steady time begins anew with each process, and whoever held it is gone.
pub async fn a_lease_of_an_earlier_process_is_over(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.claim_one().await;
    drop(stores);
    let stores = harness.open("store").await;
    stores.tasks.sweep(sweep_by(NOW, 0)).await.unwrap();
    assert_eq!(
        stores.view("one", 1).await.task.state.phase(),
        Phase::Waiting
    );
}

/// Results, tombstones and waiting tasks.
pub async fn nothing_ends_by_a_clock_that_is_not_trusted(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    let cancel = stores.tasks.cancel("one", id(2), cancelled(), NOW, NOW);
    cancel.await.unwrap();
    stores.sweep(NOW).await;
    let doubted = SweepRequest {
        trusts_wall: false,
        waiting_ms_max: Some(1),
        ..sweep_by(NOW + 10 * YEAR_MS, NOW)
    };
    assert_eq!(stores.tasks.sweep(doubted).await.unwrap(), Swept::default());
    let mut phases = Vec::new();
    for number in 1..=3 {
        phases.push(stores.view("one", number).await.task.state.phase());
    }
    assert_eq!(phases, [Phase::Completed, Phase::Expired, Phase::Waiting]);
}

/// A tombstone stands for its time from the sweep that made it, however late that was.
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
    // Nor where a tombstone is not kept at all.
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    let none = SweepRequest {
        tombstone_ms: 0,
        ..sweep_at(late)
    };
    let both = [
        stores.tasks.sweep(none).await.unwrap(),
        stores.tasks.sweep(none).await.unwrap(),
    ];
    let both = both.map(|swept| (swept.expired, swept.forgotten));
    assert_eq!(both, [(1, 0), (0, 1)]);
}

/// A task that was created before the clock went back starts and ends no earlier, however it ends.
pub async fn times_of_a_task_never_run_backwards(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let ahead = NOW + 7_200_000;
    for number in 1..=5 {
        let new = NewTask {
            now_ms: ahead,
            ..task(number, "one")
        };
        stores.tasks.insert(new).await.unwrap();
    }
    let claims = stores.claim(3).await;
    let tasks = &stores.tasks;
    stores.complete(&claims[0]).await.unwrap();
    let failed = tasks.finish(&claims[1].lease, Err(cancelled()), NOW, EXPIRY);
    failed.await.unwrap();
    let running = tasks.cancel("one", id(3), cancelled(), NOW, EXPIRY);
    running.await.unwrap();
    let waiting = tasks.cancel("one", id(4), cancelled(), NOW, EXPIRY);
    waiting.await.unwrap();
    stores.claim_one().await;
    let last = SweepRequest {
        attempts_max: 1,
        ..sweep_by(NOW, NOW + LEASE_MS)
    };
    let last_kept_ms = last.retention_ms;
    assert_eq!(tasks.sweep(last).await.unwrap().lost, 1);
    for number in 1..=5 {
        let task = stores.view("one", number).await.task;
        let started = (number != 4).then_some(ahead);
        assert_eq!(task.started_at_ms, started, "{number}");
        assert_eq!(task.finished_at_ms, Some(ahead), "{number}");
        let kept_ms = if number == 5 {
            last_kept_ms
        } else {
            EXPIRY - NOW
        };
        assert_eq!(task.expires_at_ms, Some(ahead + kept_ms), "{number}");
    }
}

/// Not from the time that a wrong clock gave them; later tasks by their own.
pub async fn waiting_counts_from_the_correction_of_the_clock(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, created_ms) in [(1, 0), (2, NOW - 1), (3, NOW), (4, NOW + 500)] {
        let new = NewTask {
            now_ms: created_ms,
            ..task(number, "one")
        };
        stores.tasks.insert(new).await.unwrap();
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
        let swept = stores.tasks.sweep(at(now_ms)).await.unwrap();
        assert_eq!(swept.waited, waited, "{}", now_ms - NOW);
    }
}

/// Those that ended in the time of the wrong clock, each once, whatever the batch; clients see it.
pub async fn results_of_a_corrected_clock_are_kept_longer(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..7 {
        let new = NewTask {
            now_ms: NOW,
            ..task(number, "one")
        };
        stores.tasks.insert(new).await.unwrap();
        // Several end and expire together.
        let at_ms = NOW + number / 2;
        let ended = stores
            .tasks
            .cancel("one", id(number), cancelled(), at_ms, at_ms + 100);
        ended.await.unwrap();
    }
    let mut below = Some(Place::END);
    let mut calls = 0;
    while let Some(place) = below {
        let postpone = Postpone {
            from_ms: NOW + 1,
            before_ms: NOW + 3,
            by: Postponed::By(5_000),
            below: place,
            batch: 3,
        };
        below = stores.tasks.postpone(postpone).await.unwrap();
        calls += 1;
        assert!(calls <= 3, "it comes to no end");
    }
    let moved = [0, 0, 1, 1, 1, 1, 0].map(|moved| moved * 5_000);
    for (number, moved_ms) in (0..).zip(moved) {
        let task = stores.view("one", number).await.task;
        let expected = NOW + number / 2 + 100 + moved_ms;
        assert_eq!(task.expires_at_ms, Some(expected), "{number}");
    }
    assert_eq!(stores.sweep(NOW + 5_000).await.expired, 3);
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.sweep(NOW + 6_000).await.expired, 4);
}

/// A machine that boots in 2000: what it made is kept for its time from the correction on.
pub async fn what_was_moved_out_of_the_past_is_moved_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, past_ms) in [(1, 946_684_800_000), (2, NOW)] {
        let new = NewTask {
            now_ms: past_ms,
            ..task(number, "one")
        };
        stores.tasks.insert(new).await.unwrap();
        let ended = stores
            .tasks
            .cancel("one", id(number), cancelled(), past_ms, past_ms + 700);
        ended.await.unwrap();
    }
    for from_ms in [NOW, NOW + YEAR_MS] {
        let postpone = Postpone {
            from_ms: 0,
            before_ms: NOW - YEAR_MS,
            by: Postponed::From(from_ms),
            below: Place::END,
            batch: 10,
        };
        assert_eq!(stores.tasks.postpone(postpone).await.unwrap(), None);
        for number in [1, 2] {
            let end = stores.view("one", number).await.task.expires_at_ms;
            assert_eq!(end, Some(NOW + 700), "{number}");
        }
    }
}

/// Of whatever project.
pub async fn the_newest_id_below_a_bound_is_found(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let newest = async |bound| stores.tasks.newest_below(bound).await.unwrap();
    assert_eq!(newest(id(9)).await, None);
    stores.submit(1, "one").await;
    stores.submit(2, "two").await;
    for (bound, found) in [
        (1, None),
        (2, Some(id(1))),
        (3, Some(id(2))),
        (9, Some(id(2))),
    ] {
        assert_eq!(newest(id(bound)).await, found, "{bound}");
    }
    let request = PageRequest {
        project: "one".to_owned(),
        after: newest(id(9)).await,
        limit: 9,
        order: Order::Descending,
    };
    assert_eq!(stores.tasks.list(request).await.unwrap().tasks.len(), 1);
}
