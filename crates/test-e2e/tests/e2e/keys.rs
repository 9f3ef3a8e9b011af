//! API keys: made and revoked beside the running service, and what each may do.

use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Setup, WallClock, keys, until};
use serde_json::Value;

use crate::support::{quick, shared};

fn create(arguments: &[&str]) -> Client {
    let printed = keys(shared().data(), &[&["create"], arguments].concat()).ok();
    shared().client_with(printed.trim_end())
}

/// What `keys list` says of the key with this name.
fn listed(name: &str) -> Value {
    let list = keys(shared().data(), &["list", "--json"]).ok();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let found = list.iter().find(|key| key["name"] == name);
    found
        .unwrap_or_else(|| panic!("{name} is not in {list:#?}"))
        .clone()
}

#[test]
fn without_a_terminal_the_first_start_says_where_the_key_is() {
    let (printed, log) = (shared().greeting(), shared().log());
    let key = shared().client().key().to_owned();
    assert!(!printed.contains(&key), "the key is in the output");
    assert!(!log.contains(&key), "the key is in the log");
    let file = shared().data().path().join("first-key");
    let file = file.to_str().unwrap();
    assert!(log.contains(file), "{log}");
    for line in [
        format!("export KINORA_KEY=\"$(cat {file})\""),
        format!("rm {file}"),
        format!("curl {}/v1/videos", shared().base_url()),
    ] {
        assert!(printed.contains(&line), "{line} is not in {printed}");
    }
}

#[test]
fn a_new_key_is_printed_alone_and_works_at_once() {
    let printed = keys(shared().data(), &["create", "--name", "alone"]).ok();
    let key = printed.strip_suffix('\n').unwrap();
    let letters = key.strip_prefix("kinora_").unwrap();
    assert!(
        letters.len() == 36 && letters.bytes().all(|c| c.is_ascii_alphanumeric()),
        "{key}"
    );
    shared().client_with(key).get("/v1/models").ok();
    let list = keys(shared().data(), &["list"]).ok();
    assert!(list.contains("alone") && !list.contains(letters), "{list}");
    assert!(!shared().log().contains(letters), "the key is in the log");
}

#[test]
fn a_revoked_key_is_refused_within_a_second_or_so() {
    let sister = create(&["--name", "sister"]);
    let mut refused = Vec::new();
    // The machine may be busy with other tests: one of them must be as quick.
    for number in 0..10 {
        let name = format!("leaked {number}");
        let client = create(&["--name", &name]);
        client.get("/v1/videos").ok();
        let id = listed(&name)["id"].as_str().unwrap().to_owned();
        keys(shared().data(), &["revoke", &id]).ok();
        let revoked = Instant::now();
        until("the end of a revoked key", || {
            (client.get("/v1/videos").status == 401).then_some(())
        });
        refused.push(revoked.elapsed());
        client.get("/v1/videos").refused(401, "invalid_api_key");
        sister.get("/v1/videos").ok();
        assert_eq!(listed(&name)["state"], "revoked");
        assert_eq!(listed("sister")["state"], "usable");
        if refused.last() < Some(&Duration::from_secs(3)) {
            return;
        }
    }
    panic!("none was refused in time: {refused:?}");
}

