//! Moves from SQLite to PostgreSQL and back: two exports are alike to the byte, imports go on where they were
//! interrupted, and nobody serves a store that is not whole.

mod carried;
mod filled;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock as _, ManualClock};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, actor, cancelled, id, task, with_images};
use kinora_store::conformance::uploads::file_id;
use kinora_store::{
    Chore, CopiedRow, DeleteOutcome, ExceededQuota, InsertOutcome, NewTask, OpenError, OpenOptions,
    QueueBounds, SecretKey, StoreImport, inspect, open, open_export, open_import, open_keys,
    open_source,
};
use kinora_testkit::postgres::Server;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::harness::{database, open_now};
use crate::proxy::{Loss, Proxy};
use carried::{exported, open_sqlite, sqlite, table};
use filled::{fill, key, keyed};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_moved_to_postgresql_and_back_is_the_same_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (sqlite(folder.path(), "a"), sqlite(folder.path(), "b"));
    let site = open_sqlite(&first).await;
    fill(&site).await;
    let usages = [site.tasks.usage("one"), site.tasks.usage("two")];
    let usages = futures_util::future::join_all(usages).await;
    // Also while it is served.
    let moved = exported(&first).await;
    let counted = site.tasks.counts().await.unwrap();
    drop(site);
    assert_eq!(moved.lines("tasks").len(), 12);
    assert_eq!(moved.lines("uploads").len(), 3);
    assert_eq!(moved.lines("upload_uses").len(), 2);
    let bytes: Vec<_> = moved
        .rows("uploads")
        .iter()
        .map(CopiedRow::upload)
        .collect();
    assert!(bytes[0].is_some() && bytes[0] == bytes[1], "{bytes:?}");
    assert_eq!(moved.lines("api_keys").len(), 5);
    let mut phases = BTreeMap::new();
    for task in moved.rows("tasks") {
        *phases.entry(task.phase()).or_insert(0) += 1;
    }
    let phases: Vec<_> = phases.into_iter().collect();
    let wanted = [
        ("completed", 2),
        ("expired", 1),
        ("failed", 2),
        ("waiting", 7),
    ];
    assert_eq!(
        phases,
        wanted.map(|(phase, count)| (phase.to_owned(), count))
    );
    let database = database().await;
    moved.bring_to(&database).await;
    assert_eq!(exported(&database).await, moved);
    exported(&database).await.bring_to(&second).await;
    assert_eq!(exported(&second).await, moved);

    for site in [open_now(&database).await, open_sqlite(&second).await] {
        for (project, usage) in ["one", "two"].into_iter().zip(&usages) {
            let found = site.tasks.usage(project).await.unwrap();
            assert_eq!(&found, usage.as_ref().unwrap(), "{project}");
        }
        let found = site.tasks.counts().await.unwrap();
        assert_eq!(found.projects.len(), counted.projects.len(), "{found:?}");
        assert_answers(&site).await;
        assert_work_goes_on(&site).await;
        told::assert_deliveries_go_on(&site).await;
    }
}

/// Bounds, idempotency keys and the signing key are as they were.
async fn assert_answers(site: &Site) {
    let full = NewTask {
        bounds: QueueBounds {
            project_tasks_max: 3,
            ..QueueBounds::NONE
        },
        ..task(20, "two")
    };
    let refused = site.tasks.insert(full).await.unwrap();
    assert!(
        matches!(
            refused,
            InsertOutcome::QuotaFull(ExceededQuota::ProjectTasks)
        ),
        "{refused:?}"
    );
    let again = site.tasks.insert(keyed(21, "a")).await.unwrap();
    assert!(
        matches!(&again, InsertOutcome::Replayed(twin) if twin.id == id(1)),
        "{again:?}"
    );
    assert_eq!(
        site.secrets.signing_key().await.unwrap(),
        Some(SecretKey([9; 32]))
    );
}

/// Everything that waits is done, under new tokens.
async fn assert_work_goes_on(site: &Site) {
    let job = &site.call_offs_due().await[0];
    assert_eq!((job.task, job.ticket.contains("job")), (id(12), true));
    assert!(!site.files_due().await.is_empty());
    let listed = site.keys.list_keys().await.unwrap();
    assert_eq!(
        listed.iter().filter(|key| key.is_usable(NOW + 6)).count(),
        3
    );
    site.fetch_all().await;
    let claims = site.claim(100).await;
    assert_eq!(claims.len(), 7);
    let files = [1, 2, 3].map(|number| site.files.any_file(file_id(number)));
    let files = futures_util::future::join_all(files).await;
    let are_there = files.into_iter().map(|file| file.unwrap().is_some());
    assert!(are_there.eq([true, true, false]));
    assert_eq!(site.sweep(NOW).await.files, 0, "a task needs the third");
    let of_six = claims.iter().find(|one| one.task.id == id(6)).unwrap();
    assert_eq!(of_six.task.attempt, 2);
    // Of the old store's tokens there were fewer than ten.
    let token = |lease: &kinora_store::Lease| lease.token;
    assert!(claims.iter().all(|claim| token(&claim.lease) > 9));
    site.submit(30, "one").await;
}

