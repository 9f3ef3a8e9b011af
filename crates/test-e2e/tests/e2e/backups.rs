//! Backups: whole whenever they are made, and never taken for whole when they are not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kinora_test_e2e::{
    Client, DataFolder, Finished, Form, Hold, RESULT_FILES, Server, Setup, kinora, run, studio,
    until,
};
use serde_json::{Value, json};

use crate::cli::bare;
use crate::support::{narrow, quick};

/// The command `kinora backup` of a data folder.
pub(crate) fn backup(data: &DataFolder, to: &Path, flags: &[&str]) -> Command {
    let mut command = kinora();
    command.arg("backup").arg(to).args(flags);
    command.arg("--data").arg(data.path());
    command
}

/// The command `kinora restore` into a data folder.
pub(crate) fn restore(from: &Path, data: &DataFolder) -> Command {
    let mut command = kinora();
    command
        .arg("restore")
        .arg(from)
        .arg("--data")
        .arg(data.path());
    command
}

/// A service on what a backup restores to.
pub(crate) fn restored(from: &Path, original: &DataFolder) -> Server {
    let data = DataFolder::to_restore(original);
    run(restore(from, &data)).ok();
    Setup::on(&data).start()
}

pub(crate) fn assert_fails_with(done: &Finished, part: &str) {
    assert!(!done.status.success(), "{done:#?}");
    assert!(done.stderr.contains(part), "{done:#?}");
}

#[test]
fn p17_a_backup_under_load_restores_every_task_that_was_acknowledged_before_it() {
    let server = narrow().start();
    let client = server.client();
    let done: Vec<_> = ["kinora-a1", "kinora-b1"]
        .map(|model| client.submit(&quick(model)).id().to_owned())
        .map(|id| client.wait_completed(&id))
        .into();
    let contents: BTreeMap<&str, Vec<u8>> = done
        .iter()
        .map(|video| (video.id(), client.get(&video.content()).body))
        .collect();
    let (acknowledged, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let to = server.data().beside("backup");
    let (before, report) = std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                let client = server.client();
                while !stop.load(Ordering::Relaxed) {
                    let reply = client.submit_json(&quick("kinora-b1"));
                    // A queue that is full is no answer that must last.
                    if reply.status == 200 {
                        let id = reply.video().id().to_owned();
                        acknowledged.lock().unwrap().push(id);
                    }
                }
            });
        }
        until("some submits", || {
            (acknowledged.lock().unwrap().len() >= 50).then_some(())
        });
        let before = acknowledged.lock().unwrap().clone();
        let report = run(backup(server.data(), &to, &["--json", "--verify"]));
        stop.store(true, Ordering::Relaxed);
        (before, report.ok())
    });
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["results"]["mode"], "link");
    assert!(
        report["results"]["files"].as_u64().unwrap() >= 10,
        "{report}"
    );
    assert_eq!(
        fs::metadata(&to).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let other = restored(&to, server.data());
    let client = other.client();
    for id in &before {
        client.video(id);
    }
    for video in &done {
        let again = client.video(video.id());
        assert_eq!(again.status(), "completed");
        let reply = client.get(&again.content());
        assert!(reply.body == contents[video.id()], "{}", video.id());
        // An address that was handed out before the backup opens after the restore.
        let (_, signed) = video.text("result_url").split_once("/v1/").unwrap();
        let reply = other.anonymous().get(&format!("/v1/{signed}"));
        assert!(reply.body == contents[video.id()], "{}", video.id());
    }
    let after = client.submit(&quick("kinora-b1"));
    client.video(after.id());
}

