//! Restores: damage is refused, nothing is left half done; and a database that is copied alone after a
//! clean stop is whole.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_test_e2e::{DataFolder, Server, Setup, keys, run};

use crate::backups::{assert_fails_with, backup, restore};
use crate::support::{busy, quick};

/// A service with a completed task that has been stopped in order.
fn stopped_after_one_task() -> (DataFolder, String) {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    let (data, id) = (server.data().clone(), video.id().to_owned());
    server.terminate();
    assert!(server.wait().0.success());
    (data, id)
}

#[test]
fn p17_after_a_clean_stop_the_database_alone_holds_everything() {
    // Nothing is completed meanwhile, so that no results belong to the copy.
    let (server, _blocker) = busy();
    let client = server.client();
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..20 {
        ids.push(client.submit(&quick("kinora-b1")).id().to_owned());
    }
    let data = server.data().clone();
    server.terminate();
    server.wait_for_log(&["stopping"]);
    server.terminate();
    assert!(server.wait().0.success());
    assert!(data.files("kinora.db-").is_empty(), "{:?}", data.files(""));
    let alone = DataFolder::to_restore(&data);
    fs::create_dir(alone.path()).unwrap();
    let name = "kinora.db";
    fs::copy(data.path().join(name), alone.path().join(name)).unwrap();
    let server = Setup::on(&alone).start();
    let client = server.client();
    for id in &ids {
        client.video(id);
    }
}

/// Changes one bit in the middle of a file; of the description, in the hash of the database.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let at = match path.ends_with("backup.json") {
        true => {
            let text = String::from_utf8_lossy(&bytes);
            text.find("\"sha256\": \"").unwrap() + 11
        }
        false => bytes.len() / 2,
    };
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).unwrap();
    entries.find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return find(&path, name);
        }
        path.ends_with(name).then_some(path)
    })
}

#[test]
fn p17_a_restore_refuses_damage_and_leaves_nothing() {
    let (data, _) = stopped_after_one_task();
    let places = ["kinora.db", "video.mp4", "backup.json"];
    for (number, name) in places.into_iter().enumerate() {
        let to = data.beside(&format!("backup-{number}"));
        run(backup(&data, &to, &["--results", "copy"])).ok();
        flip(&find(&to, name).unwrap());
        let target = DataFolder::to_restore(&data);
        let done = run(restore(&to, &target));
        assert_fails_with(&done, "damaged");
        assert!(!target.path().exists(), "{name}");
    }
    let to = data.beside("incomplete");
    run(backup(&data, &to, &["--results", "copy"])).ok();
    fs::remove_file(find(&to, "thumbnail.webp").unwrap()).unwrap();
    let target = DataFolder::to_restore(&data);
    // A folder that was there stays, empty.
    fs::create_dir(target.path()).unwrap();
    assert_fails_with(&run(restore(&to, &target)), "missing");
    assert!(target.files("").is_empty() && target.path().exists());
}

/// A change that a stranger could make to a backup, at the place of one of its files or folders.
type Change = fn(&Path);

fn replace_by_fifo(path: &Path) {
    fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The same bytes, elsewhere.
fn replace_by_link(path: &Path) {
    let moved = path.with_extension("moved");
    fs::rename(path, &moved).unwrap();
    symlink(&moved, path).unwrap();
}

/// A length beyond every disk, without the bytes.
fn lengthen(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(1 << 42).unwrap();
}

#[test]
fn p17_a_restore_takes_regular_files_of_the_right_length_before_it_copies_any() {
    let (data, _) = stopped_after_one_task();
    let none_regular = "regular file";
    let changes: [(&str, Change, &str); 9] = [
        ("backup.json", replace_by_fifo, none_regular),
        ("backup.json", replace_by_link, none_regular),
        ("kinora.db", replace_by_fifo, none_regular),
        ("kinora.db", replace_by_link, none_regular),
        ("kinora.db", lengthen, "damaged"),
        ("results", replace_by_link, none_regular),
        ("video.mp4", replace_by_link, none_regular),
        ("video.mp4", replace_by_fifo, none_regular),
        ("video.mp4", lengthen, "damaged"),
    ];
    for (number, (name, change, why)) in changes.into_iter().enumerate() {
        let to = data.beside(&format!("backup-{number}"));
        run(backup(&data, &to, &["--results", "copy"])).ok();
        let place = Some(to.join(name)).filter(|path| path.exists());
        change(&place.or_else(|| find(&to, name)).unwrap());
        let target = DataFolder::to_restore(&data);
        assert_fails_with(&run(restore(&to, &target)), why);
        assert!(!target.path().exists(), "{name}");
    }
}

#[test]
fn a_restore_takes_an_empty_folder_only_and_one_that_was_interrupted_is_not_served() {
    let (data, id) = stopped_after_one_task();
    let to = data.beside("backup");
    run(backup(&data, &to, &[])).ok();
    assert_fails_with(&run(restore(&to, &data)), "not empty");
    for point in ["restore.synced:1", "restore.moved:1", "restore.moved:3"] {
        let target = DataFolder::to_restore(&data);
        let mut command = restore(&to, &target);
        command.env("CRASH_AT", point);
        assert!(!run(command).status.success());
        let refused = Setup::on(&target).try_start().unwrap_err();
        assert_fails_with(&refused, "has not ended");
        assert_fails_with(&keys(&target, &["list"]), "has not ended");
        run(restore(&to, &target)).ok();
        let server = Setup::on(&target).start();
        // The store's own, at once: results without it may be another store's.
        assert_eq!(target.files("objects/stores/").len(), 1);
        let video = server.client().video(&id);
        assert_eq!(video.status(), "completed");
        assert_eq!(server.client().get(&video.content()).status, 200);
    }
}
