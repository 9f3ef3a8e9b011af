//! Lists: the order of their tasks, and the limits of pages. Counts and positions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kinora_contract::TaskId;
use kinora_contract::limits::PAGE_BYTES_MAX;

use super::bench::Bench;
use super::fixtures::{MODELS, NOW, RETENTION_MS, id, of_model, task, with_images};
use super::{Harness, Site};
use crate::{
    FetchReport, InsertOutcome, ListOrder, NewTask, PageRequest, PhaseCounts, QueueCounts,
    ReleasedAttempt,
};

async fn page(
    stores: &Site,
    after: Option<TaskId>,
    limit: usize,
    order: ListOrder,
) -> (Vec<TaskId>, bool) {
    let request = PageRequest {
        project: "one".to_owned(),
        after,
        limit,
        order,
    };
    let page = stores.tasks.list(request).await.unwrap();
    (
        page.tasks.into_iter().map(|task| task.id).collect(),
        page.has_more,
    )
}

/// The pages have every task of the project exactly once, and none of another project, even with
/// equal creation times.
pub async fn pages_join_to_the_whole_list_in_both_orders(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut own = Vec::new();
    for number in 0..23_u8 {
        // Four tasks per millisecond, which differ only in their random part.
        let now_ms = NOW + u64::from(number) / 4;
        let id = TaskId::from_parts(now_ms, [number.wrapping_mul(37); 10]);
        let project = if number % 5 == 4 { "two" } else { "one" };
        stores.clock.set(now_ms);
        let new = NewTask {
            id,
            ..task(0, project)
        };
        let inserted = stores.tasks.insert(new).await.unwrap();
        let InsertOutcome::Inserted(task) = inserted else {
            panic!("{inserted:?}")
        };
        own.extend((project == "one").then_some(task.id));
    }
    assert!(own.is_sorted());
    for order in [ListOrder::Ascending, ListOrder::Descending] {
        for limit in [1, 2, 7, own.len(), 100] {
            let (mut joined, mut after) = (Vec::new(), None);
            loop {
                let (ids, has_more) = page(&stores, after, limit, order).await;
                assert!(ids.len() <= limit);
                joined.extend(ids);
                assert_eq!(has_more, joined.len() < own.len(), "{order:?} by {limit}");
                after = joined.last().copied();
                if !has_more {
                    break;
                }
            }
            assert_eq!(joined, own, "{order:?} by {limit}");
        }
        own.reverse();
    }
    let request = PageRequest {
        project: "three".to_owned(),
        after: None,
        limit: 9,
        order: ListOrder::Ascending,
    };
    let nobody = stores.tasks.list(request).await.unwrap();
    assert!(nobody.tasks.is_empty() && !nobody.has_more);
}

/// Pages are limited in bytes, and still form the whole list.
pub async fn a_page_of_much_text_ends_early(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let fat = |number: u64, bytes: usize| {
        let mut new = task(number, "one");
        // Each of these takes six bytes in JSON.
        new.spec.prompt = "\u{1}".repeat(bytes / 6);
        new
    };
    let sizes = [PAGE_BYTES_MAX / 2, PAGE_BYTES_MAX / 3, PAGE_BYTES_MAX / 2]
        .into_iter()
        .chain([PAGE_BYTES_MAX * 2, 0, 0]);
    for (number, bytes) in (0..).zip(sizes) {
        stores.tasks.insert(fat(number, bytes)).await.unwrap();
    }
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let (ids, has_more) = page(&stores, after, 100, ListOrder::Ascending).await;
        after = ids.last().copied();
        pages.push(ids);
        if !has_more {
            break;
        }
    }
    let expected = [
        vec![id(0), id(1)],
        vec![id(2)],
        vec![id(3)],
        vec![id(4), id(5)],
    ];
    assert_eq!(pages, expected);
}

/// A client that pages while it deletes misses nothing.
pub async fn a_deleted_cursor_still_has_its_place(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..5 {
        stores.submit(number, "one").await;
    }
    stores.tasks.delete("one", id(2)).await.unwrap();
    let up = page(&stores, Some(id(2)), 9, ListOrder::Ascending).await;
    assert_eq!(up, (vec![id(3), id(4)], false));
    let down = page(&stores, Some(id(2)), 1, ListOrder::Descending).await;
    assert_eq!(down, (vec![id(1)], true));
}

/// Expired tasks answer 410 by id, and appear in no list.
pub async fn expired_tasks_are_not_listed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..4 {
        stores.submit(number, "one").await;
    }
    stores.cancel("one", 1, 10).await;
    stores.cancel("one", 2, RETENTION_MS).await;
    stores.sweep(NOW + 10).await;
    assert_eq!(stores.task("one", 1).await.status(), None);
    let listed = page(&stores, None, 9, ListOrder::Ascending).await;
    assert_eq!(listed, (vec![id(0), id(2), id(3)], false));
}

