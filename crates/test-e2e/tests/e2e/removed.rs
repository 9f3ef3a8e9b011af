//! Files that are removed or replaced under a running service: it stops acknowledging what would be lost,
//! says so, and loses nothing that it has acknowledged.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Server, Setup, until};
use serde_json::Value;

use crate::support::quick;

/// Removes a file of the store under submits. Returns what was acknowledged, once submits are refused.
fn remove(server: &Server, remove: impl FnOnce(PathBuf)) -> Vec<String> {
    let client = server.client();
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..10 {
        ids.push(client.submit(&quick("kinora-b1")).id().to_owned());
    }
    remove(server.data().path());
    let removed = Instant::now();
    let refused = until("a submit to be refused", || {
        let begun = removed.elapsed();
        let reply = client.submit_json(&quick("kinora-b1"));
        if reply.status != 200 {
            return Some(reply);
        }
        assert!(begun < Duration::from_secs(1), "taken after {begun:?}");
        ids.push(reply.video().id().to_owned());
        None
    });
    refused.refused(503, "storage_unavailable");
    for id in &ids {
        client.video(id);
    }
    client.get("/v1/videos").list();
    until("the operator to be told", || {
        // The service looks when somebody wants a change.
        let reply = client.submit_json(&quick("kinora-b1"));
        reply.refused(503, "storage_unavailable");
        (server.logged(&["ERROR", "were removed or replaced"]) > 0).then_some(())
    });
    let reply = client.submit_json(&quick("kinora-b1"));
    reply.refused(503, "storage_unavailable");
    assert_eq!(server.logged(&["ERROR", "were removed or replaced"]), 1);
    ids
}

/// Nothing acknowledged is lost, however the service ends.
fn assert_all_there(server: Server, ids: &[String]) {
    let data = server.data().clone();
    server.kill();
    let server = Setup::on(&data).start();
    for id in ids {
        server.client().video(id);
    }
}

#[test]
fn p17_a_removed_log_is_noticed_and_nothing_that_was_acknowledged_is_lost() {
    let server = Server::start();
    let ids = remove(&server, |data| {
        fs::remove_file(data.join("kinora.db-wal")).unwrap();
    });
    assert_all_there(server, &ids);
}

#[test]
fn p17_a_removed_lock_is_noticed_and_lets_no_second_process_in() {
    let server = Server::start();
    let ids = remove(&server, |data| {
        fs::remove_file(data.join("kinora.db.lock")).unwrap();
    });
    let second = Setup::on(server.data()).try_start().unwrap_err();
    assert!(second.stderr.contains("in use"), "{second:#?}");
    assert_all_there(server, &ids);
}

#[test]
fn p17_a_replaced_database_is_noticed_and_can_be_saved() {
    let server = Server::start();
    let ids = remove(&server, |data| {
        let database = data.join("kinora.db");
        fs::remove_file(&database).unwrap();
        fs::write(&database, "something else").unwrap();
    });
    // As the log says it: the open file is the whole database.
    let log = server.log();
    let told = log
        .lines()
        .find(|line| line.contains("were removed or replaced"));
    let told: Value = serde_json::from_str(told.unwrap()).unwrap();
    let message = told["message"].as_str().unwrap();
    let open = message
        .split_whitespace()
        .find(|word| word.starts_with("/proc/"));
    let data = server.data().clone();
    let saved = data.beside("saved.db");
    fs::copy(open.unwrap(), &saved).unwrap();
    server.kill();
    fs::rename(&saved, data.path().join("kinora.db")).unwrap();
    for name in ["kinora.db-wal", "kinora.db-shm"] {
        let _ = fs::remove_file(data.path().join(name));
    }
    let server = Setup::on(&data).start();
    for id in &ids {
        server.client().video(id);
    }
}
