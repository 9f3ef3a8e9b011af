//! Costs and budgets: estimates are reserved exactly, however many submits come at once, and corrected when tasks end.
//! The days of budgets are those of a clock that is trusted.

use kinora_contract::{
    Amount, Currency, Money, TaskCost, TaskState, day_begins_ms, day_of, month_of, next_month,
};

use super::bench::Bench;
use super::fixtures::{
    LEASE_MS, NOW, RETENTION_MS, actor, artifact, cancelled, id, sweep_at, task,
};
use super::keys::key;
use super::{Harness, Site};
use crate::{
    Budget, BudgetOwner, BudgetPeriod, ExceededBudget, IdempotencyKey, InsertOutcome, KeyRotation,
    LeaseRenewal, NewTask, ReleasedAttempt, Spending, SubmitBudgets, SweepRequest, TallyRequest,
};

/// The estimate of each task: 5 s at 0.1, and 0.02 for the clip.
const CLIP: f64 = 0.52;

fn amount(units: f64) -> Amount {
    Amount::from_units(units).unwrap()
}

fn budget(per_day: Option<f64>, per_month: Option<f64>) -> Budget {
    Budget {
        per_day: per_day.map(amount),
        per_month: per_month.map(amount),
    }
}

/// A task with a cost, of the key `key_a`.
fn priced(number: u64, project: &str, of_key: Budget) -> NewTask {
    NewTask {
        cost: Some(TaskCost {
            amount: amount(CLIP),
            currency: Currency::USD,
            is_estimated: true,
            fixed: amount(0.02),
            per_second: amount(0.1),
            charged: None,
            charged_before: Amount::ZERO,
            reserved: None,
        }),
        budgets: SubmitBudgets {
            key: "key_a".to_owned(),
            of_key,
            of_project: Budget::default(),
        },
        ..task(number, project)
    }
}

/// A budget for ten clips a day.
fn ten_clips() -> Budget {
    budget(Some(10.0 * CLIP), None)
}

async fn insert(site: &Site, new: NewTask) -> Result<(), ExceededBudget> {
    match site.tasks.insert(new).await.unwrap() {
        InsertOutcome::Inserted(_) => Ok(()),
        InsertOutcome::OverBudget(over) => Err(over),
        other => panic!("{other:?}"),
    }
}

async fn spending(site: &Site, project: &str) -> Spending {
    site.tasks.spending(project, "key_a").await.unwrap()
}

/// What the key has spent today, and its project.
async fn spent_today(site: &Site) -> [String; 2] {
    let spending = spending(site, "one").await;
    assert_eq!(spending.key.month, spending.key.day);
    [spending.key.day, spending.project.day].map(|amount| amount.to_string())
}

fn both(text: &str) -> [String; 2] {
    [text.to_owned(), text.to_owned()]
}

async fn cost(site: &Site, number: u64) -> (String, bool) {
    let task = site.task("one", number).await;
    let cost = task.cost.as_ref().unwrap();
    (cost.amount.to_string(), cost.is_estimated)
}

/// Submits from many callers at once, over these handles. Returns how many were accepted.
async fn submit_at_once(sites: &[Site], count: u64) -> usize {
    let submits = (0..count).zip(sites.iter().cycle()).map(|(number, site)| {
        let site = site.clone();
        tokio::spawn(async move { insert(&site, priced(number, "one", ten_clips())).await })
    });
    let mut accepted = 0;
    for submit in submits.collect::<Vec<_>>() {
        match submit.await.unwrap() {
            Ok(()) => accepted += 1,
            Err(over) => {
                assert_eq!(
                    (over.owner, over.period),
                    (BudgetOwner::Key, BudgetPeriod::Day)
                );
                assert_eq!((over.left, over.cost), (Amount::ZERO, amount(CLIP)));
                assert!(!over.is_too_small());
            }
        }
    }
    accepted
}