/// Waiting, of these to be fetched and being fetched, and running.
type Counted = (u64, [u64; 2], u64);
/// Ages of the oldest waiting task of each of [`MODELS`].
type Ages = [Option<u64>; 2];

/// The counts of [`MODELS`] and of the projects `one` and `two`.
fn counted(models: [Counted; 2], projects: [Counted; 2], oldest: Ages) -> QueueCounts {
    let count = |(waiting, [unfetched, fetching], running): Counted| PhaseCounts {
        waiting,
        unfetched,
        fetching,
        running,
    };
    let named = |names: [&str; 2], counts: [Counted; 2]| -> BTreeMap<_, _> {
        let named = names.map(str::to_owned).into_iter().zip(counts.map(count));
        named
            .filter(|(_, one)| *one != PhaseCounts::default())
            .collect()
    };
    let aged = MODELS.map(str::to_owned).into_iter().zip(oldest);
    let aged = aged.filter_map(|(model, age)| Some((model, age?)));
    QueueCounts {
        models: named(MODELS, models),
        projects: named(["one", "two"], projects),
        oldest_waiting_ms: aged.collect(),
    }
}

/// Counts waiting tasks (and those whose references are missing or being fetched) and running ones,
/// by model and by project; and the age of each model's oldest waiting task, by the store's clock.
pub async fn unfinished_tasks_are_counted_by_model_and_project(harness: &impl Harness) {
    let [stores, other] = harness.open_both("store").await;
    assert_eq!(stores.tasks.counts().await.unwrap(), QueueCounts::default());
    let tasks = [
        of_model(1, "one", MODELS[0]),
        of_model(2, "one", MODELS[1]),
        with_images(3, "two", 1),
        of_model(4, "two", MODELS[0]),
    ];
    for new in tasks {
        stores.submit_all([new]).await;
        stores.clock.advance(10);
    }
    let counts = async |models: [Counted; 2], projects: [Counted; 2], oldest: Ages| {
        let wanted = counted(models, projects, oldest);
        for site in [&stores, &other] {
            assert_eq!(site.tasks.counts().await.unwrap(), wanted);
        }
    };
    let (no, one) = ([0, 0], [1, 0]);
    let models = [(3, one, 0), (1, no, 0)];
    counts(models, [(2, no, 0), (2, one, 0)], [Some(40), Some(30)]).await;
    let claims = other.claim(3).await;
    assert_eq!(claims.len(), 3);
    let models = [(1, one, 2), (0, no, 1)];
    let third = [Some(20), None];
    counts(models, [(0, no, 2), (1, one, 1)], third).await;
    // A pause before the next try waits for a fetch as well.
    let fetched = other.take(1).await;
    let under_way = [0, 1];
    let models = [(1, under_way, 2), (0, no, 1)];
    counts(models, [(0, no, 2), (1, under_way, 1)], third).await;
    let back = FetchReport::Back { pause_ms: 5 };
    let settled = stores.work.complete_fetch(&fetched[0], back);
    settled.await.unwrap();
    let models = [(1, one, 2), (0, no, 1)];
    counts(models, [(0, no, 2), (1, one, 1)], third).await;
    stores.clock.advance(5);
    stores.fetch_all().await;
    let last = stores.claim_one().await;
    counts(
        [(0, no, 3), (0, no, 1)],
        [(0, no, 2), (0, no, 2)],
        [None; 2],
    )
    .await;
    // One that waits again is as old as it is.
    let release = stores.work.release(&last.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    for claim in &claims {
        other.complete(claim).await.unwrap();
    }
    stores.clock.advance(1_000);
    let (model, project) = ([(1, no, 0), (0, no, 0)], [(0, no, 0), (1, no, 0)]);
    counts(model, project, [Some(1_025), None]).await;
    stores.clock.set(NOW);
    counts(model, project, [Some(0), None]).await;
    stores.cancel("two", 3, RETENTION_MS).await;
    assert_eq!(other.tasks.counts().await.unwrap(), QueueCounts::default());
}

/// The answers are in the requested order, each as if requested alone; unknown and running tasks
/// have none.
pub async fn positions_are_told_of_several_tasks_at_once(harness: &impl Harness) {
    let [stores, other] = harness.open_both("store").await;
    for number in 1..=4 {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    assert_eq!(claim.task.id, id(1));
    stores.cancel("one", 3, RETENTION_MS).await;
    let asked = [4, 9, 1, 2, 3, 4].map(id);
    let wanted = [Some(1), None, None, Some(0), None, Some(1)];
    let begun = Instant::now();
    // They may be up to a second old.
    for site in [&stores, &other] {
        while site.tasks.positions(&asked).await.unwrap() != wanted {
            assert!(begun.elapsed() < Duration::from_secs(10));
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(stores.tasks.positions(&[]).await.unwrap(), []);
}
