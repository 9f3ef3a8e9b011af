//! What was lost or changed behind the service's back is an error or a log line, never silence: an
//! older database put back, a torn log, missing results and keys, flipped bits.

use std::fs;
use std::path::{Path, PathBuf};

use kinora_e2e::{Client, DataFolder, Finished, Server, Setup, Video, keys, kinora, run};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::support::{quick, slow};

/// Stops a service in order.
fn stop(server: Server) {
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
}

fn accepting(data: &DataFolder) -> Setup {
    Setup::on(data).set("KINORA_ACCEPT_LOSS", 1)
}

/// A start that must be refused, with all of `words`. Returns why.
fn refused(data: &DataFolder, words: &[&str]) -> String {
    let ended = Setup::on(data).try_start();
    let ended = ended.map(|server| server.log()).unwrap_err();
    assert!(!ended.status.success(), "{ended:#?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let why = ended
        .stderr
        .lines()
        .find(|line| line.starts_with("kinora: "));
    why.unwrap_or_else(|| panic!("{ended:#?}")).to_owned()
}

fn command(data: &DataFolder, words: &[&str]) -> Finished {
    let mut command = kinora();
    command.args(words).arg("--data").arg(data.path());
    run(command)
}

/// A line of the doctor's report: its mark and its words.
fn doctor(data: &DataFolder, row: &str) -> String {
    let report = command(data, &["doctor"]);
    let line = |line: &&str| line.get(6..).is_some_and(|rest| rest.starts_with(row));
    let found = report.stdout.lines().find(line);
    let found = found.unwrap_or_else(|| panic!("{row}: {report:#?}"));
    assert!(found.starts_with("ok") || !report.status.success() || found.starts_with("note"));
    found.to_owned()
}

/// The database and its log.
fn database(folder: &Path) -> Vec<PathBuf> {
    let names = ["kinora.db", "kinora.db-wal", "kinora.db-shm"];
    let all = names.map(|name| folder.join(name));
    all.into_iter().filter(|path| path.exists()).collect()
}

/// Somebody who reads: while they do, the log is not carried over into the database.
fn reading(database: &Path) -> Connection {
    let reader = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let tasks = reader.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
    assert!(tasks.unwrap() > 0);
    reader
}

fn complete(client: &Client, count: usize) -> Vec<Video> {
    let submitted: Vec<Video> = (0..count)
        .map(|at| client.submit(&quick(["kinora-a1", "kinora-b1"][at % 2])))
        .collect();
    let completed = submitted
        .iter()
        .map(|video| client.wait_completed(video.id()));
    completed.collect()
}

fn orphans(data: &DataFolder, words: &[&str]) -> Value {
    let words = [&["orphans", "--json"], words].concat();
    serde_json::from_str(&command(data, &words).ok()).unwrap()
}

#[test]
fn p03_an_older_database_put_back_fails_no_task_and_costs_no_result() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let known = complete(&server.client(), 1);
    stop(server);
    let kept = tempfile::tempdir().unwrap();
    for file in database(&data.path()) {
        fs::copy(&file, kept.path().join(file.file_name().unwrap())).unwrap();
    }
    let server = Setup::on(&data).start();
    complete(&server.client(), 3);
    stop(server);
    for file in database(&data.path()) {
        fs::remove_file(file).unwrap();
    }
    for file in database(kept.path()) {
        fs::copy(&file, data.path().join(file.file_name().unwrap())).unwrap();
    }

    refused(
        &data,
        &["changes are missing", "older copy", "--accept-loss"],
    );
    let server = accepting(&data).start();
    server.wait_for_log(&["WARN", "loss accepted"]);
    let client = server.client();
    let done = complete(&client, 8);
    // The results of the three that are not known are nobody's, and left.
    server.wait_for_log(&["WARN", "result files left alone", "\"files\":9"]);
    let found = orphans(&data, &[]);
    assert_eq!(
        (&found["files"], &found["removed"]),
        (&json!(9), &json!(false))
    );
    assert!(found["bytes"].as_u64() > Some(0) && found["oldest_at"].as_u64() > Some(0));
    stop(server);
    // Also over a restart, which has accepted younger tasks before.
    let server = Setup::on(&data).start();
    server.wait_for_log(&["WARN", "result files left alone", "\"files\":9"]);
    let row = doctor(&data, "orphans");
    assert!(
        row.starts_with("note") && row.contains("9 result files"),
        "{row}"
    );
    assert_eq!(orphans(&data, &["--remove"])["files"], 9);
    assert_eq!(orphans(&data, &[])["files"], 0);
    let named = 3 * (known.len() + done.len());
    assert_eq!(data.files_of_tasks().len(), named);
    for video in known.iter().chain(&done) {
        assert_eq!(server.client().get(&video.content()).status, 200);
    }
}

