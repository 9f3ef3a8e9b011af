//! An upgrade from an earlier program, which `KINORA_PREVIOUS_BINARY` names (see `./soak upgrades`): its database is
//! migrated while it works on it, and its processes are replaced one by one under load. Without that variable there is
//! nothing to show.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kinora_test_e2e::{Client, DataFolder, RESULT_FILES, Server, Setup, program, run, until};
use kinora_testkit::postgres::{Server as Postgres, Settings};
use kinora_testkit::s3::TestS3;
use serde_json::Value;

use super::{Cluster, setting, tasks_in};
use crate::support::square;

/// Tasks that are accepted between two steps; `KINORA_UPGRADE_TASKS` asks for another number in all.
const TASKS: usize = 60;
/// Steps of the upgrade, and one more after the last.
const STEPS: usize = 8;
/// Tasks that may be unfinished before the clients wait: the queue is short of workers now and then.
const UNFINISHED_MAX: usize = 30;

/// The processes, each of one of two programs, and what has become of those that are gone.
struct Machines<'c> {
    cluster: &'c Cluster,
    previous: &'c Path,
    apis: Vec<Server>,
    workers: Vec<Server>,
    /// Tasks that workers have finished which are no more.
    finished: Vec<String>,
    /// Where clients submit: a process that is to stop is taken out before.
    open: &'c Mutex<Vec<Client>>,
}

impl<'c> Machines<'c> {
    fn setup(&self, is_worker: bool, is_new: bool) -> Setup {
        let setup = Setup::on(&self.cluster.machine());
        let setup = match is_worker {
            true => setup.as_worker(),
            false => setup.without_worker(),
        };
        let setup = match is_new {
            true => setup,
            // What is `PLAIN_CLIPS` here had another name.
            false => setup.by(self.previous).set("GREY_CLIPS", 1),
        };
        let setup = self.cluster.process(setup);
        match is_worker {
            // A death is noticed soon.
            true => setup.set("KINORA_WORKER_LEASE_SECONDS", 5),
            false => setup
                .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 1_000_000)
                .set("KINORA_QUEUE_WAITING_MAX", 1_000_000),
        }
    }

    fn add_api(&mut self, is_new: bool) {
        let api = self.setup(false, is_new).start();
        self.open.lock().unwrap().push(api.client());
        self.apis.push(api);
    }

    fn add_worker(&mut self, is_new: bool) {
        self.workers.push(self.setup(true, is_new).start());
    }

    /// Starts a new API, and then stops the oldest one.
    fn replace_api(&mut self) {
        self.add_api(true);
        self.open.lock().unwrap().remove(0);
        let old = self.apis.remove(0);
        old.terminate();
        let (status, log) = old.wait();
        assert!(status.success(), "{log}");
    }

    fn replace_worker(&mut self) {
        self.add_worker(true);
        let old = self.workers.remove(0);
        old.terminate();
        let (status, log) = old.wait();
        assert!(status.success(), "{log}");
        self.finished.extend(tasks_in(&log, "task finished"));
    }

    /// Kills the oldest worker, which still has the previous program, and starts it again, as its supervisor would.
    fn restart_previous_worker(&mut self) {
        let old = self.workers.remove(0);
        // What it does not come to log is missing here.
        self.finished.extend(tasks_in(&old.log(), "task finished"));
        old.kill();
        self.add_worker(false);
    }

    /// The tasks that all workers have finished, sorted.
    fn all_finished(&self) -> Vec<String> {
        let logs = self.workers.iter().map(Server::log);
        let mut all: Vec<String> = logs
            .flat_map(|log| tasks_in(&log, "task finished"))
            .chain(self.finished.iter().cloned())
            .collect();
        all.sort();
        all
    }
}

/// What the clients see.
#[derive(Default)]
struct Seen {
    accepted: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Seen {
    /// Submits until it is to stop, at one API after the other. What is refused is repeated under the same key.
    fn submit(&self, open: &Mutex<Vec<Client>>, unfinished: impl Fn() -> usize) {
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            until("room in the queue", || {
                (unfinished() < UNFINISHED_MAX).then_some(())
            });
            // No process stops while it is asked.
            let open = open.lock().unwrap();
            let submit = open[number % open.len()].request("POST", "/v1/videos");
            let submit = submit.json(&square("kinora-b1"));
            let submit = submit.header("idempotency-key", format!("order-{number}"));
            let reply = submit.send();
            drop(open);
            // A process that is about to stop refuses.
            if reply.status == 503 {
                continue;
            }
            // Not judged: an earlier program lacks later fields.
            let id = reply.ok()["id"].as_str().unwrap().to_owned();
            self.accepted.lock().unwrap().push(id);
            number += 1;
        }
    }

