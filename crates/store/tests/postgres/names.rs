//! Statements that a connection knows by name: only where it leads to the server itself, and through changes of the
//! schema and lost connections.

use std::sync::Arc;

use kinora_contract::{ManualClock, TaskState};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, id};
use kinora_store::{DirectAddress, OpenOptions, PostgresOptions, migrate, open};
use kinora_testkit::postgres::{Pooler, Server, Settings};

use crate::harness::exact;

/// A server that logs each statement with its name, and a store in it.
async fn logging() -> (Server, String) {
    logging_by(&["log_statement=all"]).await
}

async fn logging_by(settings: &[&str]) -> (Server, String) {
    let server = Server::start(Settings {
        more: settings.iter().map(|&one| one.to_owned()).collect(),
        ..Settings::default()
    });
    let url = server.database();
    migrate(&url).await.unwrap();
    (server, url)
}

async fn opened(url: &str, options: PostgresOptions) -> Site {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = OpenOptions {
        postgres: options,
        ..OpenOptions::new(clock.clone())
    };
    Site::of(open(url, &options).await.unwrap(), clock)
}

/// What a service does, several times: each kind of statement gets its name. The next task has the number that is
/// returned.
async fn work(site: &Site, first: u64) -> u64 {
    for number in first..first + 4 {
        site.submit(number, "one").await;
        assert_eq!(site.task("one", number).await.state, TaskState::Waiting);
        let claim = site.claim_one().await;
        site.complete(&claim).await.unwrap();
    }
    first + 4
}

/// How many uses of names the log has.
fn named_uses(server: &Server) -> usize {
    let is_named = |line: &&str| line.contains("execute s") && !line.contains("execute <unnamed>");
    server.log().lines().filter(is_named).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_connection_knows_statements_by_name() {
    let (server, url) = logging().await;
    let site = opened(&url, exact()).await;
    work(&site, 1).await;
    let log = server.log();
    for statement in ["INSERT INTO tasks", "UPDATE tasks", "SELECT", "COMMIT"] {
        let is_one = |line: &str| line.contains("execute s") && line.contains(statement);
        assert!(log.lines().any(is_one), "{statement} has no name");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_given_anew_after_a_change_of_columns_or_a_lost_connection() {
    let (server, url) = logging().await;
    let site = opened(&url, exact()).await;
    let mut next = work(&site, 1).await;
    for change in [
        // The result of named statements is of another type now.
        "ALTER TABLE tasks ALTER COLUMN engine TYPE varchar",
        "ALTER TABLE projects ALTER COLUMN name TYPE varchar COLLATE \"C\"",
        "ALTER TABLE queue ALTER COLUMN alone_task TYPE varchar",
        "ALTER TABLE tasks ADD COLUMN colour text; CREATE INDEX ON tasks (colour)",
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    ] {
        tokio::task::block_in_place(|| server.run(&url, change));
        let uses = named_uses(&server);
        next = work(&site, next).await;
        next = work(&site, next).await;
        assert!(named_uses(&server) > uses, "no names after {change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_has_a_name_where_another_address_hears_notifications() {
    let (server, url) = logging().await;
    let options = PostgresOptions {
        listen_at: Some(DirectAddress(url.clone())),
        ..exact()
    };
    work(&opened(&url, options).await, 1).await;
    assert_eq!(named_uses(&server), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_has_a_name_behind_a_pooler_that_nobody_told_of() {
    let (server, url) = logging().await;
    for ignored in ["", "options"] {
        let Some(pooler) = Pooler::that_ignores(&server, 2, ignored) else {
            return;
        };
        let through = pooler.address_of(&url);
        // Two processes, whose names would be the same ones for other statements.
        let sites = [
            opened(&through, exact()).await,
            opened(&through, exact()).await,
        ];
        for (site, first) in sites.iter().zip([1, 101]) {
            work(site, first + 200 * ignored.len() as u64).await;
        }
        assert_eq!(named_uses(&server), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_compiles_no_statement_that_reads_tasks() {
    let (server, url) = logging_by(&[
        "session_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        "auto_explain.log_analyze=on",
        "jit_above_cost=0",
    ])
    .await;
    let pooled = Some(DirectAddress(url.clone()));
    for (listen_at, first) in [(None, 1), (pooled, 101)] {
        let options = PostgresOptions {
            listen_at,
            ..exact()
        };
        let site = opened(&url, options).await;
        let before = server.log().len();
        let next = work(&site, first).await;
        site.submit(next, "one").await;
        let positions = site.tasks.positions(&[id(next)]).await.unwrap();
        assert_eq!(positions, [Some(0)]);
        let claim = site.claim_one().await;
        site.complete(&claim).await.unwrap();
        let log = server.log();
        // Those that read no table are not worth a setting.
        let plans = log[before..].split("Query Text: ").skip(1);
        let plans: Vec<&str> = plans.filter(|plan| plan.contains("tasks")).collect();
        assert!(plans.iter().any(|plan| plan.contains("WITH RECURSIVE")));
        let compiled = plans.into_iter().find(|plan| plan.contains("JIT:"));
        assert_eq!(compiled, None);
    }
}
