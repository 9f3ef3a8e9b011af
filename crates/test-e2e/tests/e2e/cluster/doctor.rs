//! What `kinora doctor` says of a database that many processes share.

use kinora_test_e2e::until;
use kinora_testkit::postgres::{Server as Postgres, Settings};

use super::Cluster;

/// The line of the report about this.
fn line(cluster: &Cluster, row: &str) -> String {
    let report = cluster.asked(&["doctor"]);
    let of_row = |line: &&str| line.get(6..).is_some_and(|rest| rest.starts_with(row));
    let found = report.stdout.lines().find(of_row);
    found
        .unwrap_or_else(|| panic!("{row}: {report:#?}"))
        .to_owned()
}

#[test]
fn the_doctor_names_the_workers_of_a_shared_database_and_why_it_cannot_be_used() {
    let server = Postgres::start(Settings {
        fsync: true,
        ..Settings::default()
    });
    let mut cluster = Cluster::on(server.database());
    let _api = cluster.api();
    let database = line(&cluster, "database");
    assert!(
        database.starts_with("ok") && database.contains("usable"),
        "{database}"
    );
    let workers = line(&cluster, "workers");
    assert!(
        workers.starts_with("note") && workers.contains("none: accepted tasks wait"),
        "{workers}"
    );
    let _worker = cluster.worker();
    let counted = || {
        let workers = line(&cluster, "workers");
        (workers.starts_with("ok") && workers.contains("1 worker")).then_some(())
    };
    until("the worker to announce itself", counted);
    // Nobody listens there.
    cluster.database = "postgres://kinora@127.0.0.1:1/kinora".to_owned();
    let database = line(&cluster, "database");
    assert!(
        database.starts_with("BAD") && database.contains("refused"),
        "{database}"
    );
}

#[test]
fn p01_the_doctor_and_the_start_name_a_server_that_does_not_sync() {
    // The server of tests is one.
    let cluster = Cluster::new();
    let database = line(&cluster, "database");
    assert!(
        database.starts_with("BAD") && database.contains("fsync = off"),
        "{database}"
    );
    let api = cluster.api();
    api.wait_for_log(&[
        "WARN",
        "PostgreSQL may lose acknowledged tasks",
        "fsync = off",
    ]);
}