#[test]
fn p17_a_torn_log_is_refused_until_the_loss_is_accepted() {
    let data = DataFolder::default();
    let server = Setup::on(&data).set("KINORA_WORKER_SLOTS", 1).start();
    let client = server.client();
    client.wait_working(client.submit(&slow()).id());
    let reader = reading(&data.path().join("kinora.db"));
    let ids: Vec<String> = (0..40)
        .map(|_| client.submit(&slow()).id().to_owned())
        .collect();
    server.kill();
    drop(reader);
    let log = data.path().join("kinora.db-wal");
    let bytes = fs::metadata(&log).unwrap().len();
    let torn = fs::File::options().write(true).open(&log).unwrap();
    torn.set_len(bytes * 3 / 4).unwrap();
    let said = refused(
        &data,
        &["changes are missing", "Restore a backup", "--accept-loss"],
    );
    assert_eq!(refused(&data, &[]), said, "the refusal changed something");
    let row = doctor(&data, "database");
    assert!(
        row.starts_with("BAD") && row.contains("changes are missing"),
        "{row}"
    );
    let to = tempfile::tempdir().unwrap();
    let to = to.path().join("backup");
    let backup = command(&data, &["backup", to.to_str().unwrap()]);
    assert!(!backup.status.success() && !to.exists(), "{backup:#?}");
    assert!(backup.stderr.contains("changes are missing"), "{backup:#?}");

    let server = accepting(&data).start();
    server.wait_for_log(&["WARN", "loss accepted", "changes are missing"]);
    let client = server.client().forgetful();
    let there = |id: &&String| client.get(&format!("/v1/videos/{id}")).status == 200;
    let left = ids.iter().filter(there).count();
    assert!((1..ids.len()).contains(&left), "{left} of {}", ids.len());
    server.kill();
    Setup::on(&data).start();
}

#[test]
fn p17_missing_results_and_a_missing_signing_key_are_refused() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let done = complete(&server.client(), 1).remove(0);
    stop(server);
    // Restored results may lack the store's mark; their files are proof enough.
    fs::remove_dir_all(data.path().join("results/objects/stores")).unwrap();
    assert!(doctor(&data, "results").starts_with("ok"));
    stop(Setup::on(&data).start());
    assert_eq!(data.files("objects/stores/").len(), 1);
    for (name, row, words) in [
        ("results", "results", ["volume mounted", "--accept-loss"]),
        (
            "signing.key",
            "signing key",
            ["signing key", "--accept-loss"],
        ),
    ] {
        let (there, away) = (data.path().join(name), data.path().join("away"));
        fs::rename(&there, &away).unwrap();
        refused(&data, &words);
        let row = doctor(&data, row);
        assert!(row.starts_with("BAD"), "{row}");
        // What the refused start has made, as below a mount point.
        let _ = fs::remove_dir_all(&there);
        fs::rename(&away, &there).unwrap();
        let server = Setup::on(&data).start();
        assert_eq!(server.client().get(&done.content()).status, 200, "{name}");
        assert_eq!(server.logged(&["loss accepted"]), 0);
        stop(server);
    }
    fs::remove_file(data.path().join("signing.key")).unwrap();
    fs::remove_dir_all(data.path().join("results")).unwrap();
    let server = accepting(&data).start();
    assert_eq!(server.logged(&["WARN", "loss accepted"]), 2);
    server
        .client()
        .get(&done.content())
        .refused(500, "content_lost");
    stop(server);
    // Once is enough.
    Setup::on(&data).start();
}