/// Where results lie by name, in a data folder or a backup.
fn videos(folder: &Path) -> Vec<fs::Metadata> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("video.mp4") {
                found.push(fs::metadata(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn results_are_linked_copied_or_left_where_they_are() {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    let data = server.data().clone();
    let made = |how: &str| {
        let to = data.beside(how);
        run(backup(&data, &to, &["--results", how])).ok();
        videos(&to)
    };
    let own = &videos(&data.path())[0];
    assert_eq!(made("link")[0].ino(), own.ino());
    assert_ne!(made("copy")[0].ino(), own.ino());
    assert!(made("reference").is_empty());
    // A service that is stopped is backed up as well.
    server.terminate();
    assert!(server.wait().0.success());
    let to = data.beside("stopped");
    run(backup(&data, &to, &[])).ok();
    assert!(data.files("kinora.db-").is_empty(), "{:?}", data.files(""));
    let again = run(backup(&data, &to, &[]));
    assert_fails_with(&again, "not empty");
    let other = restored(&to, &data);
    assert_eq!(other.client().video(video.id()).status(), "completed");
    // Without results the tasks are there, and the operator learns where their files are.
    let bare = DataFolder::to_restore(&data);
    let said = run(restore(&data.beside("reference"), &bare)).ok();
    assert!(
        said.contains(&data.path().join("results").display().to_string()),
        "{said}"
    );
}

#[test]
fn where_no_file_can_be_linked_all_are_copied_and_that_is_said() {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    let mount = server.data().beside("mount");
    fs::create_dir(&mount).unwrap();
    let inner = backup(
        server.data(),
        &mount.join("backup"),
        &["--json", "--results", "link"],
    );
    let mut command = bare("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs tmpfs \"$1\" && shift && exec \"$@\"")
        .arg("sh")
        .arg(&mount)
        .arg(inner.get_program())
        .args(inner.get_args());
    let report: Value = serde_json::from_str(&run(command).ok()).unwrap();
    let notes = report["notes"].to_string();
    assert!(notes.contains("copied"), "{report}");
    assert_eq!(report["results"]["files"], RESULT_FILES);
}

#[test]
fn an_interrupted_backup_is_never_taken_for_one() {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    let to = server.data().beside("backup");
    let partial = server.data().beside("backup.partial");
    for point in ["backup.snapshot", "backup.task", "backup.described"] {
        let mut command = backup(server.data(), &to, &[]);
        command.env("CRASH_AT", format!("{point}:1"));
        let done = run(command);
        assert!(!done.status.success(), "{point}: {done:#?}");
        assert!(!to.exists() && partial.exists(), "{point}");
        if point != "backup.described" {
            let empty = DataFolder::to_restore(server.data());
            assert_fails_with(&run(restore(&partial, &empty)), "is not a backup");
            assert!(!empty.path().exists());
        }
    }
    let doctor = || {
        let mut command = kinora();
        command.args(["doctor", "--data"]).arg(server.data().path());
        let said = run(command).stdout;
        let line = said.lines().find(|line| line.contains("backups"));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let line = doctor();
    assert!(
        line.starts_with("note") && line.contains("has not ended"),
        "{line}"
    );
    run(backup(server.data(), &to, &[])).ok();
    assert!(to.exists() && !partial.exists());
    let line = doctor();
    assert!(
        line.starts_with("ok") && line.contains(&to.display().to_string()),
        "{line}"
    );
}

/// A backup that is held after its snapshot was made, before it takes the first file.
fn held_backup<T>(server: &Server, to: &Path, meanwhile: impl FnOnce() -> T) -> (Finished, T) {
    let hold = Hold::at("backup.task", 1);
    let mut command = backup(server.data(), to, &["--json"]);
    let (name, value) = hold.variable();
    command.env(name, value);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(command));
        hold.wait();
        let done = meanwhile();
        hold.release();
        (running.join().unwrap(), done)
    })
}

#[test]
fn files_of_tasks_that_are_deleted_meanwhile_are_told_and_lost_ones_are_an_error() {
    let server = Server::start();
    let client = server.client();
    let [deleted, kept] = ["kinora-a1", "kinora-b1"].map(|model| {
        let video = client.submit(&quick(model));
        client.wait_completed(video.id())
    });
    let to = server.data().beside("backup");
    let (done, ()) = held_backup(&server, &to, || {
        client.delete(&format!("/v1/videos/{}", deleted.id())).ok();
        until("the files to go", || {
            server.data().files(deleted.id()).is_empty().then_some(())
        });
    });
    let report: Value = serde_json::from_str(&done.ok()).unwrap();
    assert_eq!(report["results"]["gone"][0], deleted.id());
    assert_eq!(report["results"]["files"], RESULT_FILES);
    let other = restored(&to, server.data());
    assert_eq!(other.client().video(kept.id()).status(), "completed");
    let files = server.data().files(kept.id());
    let lost = files.iter().find(|path| path.ends_with("video.mp4"));
    fs::remove_file(lost.unwrap()).unwrap();
    let to = server.data().beside("second");
    let done = run(backup(server.data(), &to, &[]));
    assert_fails_with(&done, "missing");
    assert_fails_with(&done, kept.id());
    assert!(!to.exists() && !server.data().beside("second.partial").exists());
}

/// A file with a part of its own, so that no two have the same bytes.
fn upload(client: &Client, colour: &str) -> Value {
    let picture = studio::picture("own.png", (320, 256), colour);
    let form = Form::default().part("; name=\"file\"; filename=\"own.png\"", &picture);
    client.request("POST", "/v1/files").form(&form).send().ok()
}

#[test]
fn p17_uploaded_files_are_restored_and_those_deleted_meanwhile_are_told() {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    let [kept, deleted] = ["red", "teal"].map(|colour| upload(&client, colour));
    let bytes = client.get(kept["url"].as_str().unwrap()).body;
    let to = server.data().beside("backup");
    let (done, ()) = held_backup(&server, &to, || {
        let path = format!("/v1/files/{}", deleted["id"].as_str().unwrap());
        client.delete(&path).ok();
        until("its bytes to go", || {
            (server.data().files("uploads").len() == 1).then_some(())
        });
    });
    let report: Value = serde_json::from_str(&done.ok()).unwrap();
    let key = format!("uploads/{}", deleted["id"].as_str().unwrap());
    assert_eq!(report["results"]["gone_uploads"], json!([key]));
    assert_eq!(report["results"]["files"], RESULT_FILES + 1);

    let other = restored(&to, server.data());
    let client = other.client();
    // The addresses that clients hold have another port here.
    let path = |file: &Value| {
        let (_, path) = file["url"].as_str().unwrap().split_once("/v1/").unwrap();
        format!("/v1/{path}")
    };
    let found = other.anonymous().get(&path(&kept));
    assert_eq!(found.status, 200, "{}", found.shown());
    assert!(found.body == bytes);
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(format!("{}{}", client.base_url(), path(&kept)));
    client.wait_completed(client.submit(&body).id());

    // The doctor names what is lost, and a backup refuses it.
    let doctor = || {
        let mut command = kinora();
        command.args(["doctor", "--data"]).arg(server.data().path());
        let said = run(command).stdout;
        let line = said.lines().find(|line| line.contains("  uploads"));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert!(doctor().starts_with("ok"), "{}", doctor());
    fs::remove_file(&server.data().files("uploads")[0]).unwrap();
    let line = doctor();
    let lost = format!("uploads/{} is missing", kept["id"].as_str().unwrap());
    assert!(line.starts_with("BAD") && line.contains(&lost), "{line}");
    let refused = run(backup(server.data(), &server.data().beside("second"), &[]));
    assert_fails_with(&refused, kept["id"].as_str().unwrap());
}