    fn wait_for_more(&self, more: usize) {
        let count = || self.accepted.lock().unwrap().len();
        let before = count();
        until("more tasks to be accepted", || {
            (count() >= before + more).then_some(())
        });
    }
}

/// Ends the clients, also where a test fails.
struct Stop<'s>(&'s Seen);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

fn ended(client: &Client, id: &str) -> Option<Value> {
    let video = client.get(&format!("/v1/videos/{id}")).ok();
    let status = video["status"].as_str().unwrap();
    assert_ne!(status, "failed", "{video:#}");
    (status == "completed").then_some(video)
}

/// What a command of the previous program prints.
fn previously(binary: &Path, database: &str, words: &[&str]) -> String {
    let data = DataFolder::default();
    let mut command = program(binary);
    command.args(words).arg("--data").arg(data.path());
    command.env("KINORA_STORE_URL", database);
    run(command).ok()
}

#[test]
#[ignore = "needs an earlier program: ./soak upgrades builds one"]
fn an_upgrade_from_an_earlier_program_under_load_loses_nothing_and_makes_nothing_twice() {
    let previous = std::env::var_os("KINORA_PREVIOUS_BINARY");
    let previous = PathBuf::from(previous.expect("KINORA_PREVIOUS_BINARY names no program"));
    let postgres = Postgres::start(Settings::default());
    let database = postgres.database();
    let query = |statement: &str| postgres.run(&database, statement);
    previously(&previous, &database, &["migrate"]);
    let key = previously(&previous, &database, &["keys", "create", "--name", "test"]);
    let cluster = Cluster {
        database: database.clone(),
        s3: TestS3::start(),
        key: key.trim().to_owned(),
    };
    let before = query("SELECT version FROM schema_version");
    let (seen, open) = (Seen::default(), Mutex::default());
    let mut machines = Machines {
        cluster: &cluster,
        previous: &previous,
        apis: Vec::new(),
        workers: Vec::new(),
        finished: Vec::new(),
        open: &open,
    };
    for _ in 0..2 {
        machines.add_api(false);
        machines.add_worker(false);
    }
    let more = setting("KINORA_UPGRADE_TASKS", TASKS) / STEPS;
    let waiting = "SELECT count(*) FROM tasks WHERE place IS NOT NULL";
    let unfinished = || query(waiting).parse().unwrap();
    std::thread::scope(|scope| {
        let stop = Stop(&seen);
        scope.spawn(|| seen.submit(&open, unfinished));
        seen.wait_for_more(more);
        let migrated = cluster.command(&["migrate"]);
        assert!(
            migrated.contains("Updated the schema from version"),
            "{migrated}"
        );
        seen.wait_for_more(more);
        machines.restart_previous_worker();
        seen.wait_for_more(more);
        machines.add_api(false);
        machines.replace_api();
        seen.wait_for_more(more);
        for _ in 0..2 {
            machines.replace_worker();
            machines.replace_api();
            seen.wait_for_more(more);
        }
        drop(stop);
    });
    let accepted = seen.accepted.into_inner().unwrap();
    assert_complete(&machines, &accepted);
    let count = |of: &str| -> usize { query(of).parse().unwrap() };
    assert_eq!(count("SELECT count(*) FROM tasks"), accepted.len());
    assert_eq!(count("SELECT count(*) FROM idempotency"), accepted.len());
    println!(
        "upgraded from version {before} to {}: {} tasks",
        query("SELECT version FROM schema_version"),
        accepted.len()
    );
}

/// Every task is completed, its content can be read, no two workers have finished it, and no file of another attempt is
/// left.
fn assert_complete(machines: &Machines<'_>, accepted: &[String]) {
    let client = machines.open.lock().unwrap()[0].clone();
    for id in accepted {
        until("a task to be completed", || ended(&client, id));
        let content = client.get(&format!("/v1/videos/{id}/content"));
        assert_eq!(content.status, 200, "{}", content.shown());
    }
    let finished = machines.all_finished();
    let twice = finished.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "published twice");
    assert!(finished.len() > accepted.len() / 2, "{finished:?}");
    until("only files of results to be left", || {
        // Earlier programs published no frames.
        let files = 3 * accepted.len()..=RESULT_FILES * accepted.len();
        files
            .contains(&machines.cluster.objects().len())
            .then_some(())
    });
}
