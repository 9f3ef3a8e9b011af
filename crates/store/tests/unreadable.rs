//! Rows that cannot be read or changed: each is left out, and ends neither a list nor a claim nor a sweep.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::sync::Arc;

use kinora_contract::{ManualClock, TaskId, TaskPhase};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::{Bench, any_call_off};
use kinora_store::conformance::fixtures::{EXPIRY, LEASE_MS, NOW, files, id};
use kinora_store::{ChoreKind, ChoreRequest, ListOrder, OpenOptions, PageRequest, open};
use rusqlite::Connection;

const TASKS: u64 = 24;

async fn open_at_now(url: &str) -> Site {
    let clock = Arc::new(ManualClock::at(NOW));
    let stores = open(url, &OpenOptions::new(clock.clone())).await.unwrap();
    Site::of(stores, clock)
}

/// The whole list, by pages of so many.
async fn listed(stores: &Site, limit: usize, order: ListOrder) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest {
            project: "one".to_owned(),
            after,
            limit,
            order,
        };
        let page = stores.tasks.list(request).await.unwrap();
        assert!(
            !page.has_more || !page.tasks.is_empty(),
            "no place to go on"
        );
        ids.extend(page.tasks.iter().map(|task| task.id));
        after = ids.last().copied();
        if !page.has_more {
            return ids;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_row_that_cannot_be_read_ends_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let url = format!("sqlite:{}", path.display());
    let stores = open_at_now(&url).await;
    for number in 0..TASKS {
        stores.submit(number, "one").await;
    }
    drop(stores);
    let raw = Connection::open(&path).unwrap();
    // Places count from 1. The id of one is longer than any, of another it is no text that sorts among them.
    for damage in [
        "UPDATE tasks SET id = substr(id, 1, 20) || 'u' || substr(id, 22) WHERE seq = 3",
        "UPDATE tasks SET id = id || 'x' WHERE seq = 9",
        "UPDATE tasks SET spec = replace(spec, 'boat', 'goat') WHERE seq IN (1, 2)",
        "UPDATE tasks SET spec = '{\"version\":' WHERE seq BETWEEN 5 AND 8",
        "UPDATE tasks SET spec_version = 99 WHERE seq = 12",
        "UPDATE tasks SET metadata = '[]' WHERE seq = 24",
    ] {
        assert!(raw.execute(damage, []).unwrap() > 0, "{damage}");
    }
    let stores = open_at_now(&url).await;
    let damaged = [1, 2, 3, 5, 6, 7, 8, 9, 12, 24];
    let mut whole: Vec<TaskId> = (1..=TASKS)
        .filter(|place| !damaged.contains(place))
        .map(|place| id(place - 1))
        .collect();
    for order in [ListOrder::Ascending, ListOrder::Descending] {
        for limit in [1, 2, 7, 100] {
            assert_eq!(
                listed(&stores, limit, order).await,
                whole,
                "{order:?} by {limit}"
            );
        }
        whole.reverse();
    }
}

/// A row that has changed behind the store's back: none of its updates finds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_row_that_cannot_be_changed_stops_no_claim_and_no_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let url = format!("sqlite:{}", path.display());
    let stores = open_at_now(&url).await;
    for number in 0..4 {
        stores.submit(number, "one").await;
    }
    let raw = Connection::open(&path).unwrap();
    let damage = |place: i64| {
        let damage = "UPDATE tasks SET phase = 'expired' WHERE seq = ?1";
        assert_eq!(raw.execute(damage, [place]).unwrap(), 1);
    };
    damage(1);
    let claims = stores.claim(9).await;
    let claimed: Vec<TaskId> = claims.iter().map(|claim| claim.task.id).collect();
    assert_eq!(claimed, [id(1), id(2), id(3)]);
    // Of the sweep's parts each.
    stores.complete(&claims[0]).await.unwrap();
    damage(3);
    for chore in [
        "INSERT INTO chores (kind, subject) VALUES ('remove_file', CAST(x'ff' AS TEXT))",
        "INSERT INTO chores (kind, subject, model, ticket) \
         VALUES ('call_off', 'x', 'kinora-a1', 'x')",
    ] {
        raw.execute(chore, []).unwrap();
    }
    let swept = stores.sweep(NOW + LEASE_MS).await;
    assert_eq!((swept.requeued, swept.lost), (1, 0));
    assert_eq!(
        stores.task("one", 3).await.state.phase(),
        TaskPhase::Waiting
    );
    assert_eq!(stores.sweep(EXPIRY).await.expired, 1);
    let mut keys = claims[2].lease.file_keys().to_vec();
    keys.extend(files(&format!("token-{}", claims[0].lease.token)));
    assert_eq!(stores.files_due().await, keys);
    let one = ChoreRequest {
        kind: ChoreKind::RemoveFile,
        count: 1,
        lease_ms: 1,
    };
    let taken = stores.chores.lease_chores(one).await.unwrap();
    assert_eq!(taken.len(), 1, "a damaged one keeps none behind it");
    assert_eq!(stores.take_chores(any_call_off()).await, []);
}
