//! The run that is recorded: clients that submit, cancel, delete and poll, until there is enough
//! to look at; then an orderly stop.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kinora_test_e2e::replay::{self, Disk, Loss, Recording};
use kinora_test_e2e::{DataFolder, Setup, until};

use crate::kills::asked;
use crate::orders::{Client, Order, Target, keep_busy};

const CLIENTS: u64 = 3;
/// What a run needs before it ends; `KINORA_POWER_COMPLETED` and `KINORA_POWER_ORDERS` ask for more.
const COMPLETED: u64 = 9;
const ORDERS: u64 = 150;
/// Leaves the machine to the engine, and keeps the recording small.
const PAUSE: Duration = Duration::from_millis(15);

/// A recorded run.
pub(super) struct Recorded {
    pub(super) recording: Recording,
    pub(super) key: String,
    pub(super) orders: Vec<Order>,
}

pub(super) fn record() -> Recorded {
    let data = DataFolder::default();
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = replay::record(Setup::on(&data), log.path()).start();
    let clients = serve_clients(&Target::of(&server));
    let process = server.process_id();
    // The second signal ends what still runs.
    server.terminate();
    server.wait_for_log(&["stopping"]);
    server.terminate();
    server.wait();
    // strace stands aside, and may be a moment behind.
    let last = format!("{process} +++ exited");
    let ends = || tail(log.path()).lines().any(|line| squeezed(line) == last);
    until("the end of the recording", || ends().then_some(()));
    let recording = Recording::read(log.path(), &data.path());
    println!(
        "recorded {} operations, {} answers, {} MiB",
        recording.ops.len(),
        recording.answers.len(),
        fs::metadata(log.path()).unwrap().len() >> 20
    );
    assert_complete(&recording, &data.path());
    Recorded {
        recording,
        key: data.key().unwrap().to_owned(),
        orders: clients.into_iter().flat_map(|one| one.orders).collect(),
    }
}

fn serve_clients(to: &Target) -> Vec<Client> {
    let wanted = |variable, default| asked(variable, default) as usize;
    let completed = wanted("KINORA_POWER_COMPLETED", COMPLETED);
    let orders = wanted("KINORA_POWER_ORDERS", ORDERS);
    let client = |name| Client::new(name, 0x2545_f491 + name);
    let mut clients: Vec<Client> = (0..CLIENTS).map(client).collect();
    keep_busy(&mut clients, to, PAUSE, |reached| {
        reached.completed >= completed && reached.orders >= orders
    });
    clients
}

/// The last lines of a file.
fn tail(path: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = fs::File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096)))
        .unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first three words of a line.
fn squeezed(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    words.join(" ")
}

/// The recorder has missed nothing: what the service left is what the recording makes.
fn assert_complete(recording: &Recording, folder: &Path) {
    let mut disk = Disk::default();
    disk.advance(recording, usize::MAX);
    let mut made: BTreeMap<PathBuf, Option<Vec<u8>>> = disk
        .after(Loss::Nothing)
        .into_iter()
        .map(|entry| (entry.path, entry.bytes))
        .collect();
    // The harness took it.
    made.remove(Path::new("first-key"));
    let mut left = BTreeMap::new();
    look_into(folder, Path::new(""), &mut left);
    // The index of the log is not recorded, and a run that the stop cut short may have been about to
    // write to the folders of unfinished files, which the next start empties.
    let counts = |path: &Path| {
        let unfinished = ["results/staging", "work"].map(|folder| path.starts_with(folder));
        !unfinished.contains(&true) && !path.to_string_lossy().ends_with("-shm")
    };
    left.retain(|path, _| counts(path));
    made.retain(|path, _| counts(path));
    let paths = |of: &BTreeMap<PathBuf, _>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(&made), paths(&left), "the recorder missed a name");
    for (path, bytes) in &left {
        assert!(
            made[path] == *bytes,
            "the recorder missed bytes of {path:?}"
        );
    }
}

fn look_into(root: &Path, path: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    let whole = root.join(path);
    if !whole.is_dir() {
        found.insert(path.to_owned(), Some(fs::read(whole).unwrap()));
        return;
    }
    found.insert(path.to_owned(), None);
    for entry in fs::read_dir(whole).unwrap() {
        look_into(root, &path.join(entry.unwrap().file_name()), found);
    }
}