/// As [`open_import`], after one whose connection was just dropped: its lock is free in a moment.
async fn open_free_import(to: &str, export: &str) -> Result<Box<dyn StoreImport>, OpenError> {
    loop {
        match open_import(to, export).await {
            Err(OpenError::Unavailable(_)) => tokio::task::yield_now().await,
            opened => return opened,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_goes_on_where_it_stopped_and_nobody_uses_its_store_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(folder.path(), "from");
    let site = open_sqlite(&from).await;
    fill(&site).await;
    drop(site);
    let moved = exported(&from).await;
    for to in [sqlite(folder.path(), "to"), database().await] {
        let mut import = open_import(&to, "one").await.unwrap();
        let tasks = table("tasks");
        import.put(tasks, &moved.rows("tasks")[..5]).await.unwrap();
        let second = open_import(&to, "one").await.err().unwrap();
        assert!(
            matches!(second, OpenError::InUse(_) | OpenError::Unavailable(_)),
            "{second:?}"
        );
        drop(import);
        let options = OpenOptions::new(Arc::new(ManualClock::at(NOW)));
        let mut refused = vec![
            open(&to, &options).await.err(),
            open_export(&to).await.err(),
        ];
        if to.starts_with("sqlite:") {
            refused.push(open_source(&to).err());
            refused.push(open_keys(&to).err());
            refused.push(inspect(&to).err());
        }
        for error in refused {
            assert!(
                matches!(error, Some(OpenError::UnfinishedImport)),
                "{error:?}"
            );
        }
        let other = open_free_import(&to, "another").await.err();
        assert!(matches!(other, Some(OpenError::OtherImport)), "{other:?}");
        let mut import = open_free_import(&to, "one").await.unwrap();
        assert_eq!(import.stored(tasks).await.unwrap(), 5);
        for _ in 0..2 {
            moved.put_rest(&mut import).await;
        }
        import.finish().await.unwrap();
        assert_eq!(exported(&to).await, moved);
        let full = open_import(&to, "one").await.err();
        assert!(matches!(full, Some(OpenError::NotEmpty)), "{full:?}");
        assert_eq!(exported(&to).await, moved);
    }
}

/// Repeated, it would find a store that is not empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_whose_last_answer_is_lost_is_complete() {
    for loss in [Loss::Cut, Loss::Farewell] {
        let to = database().await;
        let proxy = Proxy::before(Server::shared().port());
        let import = open_import(&proxy.address_of(&to), "one").await.unwrap();
        proxy.loses.set(loss);
        let finished = tokio::time::timeout(PATIENCE, import.finish()).await;
        finished.unwrap().unwrap();
        assert!(proxy.loses.take().is_none(), "no answer was lost");
        open_now(&to).await.submit(1, "one").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_newer_version_are_carried_as_they_are_and_damaged_ones_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (from, back) = (sqlite(folder.path(), "from"), sqlite(folder.path(), "back"));
    let site = open_sqlite(&from).await;
    for number in 1..=3 {
        let key = format!("k{number}");
        site.submit_all([keyed(number, &key)]).await;
    }
    drop(site);
    let raw = rusqlite::Connection::open(from.strip_prefix("sqlite:").unwrap()).unwrap();
    let newer = "UPDATE tasks SET spec_version = 99, spec = '{\"model\": \"c3\",  \"new\": [1.0]}' WHERE seq = 2";
    raw.execute(newer, []).unwrap();
    let moved = exported(&from).await;
    let newer = &moved.lines("tasks")[1];
    assert!(newer.contains("  \\\"new"), "{newer}");
    let database = database().await;
    moved.bring_to(&database).await;
    let model = Server::shared().run(&database, "SELECT model FROM tasks WHERE seq = 2");
    assert_eq!(model, "c3");
    exported(&database).await.bring_to(&back).await;
    assert_eq!(exported(&back).await, moved);

    raw.execute("UPDATE tasks SET metadata = '{}' WHERE seq = 3", [])
        .unwrap();
    Server::shared().run(&database, "UPDATE tasks SET spec = '{' WHERE seq = 3");
    for url in [from, database] {
        let mut export = open_export(&url).await.unwrap();
        // Its idempotency key cannot be bound without it.
        for name in ["tasks", "idempotency"] {
            let rows = export.rows(table(name)).await.unwrap();
            assert!(rows[0].is_ok() && rows[1].is_ok(), "{rows:?}");
            let damaged = rows[2].as_ref().unwrap_err().to_string();
            assert!(damaged.contains(&id(3).to_string()), "{damaged}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_store_and_one_whose_tasks_are_all_gone_are_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (from, back) = (sqlite(folder.path(), "a"), sqlite(folder.path(), "b"));
    drop(open_sqlite(&from).await);
    let empty = exported(&from).await;
    empty.bring_to(&database().await).await;
    let site = open_sqlite(&from).await;
    site.submit(7, "one").await;
    site.tasks.delete("one", id(7)).await.unwrap();
    drop(site);
    let (moved, there) = (exported(&from).await, database().await);
    moved.bring_to(&there).await;
    exported(&there).await.bring_to(&back).await;
    assert_eq!(exported(&back).await, moved);
    open_now(&there).await.submit(8, "one").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_living_workers_or_anything_in_it_is_not_filled() {
    let url = database().await;
    let site = open_now(&url).await;
    site.keys.add_key(key(1), &actor("one")).await.unwrap();
    let refused = open_import(&url, "one").await.err();
    assert!(matches!(refused, Some(OpenError::NotEmpty)), "{refused:?}");
    assert_eq!(exported(&url).await.lines("api_keys").len(), 1);
    let folder = tempfile::tempdir().unwrap();
    for url in [database().await, sqlite(folder.path(), "store")] {
        let open = async || match url.starts_with("sqlite:") {
            true => open_sqlite(&url).await,
            false => open_now(&url).await,
        };
        told::add_webhooks(&open().await).await;
        let refused = open_import(&url, "one").await.err();
        assert!(matches!(refused, Some(OpenError::NotEmpty)), "{refused:?}");
        let kept = open().await.webhooks.webhooks().await.unwrap();
        assert_eq!(kept, told::webhooks());
    }
    let url = database().await;
    let living = "INSERT INTO workers VALUES ('w', '{}', 0, 9223372036854775807)";
    Server::shared().run(&url, living);
    let refused = open_import(&url, "one").await.err();
    assert!(matches!(refused, Some(OpenError::Served)), "{refused:?}");
}

/// What may happen to a random store.
async fn act(site: &Site, number: u64, what: u8) {
    site.clock.advance(1);
    let project = ["one", "two"][usize::from(what % 2)];
    match what % 8 {
        0 => {
            site.submit_all([keyed(number, &format!("k{number}"))])
                .await;
        }
        1 => site.submit_all([with_images(number, project, 2)]).await,
        2 => site.fetch_all().await,
        3 => drop(site.claim(1).await),
        4 => {
            for claim in site.claim(2).await {
                site.complete(&claim).await.unwrap();
            }
        }
        5 => {
            let last = site
                .tasks
                .cancel(project, id(number / 2), cancelled(), 5)
                .await;
            last.unwrap();
        }
        6 => {
            let gone = site.tasks.delete("one", id(number - 1)).await.unwrap();
            if let DeleteOutcome::Deleted { files } = gone {
                let done = files.into_iter().map(Chore::done).collect();
                site.tasks.complete_deletion(done).await.unwrap();
            }
        }
        _ => {
            let now_ms = site.clock.now_ms();
            site.sweep(now_ms + 10).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_stores_survive_both_ways() {
    tokio::task::block_in_place(|| {
        let config = Config {
            cases: 6,
            failure_persistence: None,
            ..Config::default()
        };
        let lives = proptest::collection::vec(any::<u8>(), 1..40);
        let tested = TestRunner::new(config).run(&lives, |life| {
            tokio::runtime::Handle::current().block_on(async {
                let folder = tempfile::tempdir().unwrap();
                let from = sqlite(folder.path(), "from");
                let site = open_sqlite(&from).await;
                for (number, what) in (1..).zip(life) {
                    act(&site, number, what).await;
                }
                drop(site);
                let (moved, there) = (exported(&from).await, database().await);
                moved.bring_to(&there).await;
                let back = sqlite(folder.path(), "back");
                exported(&there).await.bring_to(&back).await;
                assert_eq!(exported(&back).await, moved);
                drop(open_now(&there).await);
                drop(open_sqlite(&back).await);
            });
            Ok(())
        });
        tested.unwrap_or_else(|failure| panic!("{failure}"));
    });
}
