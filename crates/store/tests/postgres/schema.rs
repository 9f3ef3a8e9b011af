//! Schemas and rows of other versions, and addresses that hold secrets.

use std::sync::Arc;

use kinora_contract::{ManualClock, TaskState};
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{
    EXPIRY, NOW, actor, claiming, id, sweep_at, with_images,
};
use kinora_store::{
    KeyScope, NewKey, OpenError, OpenOptions, StoreError, SweepRequest, migrate, open, open_keys,
    open_snapshot, open_source,
};
use kinora_testkit::postgres::Server;
use tokio::sync::Barrier;

use crate::harness::{database, exact, open_now};

async fn refused(url: &str) -> OpenError {
    let options = OpenOptions {
        postgres: exact(),
        ..OpenOptions::new(Arc::new(ManualClock::at(NOW)))
    };
    open(url, &options).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_is_migrated_by_command_alone() {
    let url = Server::shared().database();
    let error = refused(&url).await;
    assert!(
        matches!(error, OpenError::Unmigrated { found: 0, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("`kinora migrate`"), "{error}");
    // Of several at once one does it.
    let (first, second) = tokio::join!(migrate(&url), migrate(&url));
    let mut found = [first.unwrap().unwrap(), second.unwrap().unwrap()].map(|(found, _)| found);
    found.sort_unstable();
    assert_eq!(found[0], 0);
    assert!(found[1] > 0, "{found:?}");
    let site = open_now(&url).await;
    site.submit(1, "one").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_that_needs_a_newer_program_is_refused_and_left_alone() {
    let url = database().await;
    let server = Server::shared();
    let raise = "UPDATE schema_version SET version = 99, usable_from = 98";
    server.run(&url, raise);
    for error in [refused(&url).await, migrate(&url).await.unwrap_err()] {
        assert!(
            matches!(error, OpenError::NewerSchema { found: 99, .. }),
            "{error:?}"
        );
    }
    assert_eq!(server.run(&url, "SELECT version FROM schema_version"), "99");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_that_has_only_more_is_used() {
    let url = database().await;
    let server = Server::shared();
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    let add = "ALTER TABLE tasks ADD COLUMN colour text; ALTER TABLE projects ADD COLUMN label text; \
               UPDATE schema_version SET version = 99";
    server.run(&url, add);
    // By those that were there, and by those that come.
    site.submit(2, "one").await;
    let later = open_now(&url).await;
    for site in [&site, &later] {
        let claim = site.claim_one().await;
        site.complete(&claim).await.unwrap();
    }
    assert_eq!(migrate(&url).await.unwrap(), Some((99, 99)));
    assert_eq!(server.run(&url, "SELECT version FROM schema_version"), "99");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_newer_version_is_passed_over_and_never_misread() {
    let url = database().await;
    let site = open_now(&url).await;
    for number in 1..=3 {
        site.submit(number, "one").await;
    }
    let images = [4, 5].map(|number| with_images(number, "one", 1));
    site.submit_all(images).await;
    let newer = format!(
        "UPDATE tasks SET spec_version = 99 WHERE id IN ('{}', '{}')",
        id(1),
        id(4)
    );
    Server::shared().run(&url, &newer);
    assert_eq!(site.claim_one().await.task.id, id(2));
    let fetches = site.take(9).await;
    assert_eq!(
        fetches.iter().map(|one| one.task.id).collect::<Vec<_>>(),
        [id(5)]
    );
    assert_eq!(site.claim_one().await.task.id, id(3));
    assert!(site.claim(9).await.is_empty());
    assert!(!site.work.has_claimable(&claiming(1)).await.unwrap());
    let read = site.tasks.get("one", id(1)).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    // Nothing of it was changed; it can be deleted, and the sums follow.
    let phase = format!("SELECT phase FROM tasks WHERE id = '{}'", id(1));
    assert_eq!(Server::shared().run(&url, &phase), "waiting");
    for number in 1..=5 {
        site.tasks.delete("one", id(number)).await.unwrap();
    }
    let sums = "SELECT bytes, tasks, waiting, unfinished FROM projects";
    assert_eq!(Server::shared().run(&url, sums), "0|0|0|0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_task_is_not_claimable_and_hides_none_behind_it() {
    let url = database().await;
    let site = open_now(&url).await;
    let sees = async || site.work.has_claimable(&claiming(1)).await.unwrap();
    site.submit(1, "one").await;
    assert!(sees().await);
    Server::shared().run(&url, "UPDATE tasks SET spec = '{'");
    assert!(!sees().await);
    assert!(site.claim(9).await.is_empty());
    site.submit(2, "one").await;
    assert!(sees().await);
    assert_eq!(site.claim_one().await.task.id, id(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_task_ages_as_one_that_is_kept_for_longest() {
    let url = database().await;
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    let claim = site.claim_one().await;
    site.complete(&claim).await.unwrap();
    Server::shared().run(&url, "UPDATE tasks SET spec = '{'");
    let kept = SweepRequest {
        unreadable_ms: EXPIRY,
        ..sweep_at(EXPIRY)
    };
    assert_eq!(site.sweep_by(kept).await.expired, 0);
    assert_eq!(site.sweep(EXPIRY).await.expired, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_error_shows_a_password() {
    let port = Server::shared().port();
    for url in [
        format!("postgres://kinora:secret@127.0.0.1:{port}/missing"),
        format!("postgres://nobody:secret@127.0.0.1:{port}/postgres"),
        "postgres://kinora:secret@127.0.0.1:1/postgres".to_owned(),
        "postgres://kinora:secret@127.0.0.1:port/postgres".to_owned(),
        format!("postgres://kinora:secret@127.0.0.1:{port}/postgres?sslmode=require"),
    ] {
        let error = refused(&url).await;
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_on_files_name_another_way() {
    let url = database().await;
    let error = open_source(&url).err().unwrap().to_string();
    assert!(error.contains("pg_dump"), "{error}");
    assert!(open_snapshot(url.as_ref()).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_of_its_own_is_named_by_the_address() {
    let url = Server::shared().database();
    Server::shared().run(&url, "CREATE SCHEMA apart");
    let apart = format!("{url}?schema=apart");
    migrate(&apart).await.unwrap();
    let site = open_now(&apart).await;
    site.submit(1, "one").await;
    assert_eq!(
        Server::shared().run(&url, "SELECT count(*) FROM apart.tasks"),
        "1"
    );
    assert_eq!(site.task("one", 1).await.state, TaskState::Waiting);
    assert!(matches!(refused(&url).await, OpenError::Unmigrated { .. }));
}

fn key(number: u8) -> NewKey {
    NewKey {
        id: format!("key_{number}"),
        sha256: [number; 32],
        name: "made elsewhere".to_owned(),
        project: "one".to_owned(),
        scopes: vec![KeyScope::Read],
        models: None,
        requests_per_minute: Some(7),
        unfinished_max: None,
        budget: kinora_store::Budget::default(),
        created_at_ms: NOW,
        expires_at_ms: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_processes_that_start_at_once_one_adds_the_first_key() {
    let url = database().await;
    let together = Arc::new(Barrier::new(8));
    let mut adding = Vec::new();
    for number in 1..=8 {
        let (site, together) = (open_now(&url).await, together.clone());
        // It is connected from then on.
        assert!(
            !site
                .keys
                .revoke_key("none", NOW, &actor("one"))
                .await
                .unwrap()
        );
        adding.push(tokio::spawn(async move {
            together.wait().await;
            site.keys
                .add_first_key(key(number), &actor("one"))
                .await
                .unwrap()
        }));
    }
    let mut added = 0;
    for one in adding {
        added += u32::from(one.await.unwrap());
    }
    assert_eq!(added, 1);
    let stored = Server::shared().run(&url, "SELECT count(*) FROM api_keys");
    assert_eq!(stored, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_a_command_adds_are_known_to_the_service() {
    let empty = Server::shared().database();
    let keys = open_keys(&empty).unwrap();
    let error = keys.list_keys().await.unwrap_err().to_string();
    assert!(error.contains("`kinora migrate`"), "{error}");
    let url = database().await;
    let site = open_now(&url).await;
    let keys = open_keys(&url).unwrap();
    keys.add_key(key(1), &actor("one")).await.unwrap();
    let found = site.keys.find_key(&[1; 32], NOW).await.unwrap().unwrap();
    assert_eq!(found.key.requests_per_minute, Some(7));
    assert!(keys.revoke_key("key_1", NOW, &actor("one")).await.unwrap());
    let found = site.keys.find_key(&[1; 32], NOW).await.unwrap().unwrap();
    assert!(!found.is_usable(NOW));
}