/// Ten, whatever the order.
pub async fn p12_of_many_submits_at_once_a_budget_admits_exactly_what_it_pays_for(
    harness: &impl Harness,
) {
    let site = harness.open("store").await;
    assert_eq!(submit_at_once(std::slice::from_ref(&site), 200).await, 10);
    assert_eq!(spent_today(&site).await, both("5.20"));
}

/// Two processes share the sums, and a task that one ends is free again for the other.
pub async fn p12_two_handles_share_one_budget(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    assert_eq!(submit_at_once(&sites, 100).await, 10);
    let [first, second] = &sites;
    assert_eq!(spent_today(second).await, both("5.20"));
    let claim = first.claim_one().await;
    let done = first
        .work
        .finish(&claim.lease, Err(cancelled()), RETENTION_MS);
    done.await.unwrap();
    assert_eq!(spent_today(second).await, both("4.68"));
    insert(second, priced(500, "one", ten_clips()))
        .await
        .unwrap();
    insert(first, priced(501, "one", ten_clips()))
        .await
        .unwrap_err();
}

/// By the length of the video that was made. The sums over ended tasks have it, too.
pub async fn a_cost_is_final_when_its_task_ends(harness: &impl Harness) {
    let site = harness.open("store").await;
    insert(&site, priced(1, "one", ten_clips())).await.unwrap();
    assert_eq!(cost(&site, 1).await, ("0.52".to_owned(), true));
    let claim = site.claim_one().await;
    assert_eq!(cost(&site, 1).await, ("0.52".to_owned(), true));
    let mut result = artifact("x");
    result.duration_seconds = 3.04;
    let done = site.work.finish(&claim.lease, Ok(result), RETENTION_MS);
    done.await.unwrap();
    assert_eq!(cost(&site, 1).await, ("0.32".to_owned(), false));
    assert_eq!(spent_today(&site).await, both("0.32"));
    let all = TallyRequest::default();
    let sums = site.operations.tallies(&all).await.unwrap();
    assert_eq!(sums[0].tally.cost_micros, 320_000);
    // The end of the task itself changes nothing of its cost.
    site.tasks.delete("one", id(1)).await.unwrap();
    assert_eq!(spent_today(&site).await, both("0.32"));
    // A task without prices costs nothing, and needs no budget.
    site.submit(2, "one").await;
    assert_eq!(site.task("one", 2).await.cost, None);
}

/// After a failure, a cancel, a deletion, the loss of its worker and a wait that was too long.
pub async fn what_a_task_did_not_cost_is_free_again(harness: &impl Harness) {
    let site = harness.open("store").await;
    for number in 1..=4 {
        insert(&site, priced(number, "one", ten_clips()))
            .await
            .unwrap();
    }
    let claim = site.claim_one().await;
    // It waits again: still reserved.
    let back = site.work.release(&claim.lease, ReleasedAttempt::Forgiven);
    back.await.unwrap();
    assert_eq!(spent_today(&site).await, both("2.08"));
    let claim = site.claim_one().await;
    let failed = site
        .work
        .finish(&claim.lease, Err(cancelled()), RETENTION_MS);
    failed.await.unwrap();
    assert_eq!(cost(&site, 1).await, ("0.00".to_owned(), false));
    assert_eq!(spent_today(&site).await, both("1.56"));
    site.cancel("one", 2, RETENTION_MS).await;
    assert_eq!(spent_today(&site).await, both("1.04"));
    site.tasks.delete("one", id(3)).await.unwrap();
    assert_eq!(spent_today(&site).await, both("0.52"));
    for _ in 0..3 {
        site.claim_one().await;
        site.clock.advance(LEASE_MS + 1);
        let swept = site.chores.sweep(SweepRequest {
            due_ms: None,
            ..sweep_at(0)
        });
        swept.await.unwrap();
    }
    assert!(matches!(
        site.task("one", 4).await.state,
        TaskState::Failed(_)
    ));
    assert_eq!(spent_today(&site).await, both("0.00"));
    insert(&site, priced(5, "one", ten_clips())).await.unwrap();
    let late = SweepRequest {
        waiting_ms_max: Some(1_000),
        ..sweep_at(NOW + 600_000)
    };
    assert_eq!(site.sweep_by(late).await.waited, 1);
    assert_eq!(spent_today(&site).await, both("0.00"));
}

