//! System calls that fail: `strace` makes the real process's calls to its disk fail, one in a few, while
//! clients submit, cancel, delete and poll. It refuses what it cannot store, and what it accepted is
//! completed once the disk works again.

use std::path::Path;
use std::time::{Duration, Instant};

use kinora_test_e2e::{DataFolder, Server, Setup};

use crate::kills::asked;
use crate::orders::{
    Client, Target, faults_of_database, files_that_are_not_whole, keep_busy, listed,
};

const CLIENTS: u64 = 3;
/// Seconds that the calls of one round fail for; `KINORA_INJECTED_SECONDS` asks for more.
const SECONDS: u64 = 4;
/// Errors that a round must have brought before it ends.
const INJECTED_MIN: usize = 3;
/// Runs of a task by default; every round ends with a kill, which may take one more.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// What fails in each round, as `strace --inject` takes it; `when` counts the calls of each thread. Results
/// come first: after some deaths in a row the service may wait before it takes a task.
const ROUNDS: [&[&str]; 8] = [
    &["fsync:error=EIO:when=1+3", "linkat:error=EIO:when=1+3"],
    &["?mkdir,mkdirat,linkat,?unlink,unlinkat,?rmdir:error=EROFS:when=1+2"],
    &[
        "pwrite64:error=ENOSPC:when=20+60",
        "copy_file_range:error=ENOSPC:when=1+3",
    ],
    &["openat,fdatasync,fsync,?mkdir,mkdirat,linkat:error=EROFS:when=2+4"],
    &[
        "openat:error=EMFILE:when=2+3",
        "accept4:error=EMFILE:when=5+5",
    ],
    &["fdatasync:error=EIO:when=3+3"],
    &["pwrite64:error=EIO:when=10+40"],
    &["openat:error=EIO:when=3+4", "ftruncate:error=EIO:when=1+2"],
];

/// The shell becomes the tracer when the test asks for it: so it is the service's parent, which may trace
/// it everywhere. The service goes when it goes.
const SCRIPT: &str = "setpriv --pdeathsig KILL \"$0\" \"$@\" & \
    until [ -e \"$INJECT\" ]; do sleep 0.05; done; \
    exec strace -f -qq -s 0 -e trace=\"$INJECT_CALLS\" $INJECT_RULES -o \"$INJECT\" -p $!";

/// A service whose calls fail as soon as `log` is there.
fn failing(data: &DataFolder, rules: &[&str], log: &Path) -> Server {
    let calls: Vec<&str> = rules
        .iter()
        .filter_map(|rule| Some(rule.split_once(':')?.0))
        .collect();
    let rules: Vec<String> = rules
        .iter()
        .map(|rule| format!("--inject={rule}"))
        .collect();
    setup(data)
        .set("INJECT", log.display())
        .set("INJECT_CALLS", calls.join(","))
        .set("INJECT_RULES", rules.join(" "))
        .under(&["sh", "-c", SCRIPT])
        .start()
}

fn setup(data: &DataFolder) -> Setup {
    // Each round ends with a kill: these deaths are no crash loop.
    Setup::on(data)
        .set("KINORA_WORKER_ATTEMPTS_MAX", ATTEMPTS + ROUNDS.len())
        .set("START_PAUSE_SECONDS_MAX", 0)
}

/// Errors so far.
fn injected(log: &Path) -> usize {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    log.matches("(INJECTED)").count()
}

/// One round; it ends with a kill in the middle of it all.
fn fail(data: &DataFolder, rules: &[&str], clients: &mut [Client]) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("injected");
    let server = failing(data, rules, &log);
    let to = Target::of(&server);
    std::fs::write(&log, "").unwrap();
    let seconds = Duration::from_secs(asked("KINORA_INJECTED_SECONDS", SECONDS));
    let begun = Instant::now();
    keep_busy(clients, &to, PAUSE, |_| {
        begun.elapsed() >= seconds && injected(&log) >= INJECTED_MIN
    });
    println!("{rules:?}: {} errors", injected(&log));
    let service = server.children();
    assert_eq!(service.len(), 1, "{service:?}: {}", server.log());
    server.kill_child(service[0]);
    server.wait();
}

#[test]
fn p01_p11_calls_that_fail_lose_no_task_and_end_none() {
    let data = DataFolder::default();
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|name| Client::new(name, 0x5851_f42d + name))
        .collect();
    // The first key is made while everything works.
    setup(&data).start().kill();
    for rules in ROUNDS {
        fail(&data, rules, &mut clients);
    }
    let server = setup(&data).start();
    let to = Target::of(&server);
    let wrong: Vec<String> = clients.iter_mut().flat_map(|one| one.settle(&to)).collect();
    assert!(
        wrong.is_empty(),
        "{} orders:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let tasks = listed(&server.client().forgetful()).unwrap();
    let orders = clients.iter().flat_map(|client| &client.orders);
    let (kept, all) = (
        orders.clone().filter(|order| !order.was_to_be_deleted()),
        orders.count(),
    );
    assert_eq!(tasks.len(), kept.count(), "one task for each order");
    let completed = tasks.values().filter(|task| task["status"] == "completed");
    let completed = completed.count();
    assert_eq!(files_that_are_not_whole(&tasks, &to), [""; 0]);
    println!("{all} orders, {completed} completed and kept");
    assert!(completed > 0, "nothing was ever completed");
    server.kill();
    assert_eq!(faults_of_database(&data.path()), None);
}
