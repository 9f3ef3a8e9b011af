//! Lists: the order of their tasks, and how pages are bounded.

use kinora_contract::TaskId;
use kinora_contract::limits::PAGE_BYTES_MAX;

use super::Harness;
use super::fixtures::{Bench, EXPIRY, NOW, cancelled, id, task};
use crate::{NewTask, Order, PageRequest, Stores};

async fn page(
    stores: &Stores,
    after: Option<TaskId>,
    limit: usize,
    order: Order,
) -> (Vec<TaskId>, bool) {
    let request = PageRequest {
        project: "one".to_owned(),
        after,
        limit,
        order,
    };
    let page = stores.tasks.list(request).await.unwrap();
    (
        page.tasks.into_iter().map(|view| view.task.id).collect(),
        page.has_more,
    )
}

/// Every task of the project once, none of another's, equal times included.
pub async fn pages_join_to_the_whole_list_in_both_orders(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut own = Vec::new();
    for number in 0..23_u8 {
        // Four tasks per millisecond, which only their random parts tell apart.
        let now_ms = NOW + u64::from(number) / 4;
        let id = TaskId::from_parts(now_ms, [number.wrapping_mul(37); 10]);
        let project = if number % 5 == 4 { "two" } else { "one" };
        stores
            .tasks
            .insert(NewTask {
                id,
                now_ms,
                ..task(0, project)
            })
            .await
            .unwrap();
        own.extend((project == "one").then_some(id));
    }
    own.sort_unstable();
    for order in [Order::Ascending, Order::Descending] {
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
        order: Order::Ascending,
    };
    let nobody = stores.tasks.list(request).await.unwrap();
    assert!(nobody.tasks.is_empty() && !nobody.has_more);
}

/// Pages are bounded in bytes, and still join to the whole list.
pub async fn a_page_of_much_text_ends_early(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let fat = |number: u64, bytes: usize| {
        let mut new = task(number, "one");
        // Each of these is six bytes in JSON.
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
        let (ids, has_more) = page(&stores, after, 100, Order::Ascending).await;
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
    let up = page(&stores, Some(id(2)), 9, Order::Ascending).await;
    assert_eq!(up, (vec![id(3), id(4)], false));
    let down = page(&stores, Some(id(2)), 1, Order::Descending).await;
    assert_eq!(down, (vec![id(1)], true));
}

/// They answer 410 by their id, and are in no list.
pub async fn expired_tasks_are_not_listed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..4 {
        stores.submit(number, "one").await;
    }
    stores
        .tasks
        .cancel("one", id(1), cancelled(), NOW, NOW + 10)
        .await
        .unwrap();
    stores
        .tasks
        .cancel("one", id(2), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    stores.sweep(NOW + 10).await;
    assert_eq!(stores.view("one", 1).await.task.status(), None);
    let listed = page(&stores, None, 9, Order::Ascending).await;
    assert_eq!(listed, (vec![id(0), id(2), id(3)], false));
}