#[test]
fn what_cannot_be_made_or_revoked_is_refused_by_name() {
    for (arguments, named) in [
        (
            &["create", "--name", "x", "--scopes", "videos:own"][..],
            "videos:own",
        ),
        (&["create", "--name", " "], "name"),
        (
            &["create", "--name", "x", "--models", "kinora-z9"],
            "kinora-a1",
        ),
        (
            &["create", "--name", "x", "--expires-in-days", "0"],
            "never work",
        ),
        (&["create", "--name", "first"], "keys rotate"),
        (&["rotate", "key_nobody"], "key_nobody"),
        (&["revoke", "key_nobody"], "key_nobody"),
    ] {
        let done = keys(shared().data(), arguments);
        assert!(
            !done.status.success() && done.stderr.contains(named),
            "{done:#?}"
        );
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn an_expired_key_is_refused() {
    let clock = WallClock::ahead_by(0);
    let server = clock.start(Setup::default());
    let create = ["create", "--name", "young", "--expires-in-days", "1"];
    let young = server.client_with(keys(server.data(), &create).ok().trim());
    young.get("/v1/videos").ok();
    clock.jump_to(24 * 60 * 60 + 60);
    until("the end of a key's life", || {
        (young.get("/v1/videos").status == 401).then_some(())
    });
    young.get("/v1/videos").refused(401, "invalid_api_key");
    server.client().get("/v1/videos").ok();
}

#[test]
fn a_rotated_key_hands_over_to_a_new_one() {
    let old = create(&["--name", "turn", "--project", "turns"]);
    let video = old.submit(&quick("kinora-b1"));
    let path = format!("/v1/videos/{}", video.id());
    let rotate = |more: &[&str]| {
        let printed = keys(shared().data(), &[&["rotate", "turn"], more].concat()).ok();
        shared().client_with(printed.strip_suffix('\n').unwrap())
    };
    let new = rotate(&[]);
    assert_eq!(new.get(&path).ok()["id"], video.id());
    until("the end of a rotated key", || {
        (old.get(&path).status == 401).then_some(())
    });
    let newest = rotate(&["--grace", "1"]);
    new.get(&path).ok();
    newest.delete(&path).ok();
    let list = keys(shared().data(), &["list", "--json"]).ok();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let ends: Vec<bool> = list
        .iter()
        .filter(|key| key["name"] == "turn" && key["state"] == "usable")
        .map(|key| !key["expires_at"].is_null())
        .collect();
    assert_eq!(ends, [false, true]);
    // Both are usable: a name alone does not say which is meant.
    let done = keys(shared().data(), &["rotate", "turn"]);
    assert!(done.stderr.contains("give the id"), "{done:#?}");
}

#[test]
fn the_log_says_who_has_changed_which_key() {
    let secret = create(&["--name", "noted", "--project", "noted"]);
    let id = listed("noted")["id"].as_str().unwrap().to_owned();
    let rotated = keys(shared().data(), &["rotate", &id]).ok();
    let new = listed("noted")["id"].as_str().unwrap().to_owned();
    keys(shared().data(), &["revoke", &new]).ok();
    let log = keys(shared().data(), &["log", "--project", "noted", "--json"]).ok();
    assert!(
        !log.contains(secret.key()) && !log.contains(rotated.trim()),
        "a secret is in the log"
    );
    let log: Vec<Value> = serde_json::from_str(&log).unwrap();
    let told: Vec<_> = log
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), &entry["key"]))
        .collect();
    let (id, new) = (Value::from(id), Value::from(new));
    let wanted = [("revoked", &new), ("rotated", &id), ("created", &id)];
    assert_eq!(told, wanted);
    assert_eq!(log[1]["new_key"], new);
    for entry in &log {
        let by = [&entry["user"], &entry["host"]].map(|part| part.as_str().unwrap());
        assert!(by.iter().all(|part| !part.is_empty()), "{entry}");
    }
    let table = keys(shared().data(), &["log"]).ok();
    // The first start has made a key too.
    let first = table.lines().last().unwrap();
    assert!(
        first.contains("created") && first.contains("  first "),
        "{table}"
    );
}

#[test]
fn the_list_says_when_a_key_was_last_used() {
    let client = create(&["--name", "seldom"]);
    assert_eq!(listed("seldom")["last_used_at"], Value::Null);
    client.get("/v1/videos").ok();
    let (used, made) = until("the note of a use", || {
        let key = listed("seldom");
        Some((key["last_used_at"].as_u64()?, key["created_at"].as_u64()?))
    });
    assert!((made..made + 60).contains(&used), "{made} {used}");
    let table = keys(shared().data(), &["list"]).ok();
    assert!(
        table.lines().next().unwrap().contains("LAST USED"),
        "{table}"
    );
}
