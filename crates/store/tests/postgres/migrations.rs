//! Migrations of databases that are in use.

use std::time::{Duration, Instant};

use kinora_store::conformance::bench::Bench as _;
use kinora_store::migrate;
use kinora_testkit::postgres::Server;

use crate::harness::{database, open_now};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that does what a test asks of it.
async fn connected(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until a statement like this waits for a lock of somebody else in the database at `url`.
async fn wait_for_waiting(url: &str, statement: &str) {
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND wait_event_type = 'Lock' AND query LIKE '{statement}%'"
    );
    let begun = Instant::now();
    while Server::shared().run(url, &waiting) == "0" {
        assert!(begun.elapsed() < PATIENCE, "{statement} does not wait");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Tables, columns, indexes and settings.
fn described(url: &str) -> String {
    let text = "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns \
                WHERE table_schema = 'public' ORDER BY 1, 2; \
                SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2; \
                SELECT relname, reloptions FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace \
                ORDER BY 1; SELECT version, usable_from, indexed FROM schema_version";
    Server::shared().run(url, text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_first_version_becomes_what_a_new_one_is() {
    let (url, server) = (Server::shared().database(), Server::shared());
    server.run(
        &url,
        include_str!("../../../../migrations/postgres/0001_tasks.sql"),
    );
    server.run(&url, "CREATE TABLE schema_version (version bigint NOT NULL); INSERT INTO schema_version VALUES (1)");
    let (found, known) = migrate(&url).await.unwrap().unwrap();
    assert_eq!(found, 1);
    let new = database().await;
    assert_eq!(described(&url), described(&new));
    assert!(described(&new).ends_with(&format!("{known}|1|{known}")));
    let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    assert_eq!(server.run(&url, invalid), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_accepted_and_made_while_a_migration_builds_an_index() {
    let (url, server) = (database().await, Server::shared());
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    // A migration whose index was interrupted: what it left is there, and no use.
    let interrupt = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tasks_of_project_by_end'::regclass; \
                     UPDATE schema_version SET indexed = 1";
    server.run(&url, interrupt);
    // An index waits for whoever writes, and others must not wait behind it.
    let writing = connected(&url).await;
    writing
        .batch_execute("BEGIN; LOCK TABLE tasks IN ROW EXCLUSIVE MODE")
        .await
        .unwrap();
    let migrating = tokio::spawn({
        let url = url.clone();
        async move { migrate(&url).await.unwrap().unwrap() }
    });
    wait_for_waiting(&url, "%INDEX").await;
    for number in 2..=20 {
        site.submit(number, "one").await;
        let claim = site.claim_one().await;
        site.complete(&claim).await.unwrap();
    }
    assert!(!migrating.is_finished());
    writing.batch_execute("COMMIT").await.unwrap();
    let (found, known) = migrating.await.unwrap();
    assert_eq!(found, known);
    let index = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'tasks_of_project_by_end'::regclass; \
                 SELECT indexed = version FROM schema_version";
    assert_eq!(server.run(&url, index), "t\nt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_waits_for_a_table_holds_up_others_for_a_moment_only() {
    let (url, server) = (database().await, Server::shared());
    open_now(&url).await.submit(1, "one").await;
    let back = "ALTER TABLE tasks DROP COLUMN trace, DROP COLUMN price; ALTER TABLE webhooks DROP COLUMN dropped; \
         ALTER TABLE tallies DROP COLUMN cost_micros; DROP TABLE spending, budget_day; \
         ALTER TABLE api_keys DROP COLUMN budget_per_day, DROP COLUMN budget_per_month, DROP COLUMN budget_id; \
         DROP TABLE upload_uses, uploads, pauses; UPDATE schema_version SET version = 5, indexed = 5";
    server.run(&url, back);
    // A report reads the table for long.
    let reading = connected(&url).await;
    reading
        .batch_execute("BEGIN; SELECT count(*) FROM tasks")
        .await
        .unwrap();
    let migrating = tokio::spawn({
        let url = url.clone();
        async move { migrate(&url).await.unwrap().unwrap() }
    });
    wait_for_waiting(&url, "%ALTER TABLE tasks").await;
    let writing = connected(&url).await;
    let write = "SET statement_timeout = '30s'; UPDATE tasks SET progress = progress";
    writing.batch_execute(write).await.unwrap();
    assert!(!migrating.is_finished());
    reading.batch_execute("COMMIT").await.unwrap();
    let (found, known) = migrating.await.unwrap();
    assert!(found == 5 && known > 5, "{found} {known}");
}
