//! What was lost or changed behind the service's back is an error or a log line, never silence: an
//! older database put back, a torn log, missing results and keys, flipped bits.

mod flips;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kinora_test_e2e::{
    Client, DataFolder, Finished, RESULT_FILES, Server, Setup, Video, kinora, run,
};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::support::{quick, signing_key, slow};

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
    // The search tells of files that are an hour old.
    let written = SystemTime::now() - Duration::from_hours(2);
    for file in data.files_of_tasks() {
        fs::File::open(file).unwrap().set_modified(written).unwrap();
    }
    let server = accepting(&data).start();
    server.wait_for_log(&["WARN", "loss accepted"]);
    let client = server.client();
    let done = complete(&client, 8);
    // The results of the three that are not known are nobody's, and left.
    server.wait_for_log(&["WARN", "files left alone", "\"files\":15"]);
    let found = orphans(&data, &[]);
    assert_eq!(
        (&found["files"], &found["removed"]),
        (&json!(15), &json!(false))
    );
    assert!(found["bytes"].as_u64() > Some(0) && found["oldest_at"].as_u64() > Some(0));
    stop(server);
    // Also over a restart, which has accepted younger tasks before.
    let server = Setup::on(&data).start();
    server.wait_for_log(&["WARN", "files left alone", "\"files\":15"]);
    let row = doctor(&data, "orphans");
    assert!(
        row.starts_with("note") && row.contains("15 result files"),
        "{row}"
    );
    assert_eq!(orphans(&data, &["--remove"])["files"], 15);
    assert_eq!(orphans(&data, &[])["files"], 0);
    let named = RESULT_FILES * (known.len() + done.len());
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

/// A service that knows of no loss opens the address that was handed out.
fn opens(data: &DataFolder, done: &Video) {
    let server = Setup::on(data).start();
    let signed = done.text("result_url").replacen("http://", "", 1);
    let (_, target) = signed.split_once('/').unwrap();
    let reply = server.anonymous().get(&format!("/{target}"));
    assert_eq!(reply.status, 200, "{}", reply.shown());
    assert_eq!(server.logged(&["loss accepted"]), 0);
    stop(server);
}

fn forget_signing_key(data: &DataFolder) {
    let database = Connection::open(data.path().join("kinora.db")).unwrap();
    let removed = database.execute("DELETE FROM secrets WHERE name = 'signing_key'", []);
    assert_eq!(removed.unwrap(), 1);
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
    let (there, away) = (data.path().join("results"), data.path().join("away"));
    fs::rename(&there, &away).unwrap();
    refused(&data, &["volume mounted", "--accept-loss"]);
    let row = doctor(&data, "results");
    assert!(row.starts_with("BAD"), "{row}");
    // What the refused start has made, as below a mount point.
    let _ = fs::remove_dir_all(&there);
    fs::rename(&away, &there).unwrap();
    opens(&data, &done);
    // A version before the key in the database had it in a file.
    let key = signing_key(&data);
    let file = data.path().join("signing.key");
    forget_signing_key(&data);
    refused(&data, &["signing key", "--accept-loss"]);
    let row = doctor(&data, "signing key");
    assert!(row.starts_with("BAD"), "{row}");
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(&file, digits).unwrap();
    opens(&data, &done);
    assert_eq!(signing_key(&data), key);
    fs::remove_file(&file).unwrap();
    opens(&data, &done);
    forget_signing_key(&data);
    fs::remove_dir_all(data.path().join("results")).unwrap();
    let server = accepting(&data).start();
    server.assert_logged(&["WARN", "loss accepted"], 2);
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
        ("results", "all 10 files"),
        ("signing key", "in the database"),
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
        let lost = ["ERROR", "result file lost", video.id()];
        server.assert_logged(&lost, 1);
        let sheet = format!("{}?variant=spritesheet", video.content());
        assert_eq!(client.get(&sheet).status, 200);
    }
    let row = doctor(&data, "results");
    for words in ["BAD", "is missing", "bytes instead of"] {
        assert!(row.contains(words), "{words}: {row}");
    }
    // A deleted video is not lost.
    client.delete(&format!("/v1/videos/{}", done[0].id())).ok();
    client
        .get(&done[0].content())
        .refused(404, "video_not_found");
}