#[test]
fn p17_a_lost_or_cut_file_is_an_error_of_the_server_and_logged_once() {
    let server = Server::start();
    let (data, client) = (server.data().clone(), server.client());
    let done = complete(&client, 2);
    for (row, words) in [
        ("database", "whole, with 2 tasks"),
        ("results", "all 6 files"),
        ("signing key", "signing.key"),
        ("orphans", "every result file"),
    ] {
        let row = doctor(&data, row);
        assert!(row.starts_with("ok") && row.contains(words), "{row}");
    }
    let file = |video: &Video, name: &str| {
        let mut found = data.files(name);
        found.retain(|path| path.to_string_lossy().contains(video.id()));
        found.remove(0)
    };
    fs::remove_file(file(&done[0], "video.mp4")).unwrap();
    let cut = file(&done[1], "video.mp4");
    let bytes = fs::metadata(&cut).unwrap().len();
    let short = fs::File::options().write(true).open(&cut).unwrap();
    short.set_len(bytes / 2).unwrap();
    for video in &done {
        let signed = video.text("result_url").to_owned();
        for target in [video.content(), signed] {
            let reply = client.get(&target);
            reply.refused(500, "content_lost");
            assert_eq!(reply.header("x-should-retry"), Some("false"));
        }
        let part = client.request("GET", &video.content());
        part.header("range", "bytes=0-9")
            .send()
            .refused(500, "content_lost");
        assert_eq!(client.video(video.id()).status(), "completed");
        assert_eq!(server.logged(&["ERROR", "result file lost", video.id()]), 1);
        let sheet = format!("{}?variant=spritesheet", video.content());
        assert_eq!(client.get(&sheet).status, 200);
    }
    let row = doctor(&data, "results");
    for words in ["BAD", "is gone", "bytes instead of"] {
        assert!(row.contains(words), "{words}: {row}");
    }
    // A deleted video is not lost.
    client.delete(&format!("/v1/videos/{}", done[0].id())).ok();
    client
        .get(&done[0].content())
        .refused(404, "video_not_found");
}

/// Seeds of the flips, and bits of each.
const SEEDS: u64 = 24;
const BITS: usize = 8;

/// What a client was told of a task, without addresses, which are signed anew.
fn told(client: &Client, id: &str) -> Result<Value, u16> {
    let reply = client.get(&format!("/v1/videos/{id}"));
    if reply.status != 200 {
        return Err(reply.status);
    }
    let mut object = reply.json();
    for name in ["result_url", "thumbnail_url", "url"] {
        object.as_object_mut().unwrap().remove(name);
    }
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
    let (mut refusals, mut words) = (0, 0);
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
        let said = server.logged(&["\"ERROR\""]) > 0;
        words += u64::from(said);
        let same = after == before && list.as_ref() == Ok(&ids);
        assert!(
            same || said,
            "seed {seed}: {list:?}\n{after:#?}\n{}",
            server.log()
        );
        for (id, (was, is)) in ids.iter().zip(before.iter().zip(&after)) {
            let right = is == was || matches!(is, Err(500));
            assert!(
                right,
                "seed {seed}, {id}: {was:#?} is {is:#?}\n{}",
                server.log()
            );
        }
    }
    assert!(
        refusals > 0 && words > 0,
        "{refusals} refused, {words} told"
    );
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