/// The last amount counts, for a video and without one; one in another currency does not.
pub async fn a_provider_s_charge_counts_whatever_the_outcome(harness: &impl Harness) {
    let site = harness.open("store").await;
    for number in 1..=3 {
        insert(&site, priced(number, "one", ten_clips()))
            .await
            .unwrap();
    }
    for (number, currency, video, expected) in [
        (1, "USD", true, "0.70"),
        (2, "USD", false, "0.70"),
        (3, "EUR", true, "0.52"),
    ] {
        let claim = site.claim_one().await;
        for units in [0.1, 0.7] {
            let charged = Some(Money {
                amount: amount(units),
                currency: currency.parse().unwrap(),
            });
            let renewal = LeaseRenewal {
                charged,
                ..LeaseRenewal::default()
            };
            site.renew(&claim.lease, renewal).await.unwrap();
        }
        assert_eq!(cost(&site, number).await, ("0.52".to_owned(), true));
        if video {
            site.complete(&claim).await.unwrap();
        } else {
            // Its owner ends it: the provider charges all the same.
            site.cancel("one", number, RETENTION_MS).await;
        }
        assert_eq!(cost(&site, number).await, (expected.to_owned(), false));
    }
    assert_eq!(spent_today(&site).await, both("1.92"));
}

/// Not even when the budget is used up.
pub async fn a_replay_costs_nothing(harness: &impl Harness) {
    let site = harness.open("store").await;
    let keyed = |number| NewTask {
        idempotency: Some(IdempotencyKey {
            key: "order-1".to_owned(),
            fingerprint: [1; 32],
            bound_ms: 1_000,
        }),
        ..priced(number, "one", budget(Some(CLIP), None))
    };
    insert(&site, keyed(1)).await.unwrap();
    for number in 2..5 {
        match site.tasks.insert(keyed(number)).await.unwrap() {
            InsertOutcome::Replayed(task) => assert_eq!(task.id, id(1)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(spent_today(&site).await, both("0.52"));
}

/// A step of the clock renews nothing and locks nothing.
pub async fn a_budget_is_renewed_by_a_trusted_clock_alone(harness: &impl Harness) {
    let site = harness.open("store").await;
    let one_clip = budget(Some(CLIP), None);
    let today = day_of(NOW);
    site.sweep(NOW).await;
    insert(&site, priced(1, "one", one_clip)).await.unwrap();
    let refused = insert(&site, priced(2, "one", one_clip)).await.unwrap_err();
    assert_eq!(refused.renews_at_ms, day_begins_ms(today + 1));
    assert_eq!(refused.retry_ms, refused.renews_at_ms - NOW + 10_000);
    // Ten years ahead, ten years back, and no sweep that trusts it.
    for wall_ms in [NOW + 3_650 * 86_400_000, NOW - 3_650 * 86_400_000] {
        site.clock.set(wall_ms);
        let untrusted = SweepRequest {
            due_ms: None,
            ..sweep_at(0)
        };
        site.chores.sweep(untrusted).await.unwrap();
        insert(&site, priced(3, "one", one_clip)).await.unwrap_err();
        assert_eq!(spending(&site, "one").await.today, today);
    }
    // Midnight has passed, but the sweep has not.
    site.clock.set(day_begins_ms(today + 1) + 1);
    let overdue = insert(&site, priced(4, "one", one_clip)).await.unwrap_err();
    assert_eq!(overdue.retry_ms, 60_000);
    let midnight = SweepRequest {
        batch: 100,
        ..sweep_at(day_begins_ms(today + 1) + 5)
    };
    site.sweep_by(midnight).await;
    insert(&site, priced(5, "one", one_clip)).await.unwrap();
    insert(&site, priced(6, "one", one_clip)).await.unwrap_err();
    // A correction by a moment, at midnight, does not renew it again.
    for wall_ms in [day_begins_ms(today + 1) - 5, day_begins_ms(today + 1) + 50] {
        site.clock.set(wall_ms);
        site.chores.sweep(sweep_at(wall_ms)).await.unwrap();
        insert(&site, priced(7, "one", one_clip)).await.unwrap_err();
    }
    // A task of yesterday frees nothing today.
    site.cancel("one", 1, RETENTION_MS).await;
    insert(&site, priced(8, "one", one_clip)).await.unwrap_err();
}

/// Days are renewed within it, and what a task of an earlier day did not cost is free again in its month.
pub async fn a_month_goes_on_when_its_days_end(harness: &impl Harness) {
    let site = harness.open("store").await;
    let two_a_month = budget(Some(CLIP), Some(2.0 * CLIP));
    let today = day_of(NOW);
    for day in 0..2 {
        site.sweep(day_begins_ms(today + 1 + day)).await;
        insert(&site, priced(1 + day, "one", two_a_month))
            .await
            .unwrap();
    }
    let refused = insert(&site, priced(3, "one", two_a_month))
        .await
        .unwrap_err();
    assert_eq!(refused.period, BudgetPeriod::Month);
    assert_eq!(refused.renews_at_ms, day_begins_ms(next_month(today)));
    site.sweep(day_begins_ms(today + 3)).await;
    insert(&site, priced(4, "one", two_a_month))
        .await
        .unwrap_err();
    site.cancel("one", 1, RETENTION_MS).await;
    let spent = spending(&site, "one").await.key;
    assert_eq!((spent.day, spent.month), (Amount::ZERO, amount(CLIP)));
    insert(&site, priced(5, "one", two_a_month)).await.unwrap();
    let next = next_month(today);
    assert_eq!(month_of(next), month_of(today) + 1);
    site.sweep(day_begins_ms(next)).await;
    insert(&site, priced(6, "one", two_a_month)).await.unwrap();
}

/// A task counts for its key and for its project. A clip that no budget can ever pay for is told apart.
pub async fn projects_and_keys_have_budgets_of_their_own(harness: &impl Harness) {
    let site = harness.open("store").await;
    let by = |number, key: &str, project: &str| {
        let mut new = priced(number, project, budget(Some(2.0 * CLIP), None));
        new.budgets.key = key.to_owned();
        new.budgets.of_project = budget(Some(3.0 * CLIP), None);
        new
    };
    insert(&site, by(1, "key_a", "one")).await.unwrap();
    insert(&site, by(2, "key_a", "one")).await.unwrap();
    let refused = insert(&site, by(3, "key_a", "one")).await.unwrap_err();
    assert_eq!(refused.owner, BudgetOwner::Key);
    insert(&site, by(4, "key_b", "one")).await.unwrap();
    let refused = insert(&site, by(5, "key_b", "one")).await.unwrap_err();
    assert_eq!(
        (refused.owner, refused.left),
        (BudgetOwner::Project, Amount::ZERO)
    );
    insert(&site, by(6, "key_c", "two")).await.unwrap();
    let small = priced(7, "two", budget(None, Some(0.5)));
    let refused = insert(&site, small).await.unwrap_err();
    assert!(refused.is_too_small(), "{refused:?}");
    assert!(site.tasks.get("two", id(7)).await.unwrap().is_none());
}

/// From disk: the cost of each task, and the sums.
pub async fn costs_outlive_a_restart(harness: &impl Harness) {
    let site = harness.open("store").await;
    for number in 1..=2 {
        insert(&site, priced(number, "one", ten_clips()))
            .await
            .unwrap();
    }
    let claim = site.claim_one().await;
    site.complete(&claim).await.unwrap();
    let before = [site.task("one", 1).await, site.task("one", 2).await];
    drop(site);
    let site = harness.open("store").await;
    for (number, task) in (1..).zip(before) {
        assert_eq!(site.task("one", number).await.cost, task.cost);
    }
    assert_eq!(spent_today(&site).await, both("1.04"));
}

/// A rotation must not renew a budget, and what a task of an old key did not cost is free for the new one.
pub async fn rotated_keys_spend_from_one_budget(harness: &impl Harness) {
    let site = harness.open("store").await;
    let mut old = key(1);
    old.id = "key_a".to_owned();
    site.keys.add_key(old, &actor("a")).await.unwrap();
    insert(&site, priced(1, "one", ten_clips())).await.unwrap();
    let mut last = "key_a".to_owned();
    for number in 2..4 {
        let rotation = KeyRotation {
            old: last,
            new: key(number),
            now_ms: NOW,
            grace_ms: 3_600_000,
        };
        let new = site.keys.rotate_key(rotation, &actor("a")).await.unwrap();
        last = new.unwrap().key.id;
    }
    let of_last = || async { site.tasks.spending("one", &last).await.unwrap().key.day };
    assert_eq!(of_last().await, amount(CLIP));
    let mut new = priced(2, "one", budget(Some(2.0 * CLIP), None));
    new.budgets.key.clone_from(&last);
    insert(&site, new.clone()).await.unwrap();
    assert_eq!(spent_today(&site).await, both("1.04"));
    new.id = id(3);
    insert(&site, new.clone()).await.unwrap_err();
    site.cancel("one", 1, RETENTION_MS).await;
    assert_eq!(of_last().await, amount(CLIP));
    insert(&site, new).await.unwrap();
    assert_eq!(spent_today(&site).await, both("1.04"));
}

/// Or else submits and cancels by turns would cost any amount, since many providers cannot stop a job.
pub async fn a_client_pays_for_a_job_at_a_server_that_it_withdraws(harness: &impl Harness) {
    let site = harness.open("store").await;
    for number in 1..=2 {
        insert(&site, priced(number, "one", ten_clips()))
            .await
            .unwrap();
        let claim = site.claim_one().await;
        let renewal = LeaseRenewal {
            ticket: Some(format!("job {number}")),
            ..LeaseRenewal::default()
        };
        site.renew(&claim.lease, renewal).await.unwrap();
    }
    site.cancel("one", 1, RETENTION_MS).await;
    assert_eq!(cost(&site, 1).await, ("0.52".to_owned(), false));
    site.tasks.delete("one", id(2)).await.unwrap();
    assert_eq!(spent_today(&site).await, both("1.04"));
    let all = TallyRequest::default();
    let sums = site.operations.tallies(&all).await.unwrap();
    assert_eq!(sums[0].tally.cost_micros, 1_040_000);
}

/// A submit does not store the day of its clock, and a clock that is behind does not overwrite sums.
pub async fn the_first_day_of_budgets_is_that_of_a_trusted_clock(harness: &impl Harness) {
    let site = harness.open("store").await;
    let today = day_of(NOW);
    insert(&site, priced(1, "one", ten_clips())).await.unwrap();
    site.clock.set(NOW - 40 * 86_400_000);
    insert(&site, priced(2, "one", ten_clips())).await.unwrap();
    assert_eq!(spent_today(&site).await, both("1.04"));
    assert_eq!(spending(&site, "one").await.today, today);
    let of_others = || async { site.tasks.spending("two", "key_b").await.unwrap().today };
    assert_eq!(of_others().await, today - 40);
    site.clock.set(NOW);
    site.sweep(NOW + 1).await;
    assert_eq!(spent_today(&site).await, both("1.04"));
    site.clock.set(NOW - 40 * 86_400_000);
    assert_eq!(of_others().await, today);
}
