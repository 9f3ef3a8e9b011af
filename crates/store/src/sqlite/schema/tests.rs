//! Tests of the schema: how connections are set, who may open the store, and its rules.

use super::super::backup::BackupSnapshot;
use super::*;

#[test]
fn every_commit_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store.db");
    for _ in 0..2 {
        let conn = open_writer(&path, &SqliteOptions::default()).unwrap();
        let pragma = |name| -> String {
            let value = |row: &rusqlite::Row<'_>| row.get(0);
            let value: rusqlite::types::Value = conn.pragma_query_value(None, name, value).unwrap();
            format!("{value:?}")
        };
        assert_eq!(pragma("journal_mode"), r#"Text("wal")"#);
        // 2 is FULL: https://sqlite.org/pragma.html#pragma_synchronous
        assert_eq!(pragma("synchronous"), "Integer(2)");
        assert_eq!(pragma("foreign_keys"), "Integer(1)");
        assert_eq!(pragma("secure_delete"), "Integer(1)");
    }
}

#[test]
fn processes_that_open_a_new_store_together_make_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(open_writer(&path, &SqliteOptions::default()).unwrap()));
        }
    });
}

/// For a list of values SQLite would build one whenever it checks the rule.
#[test]
fn rules_are_checked_without_a_table_of_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let conn = open_writer(&path, &SqliteOptions::default()).unwrap();
    for (insert, known) in [
        (
            "INSERT INTO tasks (id, project, phase, progress, attempt, created_at_ms, spec_version, spec, metadata) \
             VALUES ('a', 'b', ?1, 0, 0, 0, 1, '', '')",
            "waiting",
        ),
        (
            "INSERT INTO chores (kind, subject) VALUES (?1, 'a')",
            "call_off",
        ),
        (
            "INSERT INTO deliveries (event, webhook, state) VALUES ('a', 'b', ?1)",
            "pending",
        ),
    ] {
        let mut plan = conn.prepare(&format!("EXPLAIN {insert}")).unwrap();
        let steps = plan.query_map([known], |step| step.get::<_, String>("opcode"));
        let steps: Vec<String> = steps.unwrap().collect::<Result<_, _>>().unwrap();
        let builds = steps.iter().any(|step| step == "OpenEphemeral");
        assert!(!builds, "{insert}");
        conn.execute(insert, [known]).unwrap();
        let refused = conn.execute(insert, ["other"]).unwrap_err();
        assert!(refused.to_string().contains("CHECK"), "{refused}");
    }
}

#[test]
fn a_snapshot_with_parts_of_a_stranger_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(open_writer(&path, &SqliteOptions::default()).unwrap());
    let check = || BackupSnapshot::open(&path).unwrap().check();
    check().unwrap();
    for (make, remove) in [
        (
            "CREATE TRIGGER more AFTER INSERT ON tasks BEGIN DELETE FROM api_keys; END",
            "DROP TRIGGER more",
        ),
        (
            "CREATE VIEW more AS SELECT * FROM api_keys",
            "DROP VIEW more",
        ),
    ] {
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(make).unwrap();
        let refused = check().unwrap_err().to_string();
        assert!(refused.contains("not Kinora's"), "{refused}");
        conn.execute_batch(remove).unwrap();
        check().unwrap();
    }
}

#[test]
fn connections_distrust_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let options = SqliteOptions::default();
    for open in [open_writer, open_checkpointer, open_source, open_reader] {
        let conn = open(&path, &options).unwrap();
        let setting = |setting| conn.db_config(setting).unwrap();
        assert!(setting(DbConfig::SQLITE_DBCONFIG_DEFENSIVE));
        assert!(!setting(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA));
    }
}
