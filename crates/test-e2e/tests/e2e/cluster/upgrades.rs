//! A database that a later version has migrated, while processes of this version work on it. There is no later version
//! yet: its migration adds what a migration may add, and its tasks have a spec of a later version.

use kinora_test_e2e::{DataFolder, Setup, kinora, run, until};
use kinora_testkit::postgres::Server as Postgres;

use super::{Cluster, all_logged, assert_made_once};
use crate::support::square;

/// What earlier programs need not know of.
const ADDITIONS: &str = "BEGIN;
    ALTER TABLE tasks ADD COLUMN colour text, ADD COLUMN weight bigint NOT NULL DEFAULT 7;
    ALTER TABLE projects ADD COLUMN label text;
    CREATE TABLE labels (name text PRIMARY KEY, task text REFERENCES tasks (id) ON DELETE CASCADE);
    CREATE INDEX tasks_by_colour ON tasks (colour) WHERE colour IS NOT NULL;
    UPDATE schema_version SET version = version + 1;
    COMMIT";

fn sql(cluster: &Cluster, statement: &str) -> String {
    Postgres::shared().run(&cluster.database, statement)
}

#[test]
fn processes_one_version_back_go_on_while_the_schema_is_migrated_under_them() {
    let cluster = Cluster::new();
    let api = cluster.api();
    let workers = [cluster.worker(), cluster.worker()];
    let client = api.client();
    let submit = || client.submit(&square("kinora-b1")).id().to_owned();
    let mut ids: Vec<String> = (0..6).map(|_| submit()).collect();
    client.wait_completed(&ids[0]);
    sql(&cluster, ADDITIONS);
    ids.extend((0..6).map(|_| submit()));
    for id in &ids {
        client.wait_completed(id);
    }
    assert_made_once(&cluster, &workers, &ids);
    // One of the same version may start, and has nothing to migrate.
    let [first, second] = workers;
    first.kill();
    let migrated = cluster.command(&["migrate"]);
    assert!(migrated.contains("up to date, at version"), "{migrated}");
    let third = cluster.worker();
    second.kill();
    let id = submit();
    client.wait_completed(&id);
    assert_eq!(all_logged(&[&third], "task finished", 1), [id]);
}

#[test]
fn tasks_of_a_later_version_wait_for_a_process_that_knows_them() {
    let cluster = Cluster::new();
    let api = cluster.api();
    let client = api.client();
    let ids: Vec<String> = (0..4)
        .map(|_| client.submit(&square("kinora-b1")).id().to_owned())
        .collect();
    let later = format!(
        "UPDATE tasks SET spec_version = spec_version + 1 WHERE id = '{}'",
        ids[0]
    );
    sql(&cluster, &later);
    let worker = cluster.worker();
    for id in &ids[1..] {
        client.wait_completed(id);
    }
    client
        .get(&format!("/v1/videos/{}", ids[0]))
        .refused(500, "internal_error");
    let phase = format!("SELECT phase, attempt FROM tasks WHERE id = '{}'", ids[0]);
    assert_eq!(sql(&cluster, &phase), "waiting|0");
    sql(&cluster, &later.replace('+', "-"));
    client.wait_completed(&ids[0]);
    assert_made_once(&cluster, [&worker], &ids);
}

#[test]
fn a_schema_that_needs_a_later_version_is_refused_by_a_start_and_by_migrate() {
    let cluster = Cluster::new();
    let api = cluster.api();
    let client = api.client();
    let known: u32 = sql(&cluster, "SELECT version FROM schema_version")
        .parse()
        .unwrap();
    let raise = "UPDATE schema_version SET version = version + 1, usable_from = version + 1";
    sql(&cluster, raise);
    for word in ["serve", "worker", "migrate", "workers"] {
        let data = DataFolder::default();
        let mut command = kinora();
        command.arg(word).arg("--data").arg(data.path());
        command.env("KINORA_STORE_URL", &cluster.database);
        let refused = run(command);
        assert!(!refused.status.success(), "{word}: {refused:#?}");
        let says = format!(
            "the store's schema has version {}, this program knows {known}",
            known + 1
        );
        assert!(refused.stderr.contains(&says), "{word}: {refused:#?}");
    }
    let ended = cluster
        .process(Setup::on(&cluster.machine()).as_worker())
        .try_start();
    assert!(!ended.unwrap_err().status.success());
    // Whoever is there already goes on: an upgrade that needs all others to end says so in its notes.
    until("a submit to be taken", || {
        (client.submit_json(&square("kinora-b1")).status == 200).then_some(())
    });
}
