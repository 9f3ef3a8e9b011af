//! What is said to be on disk was synced before it was said. A kill cannot show this, since the
//! page cache outlives a process; the order of system calls can, as `strace` writes it down.

use std::path::Path;

use kinora_test_e2e::{DataFolder, Setup};

use crate::support::quick;

const SUBMITS: usize = 25;
const CALLS: &str = "trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg,link,linkat,rename,renameat2,mkdir,mkdirat";

/// A service whose system calls are written to a file, in their order.
fn traced(data: &DataFolder, to: &Path) -> Setup {
    let to = to.display().to_string();
    // -D: the service is the child, and the tracer stands aside.
    let outer = [
        "strace", "-D", "-f", "-y", "-s", "5000", "-e", CALLS, "-o", &to,
    ];
    Setup::on(data).under(&outer)
}

/// A system call, from one line or from the two of an interrupted one.
#[derive(Debug)]
struct Call {
    name: String,
    text: String,
    /// Line on which it began, and on which it returned.
    began: usize,
    ended: usize,
}

fn calls(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    for (at, line) in log.lines().enumerate() {
        let Some((thread, text)) = line.split_once(' ') else {
            continue;
        };
        let text = text.trim_start();
        if text.starts_with("<... ") {
            if let Some(found) = open.iter().rposition(|(of, _)| *of == thread) {
                let (_, call) = open.remove(found);
                calls[call].ended = at;
                calls[call].text.push_str(text);
            }
            continue;
        }
        let Some((name, _)) = text.split_once('(') else {
            continue;
        };
        if text.ends_with("<unfinished ...>") {
            open.push((thread, calls.len()));
        }
        calls.push(Call {
            name: name.to_owned(),
            text: text.to_owned(),
            began: at,
            ended: at,
        });
    }
    calls
}

impl Call {
    fn is_sync_of(&self, path: &str) -> bool {
        let synced = matches!(&*self.name, "fsync" | "fdatasync");
        synced && self.text.contains(path) && self.text.ends_with("= 0")
    }

    fn is_write_to(&self, path: &str) -> bool {
        self.name == "pwrite64" && self.text.contains(path)
    }
}

#[test]
fn p01_every_acknowledgement_comes_after_the_sync_of_its_task() {
    let data = DataFolder::default();
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = traced(&data, log.path())
        .set("KINORA_WORKER_SLOTS", 1)
        .start();
    let client = server.client();
    let ids: Vec<String> = (0..SUBMITS)
        .map(|_| client.submit(&quick("kinora-b1")).id().to_owned())
        .collect();
    server.kill();
    let log = std::fs::read_to_string(log.path()).unwrap();
    let calls = calls(&log);
    for id in ids {
        // The answer is the first thing that names the task to the outside.
        let answer = calls
            .iter()
            .find(|call| {
                let sends = matches!(&*call.name, "write" | "writev" | "sendto" | "sendmsg");
                sends && call.text.contains("HTTP/1.1 200") && call.text.contains(&id[..20])
            })
            .unwrap_or_else(|| panic!("no answer names {id}"));
        // The page that holds the task's row; what is written later may be another's.
        let written = calls
            .iter()
            .find(|call| call.is_write_to("kinora.db-wal") && call.text.contains(&id))
            .unwrap_or_else(|| panic!("{id} was never written to the log"));
        let synced = calls.iter().any(|call| {
            let between = call.began > written.ended && call.ended < answer.began;
            between && call.is_sync_of("kinora.db-wal")
        });
        assert!(synced, "answered before the sync:\n{written:?}\n{answer:?}");
    }
}

#[test]
fn p04_a_result_is_synced_before_and_its_folders_after_it_gets_its_name() {
    let data = DataFolder::default();
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = traced(&data, log.path()).start();
    let client = server.client();
    let video = client.submit(&quick("kinora-a1"));
    client.wait_completed(video.id());
    server.kill();
    let log = std::fs::read_to_string(log.path()).unwrap();
    let calls = calls(&log);
    let named: Vec<&Call> = calls
        .iter()
        .filter(|call| {
            matches!(&*call.name, "link" | "linkat") && call.text.contains("/objects/videos/")
        })
        .collect();
    assert_eq!(named.len(), kinora_test_e2e::RESULT_FILES, "{named:#?}");
    for link in named {
        let paths: Vec<&str> = link.text.split('"').skip(1).step_by(2).collect();
        let (from, to) = (paths[0], paths[paths.len() - 1]);
        let before = |call: &&Call| call.ended < link.began;
        let bytes = calls
            .iter()
            .filter(before)
            .any(|call| call.is_sync_of(from));
        assert!(bytes, "{to} got its name before its bytes were synced");
        // Every folder from the file's up to the one of all objects may be new.
        let folders = Path::new(to).ancestors().skip(1);
        let folders: Vec<_> = folders
            .take_while(|folder| !folder.ends_with("results"))
            .collect();
        assert_eq!(folders.len(), 4, "{folders:?}");
        let synced = folders.iter().map(|folder| {
            let path = format!("{}>", folder.display());
            let mut after = calls.iter().filter(|call| call.began > link.ended);
            let sync = after.find(|call| call.is_sync_of(&path));
            sync.unwrap_or_else(|| panic!("{folder:?} was not synced after {to} was there"))
        });
        let name_ended = synced.map(|call| call.ended).max().unwrap();
        // Some commit after it says that the task is completed; none before the end can.
        let commit = calls
            .iter()
            .any(|call| call.began > name_ended && call.is_sync_of("kinora.db-wal"));
        assert!(commit, "nothing was committed after {to} was there");
    }
}

#[test]
fn p01_new_folders_of_data_and_results_are_synced_into_those_that_hold_them() {
    let data = DataFolder::default();
    let results = data.path().with_file_name("elsewhere").join("for/results");
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = traced(&data, log.path())
        .set("KINORA_RESULTS_URL", format!("file:{}", results.display()))
        .start();
    server.client().submit(&quick("kinora-b1"));
    server.kill();
    let log = std::fs::read_to_string(log.path()).unwrap();
    let calls = calls(&log);
    let answer = calls
        .iter()
        .position(|call| call.text.contains("HTTP/1.1 200"));
    let (before, _) = calls.split_at(answer.expect("the submit was answered"));
    let new = [
        data.path(),
        data.path().with_file_name("elsewhere"),
        results.parent().unwrap().to_owned(),
        results.clone(),
        results.join("objects"),
    ];
    for folder in new {
        let named = format!("\"{}\"", folder.display());
        let made = before.iter().find(|call| {
            call.name.starts_with("mkdir")
                && call.text.contains(&named)
                && call.text.ends_with("= 0")
        });
        let made = made.unwrap_or_else(|| panic!("{folder:?} was not made"));
        let holder = format!("{}>", folder.parent().unwrap().display());
        let synced = before
            .iter()
            .any(|call| call.began > made.ended && call.is_sync_of(&holder));
        assert!(synced, "{folder:?} may be gone after a power cut");
    }
}
