//! Random bits that flip in the database and its log.

use std::fs;
use std::path::Path;

use kinora_test_e2e::{Client, DataFolder, Setup, keys};
use serde_json::{Value, json};

use super::complete;
use crate::dice::Dice;
use crate::support::slow;

/// Seeds of the flips, and bits of each.
const SEEDS: u64 = 24;
const BITS: usize = 8;

/// The task as a client sees it, without addresses, which are signed anew.
fn told(client: &Client, id: &str) -> Result<Value, u16> {
    let reply = client.get(&format!("/v1/videos/{id}"));
    if reply.status != 200 {
        return Err(reply.status);
    }
    let mut object = reply.json();
    let object_fields = object.as_object_mut().unwrap();
    object_fields.retain(|name, _| !name.ends_with("url") && !name.ends_with("urls"));
    Ok(object)
}

fn listed(client: &Client) -> Result<Vec<String>, u16> {
    let mut ids: Vec<String> = Vec::new();
    loop {
        let after = ids.last().map(|id| format!("&after={id}"));
        let reply = client.get(&format!("/v1/videos?limit=7{}", after.unwrap_or_default()));
        if reply.status != 200 {
            return Err(reply.status);
        }
        let page = reply.json();
        let page_ids = page["data"].as_array().unwrap().iter();
        ids.extend(page_ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        if page["has_more"] == false {
            ids.sort_unstable();
            return Ok(ids);
        }
    }
}

fn flip(file: &Path, dice: &mut Dice) {
    let mut bytes = fs::read(file).unwrap();
    for _ in 0..BITS {
        let bit = dice.below(bytes.len() as u64 * 8);
        bytes[usize::try_from(bit / 8).unwrap()] ^= 1 << (bit % 8);
    }
    fs::write(file, bytes).unwrap();
}

/// Whatever bits a disk flips: the start is refused, or the service says what it cannot read, or
/// nothing that was acknowledged has changed.
#[test]
fn p17_flipped_bits_are_refused_or_told_or_harmless() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let client = server.client();
    complete(&client, 2);
    for at in 0..40 {
        let mut body = slow();
        body["metadata"] = json!({"order": format!("number {at}")});
        let video = client.submit(&body);
        client
            .post(&format!("/v1/videos/{}/cancel", video.id()))
            .ok();
    }
    let ids = listed(&client).unwrap();
    let before: Vec<_> = ids.iter().map(|id| told(&client, id)).collect();
    // As a kill leaves it: all of it in the log. And as a checkpoint does: none of it.
    server.kill();
    let carried = DataFolder::copy_of(&data);
    carry_log(&carried);
    let mut refusals = 0;
    for seed in 0..SEEDS {
        let copy = DataFolder::copy_of([&data, &carried][usize::from(seed % 2 == 1)]);
        // The log may have been carried over by then.
        let log = copy.path().join("kinora.db-wal");
        let is_filled = fs::metadata(&log).is_ok_and(|log| log.len() > 0);
        let file = if seed.is_multiple_of(2) && is_filled {
            log
        } else {
            copy.path().join("kinora.db")
        };
        flip(&file, &mut Dice(seed * 0x9e37 + 1));
        let server = match Setup::on(&copy).try_start() {
            Ok(server) => server,
            Err(ended) => {
                assert!(ended.stderr.contains("kinora: "), "seed {seed}: {ended:#?}");
                assert!(
                    !ended.stderr.contains("panicked"),
                    "seed {seed}: {ended:#?}"
                );
                refusals += 1;
                continue;
            }
        };
        let client = server.client().forgetful();
        let after: Vec<_> = ids.iter().map(|id| told(&client, id)).collect();
        let list = listed(&client);
        // The key's own row: it is unknown, another project's, or has another limit.
        let is_keyless = |is: &Result<Value, u16>| matches!(is, Err(401 | 403 | 404 | 429));
        if after.iter().all(is_keyless) {
            continue;
        }
        let same = after == before && list.as_ref() == Ok(&ids);
        if !same {
            println!("seed {seed}: {list:?}\n{after:#?}");
            server.wait_for_log(&["\"ERROR\""]);
        }
        for (id, (was, is)) in ids.iter().zip(before.iter().zip(&after)) {
            let right = is == was || matches!(is, Err(500));
            assert!(
                right,
                "seed {seed}, {id}: {was:#?} is {is:#?}\n{}",
                server.log()
            );
        }
    }
    assert!(refusals > 0);
}

/// A bit of what a client said, which the database's own structure does not depend on: the start finds nothing, the
/// read does.
#[test]
fn p17_a_flipped_bit_of_a_task_is_told_when_it_is_read() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let client = server.client();
    let ids = ["hit", "whole"].map(|word| {
        let mut body = slow();
        body["metadata"] = json!({"order": word.repeat(20)});
        let video = client.submit(&body);
        client
            .post(&format!("/v1/videos/{}/cancel", video.id()))
            .ok();
        video.id().to_owned()
    });
    let before = ids.each_ref().map(|id| told(&client, id));
    server.kill();
    carry_log(&data);
    let file = data.path().join("kinora.db");
    let mut bytes = fs::read(&file).unwrap();
    let words = "hit".repeat(20).into_bytes();
    let is_there = |at: &usize| bytes[*at..].starts_with(&words);
    let places: Vec<usize> = (0..bytes.len()).filter(is_there).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(&file, bytes).unwrap();
    let server = Setup::on(&data).start();
    let client = server.client().forgetful();
    let after = ids.each_ref().map(|id| told(&client, id));
    assert_eq!(after, [Err(500), before[1].clone()]);
    server.wait_for_log(&["\"ERROR\""]);
}

/// Carries the log into the database, as a stop in order does.
fn carry_log(data: &DataFolder) {
    // The last connection that is closed does so.
    keys(data, &["list"]).ok();
    let log = fs::metadata(data.path().join("kinora.db-wal"));
    assert!(
        log.map_or(0, |log| log.len()) == 0,
        "the log was not carried over"
    );
}
