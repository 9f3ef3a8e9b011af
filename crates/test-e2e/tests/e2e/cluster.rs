//! Many processes: API and workers apart, over PostgreSQL and S3. What one accepts another makes, nothing is lost or
//! made twice when any of them dies, and a client may talk to any of them.

mod bucket;
mod budgets;
mod cancels;
mod clocks;
mod day;
mod doctor;
mod events;
mod failover;
mod fetches;
mod kills;
mod outage;
mod previous;
mod rates;
mod server_clock;
mod traces;
mod turns;
mod upgrades;
mod views;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use kinora_test_e2e::{
    Client, DataFolder, Finished, RESULT_FILES, Server, Setup, Video, kinora, run, until,
};
use kinora_testkit::postgres::Server as Postgres;
use kinora_testkit::s3::TestS3;
use serde_json::Value;

use crate::support::{assert_plays, quick, slow};

/// How clients reach any of the APIs: the name of a proxy.
const BASE_URL: &str = "http://kinora.test";

/// A number that `./soak` sets to more.
fn setting<N: FromStr<Err: Debug>>(variable: &str, small: N) -> N {
    std::env::var(variable).map_or(small, |text| text.parse().unwrap())
}

/// A database, a bucket, and a key.
pub(crate) struct Cluster {
    database: String,
    s3: TestS3,
    key: String,
}

impl Cluster {
    fn on(database: String) -> Self {
        let mut cluster = Self::without_key(database);
        let key = cluster.command(&["keys", "create", "--name", "test"]);
        key.trim().clone_into(&mut cluster.key);
        cluster
    }

    fn without_key(database: String) -> Self {
        let cluster = Self {
            database,
            s3: TestS3::start(),
            key: String::new(),
        };
        let made = cluster.command(&["migrate"]);
        assert!(made.contains("Created the schema"), "{made}");
        cluster
    }

    pub(crate) fn new() -> Self {
        Self::on(Postgres::shared().database())
    }

    /// What a command beside the processes prints.
    fn command(&self, words: &[&str]) -> String {
        self.asked(words).ok()
    }

    /// The same, however it ends.
    fn asked(&self, words: &[&str]) -> Finished {
        let data = DataFolder::default();
        let mut command = kinora();
        command
            .args(words)
            .arg("--data")
            .arg(data.path())
            .env("KINORA_STORE_URL", &self.database);
        run(command)
    }

    /// A process on a machine of its own: it has nothing of the others but database and bucket.
    pub(crate) fn process(&self, setup: Setup) -> Setup {
        setup
            .set("KINORA_STORE_URL", &self.database)
            .set("KINORA_BASE_URL", BASE_URL)
            .set(
                "KINORA_RESULTS_URL",
                format!("s3://{}/kinora", TestS3::BUCKET),
            )
            .set("KINORA_RESULTS_S3_ENDPOINT", self.s3.endpoint())
            .set("KINORA_RESULTS_S3_ALLOW_HTTP", true)
            .set("AWS_ACCESS_KEY_ID", TestS3::KEY_ID)
            .set("AWS_SECRET_ACCESS_KEY", TestS3::SECRET)
            .set("SWEEP_SECONDS", 1)
            // Every process sweeps, and tests kill many.
            .set("KINORA_WORKER_ATTEMPTS_MAX", 1000)
    }

    pub(crate) fn machine(&self) -> DataFolder {
        DataFolder::with_key(&self.key)
    }

    /// A client of a project of this name.
    fn project(&self, api: &Server, name: &str) -> Client {
        let key = self.command(&["keys", "create", "--name", name, "--project", name]);
        api.client_with(key.trim())
    }

    fn api(&self) -> Server {
        let setup = Setup::on(&self.machine()).without_worker();
        self.process(setup).start()
    }

    /// An API that accepts as many tasks as a test has.
    fn api_of_many(&self) -> Server {
        self.api_of_many_on(Setup::on(&self.machine()))
    }

    /// The same, set up so.
    fn api_of_many_on(&self, setup: Setup) -> Server {
        self.process(setup.without_worker())
            .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 1_000_000)
            .set("KINORA_QUEUE_WAITING_MAX", 1_000_000)
            .start()
    }

    /// A worker whose clips are grey, and cost little.
    fn worker(&self) -> Server {
        let setup = Setup::on(&self.machine()).as_worker();
        self.process(setup).start()
    }

    /// A worker whose death is noticed soon.
    fn short_leased(&self) -> Server {
        let setup = Setup::on(&self.machine()).as_worker();
        let setup = self.process(setup).set("KINORA_WORKER_LEASE_SECONDS", 5);
        setup.start()
    }

    /// Results and kept references.
    fn objects(&self) -> Vec<String> {
        let mut keys = self.s3.keys();
        keys.retain(|key| !key.starts_with("kinora/stores/"));
        keys
    }

    pub(crate) fn workers(&self) -> Vec<Value> {
        let listed: Value = serde_json::from_str(&self.command(&["workers", "--json"])).unwrap();
        listed.as_array().unwrap().clone()
    }

    fn assert_no_secret_is_logged(&self, servers: &[&Server]) {
        for server in servers {
            for secret in [TestS3::SECRET, "X-Amz-Signature", &self.key] {
                assert!(!server.log().contains(secret), "{secret} was logged");
            }
        }
    }
}

/// Tasks that were completed, as the transactions that completed them have counted: one that was completed twice
/// counts twice.
fn completed(cluster: &Cluster) -> usize {
    let sum = "SELECT sum(completed) FROM tallies";
    let sum = Postgres::shared().run(&cluster.database, sum);
    sum.parse().unwrap()
}

/// The path of an address that clients reach through the proxy.
fn path(url: &str) -> &str {
    url.strip_prefix(BASE_URL).unwrap()
}

/// The client at another process, and what it sees there by itself: no process shows a step back, but one may be
/// behind another.
fn elsewhere(client: &Client, api: &Server) -> Client {
    client.forgetful().at(&api.base_url())
}

#[test]
fn two_apis_and_two_workers_make_every_task_once() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let workers = [cluster.worker(), cluster.worker()];
    let first = apis[0].client();
    let clients = [first.clone(), elsewhere(&first, &apis[1])];
    until("both workers to be listed", || {
        (cluster.workers().len() == 2).then_some(())
    });
    for client in &clients {
        let models = client.get("/v1/models").ok();
        assert_eq!(models["data"][0]["available"], true);
    }
    let submitted: Vec<String> = (0..12)
        .map(|number| {
            let body = quick(["kinora-a1", "kinora-b1"][number % 2]);
            // Under one key, to both: one task.
            let same = clients.each_ref().map(|client| {
                let submit = client.request("POST", "/v1/videos").json(&body);
                let key = format!("order-{number}");
                submit.header("idempotency-key", key).send().video()
            });
            assert_eq!(same[0].id(), same[1].id());
            same[0].id().to_owned()
        })
        .collect();
    let videos: Vec<Video> = submitted
        .iter()
        .enumerate()
        .map(|(number, id)| clients[number % 2].wait_completed(id))
        .collect();
    assert_made_once(&cluster, &workers, &submitted);
    // Signed by one API, opened by another.
    for (number, video) in videos.iter().enumerate() {
        let other = clients[(number + 1) % 2].at(&apis[(number + 1) % 2].base_url());
        let signed = other.get(path(video.text("result_url")));
        assert_eq!(signed.status, 200, "{}", signed.shown());
    }
    assert_plays(&clients[1], &videos[0]);
    let listed = clients[1].get("/v1/videos?limit=100").ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 12);
    clients[0]
        .delete(&format!("/v1/videos/{}", videos[0].id()))
        .ok();
    until("the deletion to be seen by the other API", || {
        let seen = clients[1].get(&format!("/v1/videos/{}", videos[0].id()));
        (seen.status == 404).then_some(())
    });
    cluster.assert_no_secret_is_logged(&[&apis[0], &apis[1], &workers[0], &workers[1]]);
    for worker in workers {
        worker.terminate();
        assert!(worker.wait().0.success());
    }
    assert!(cluster.workers().is_empty());
}

#[test]
fn apis_that_start_at_once_on_an_empty_database_make_one_first_key() {
    let cluster = Cluster::without_key(Postgres::shared().database());
    let machines: Vec<DataFolder> = (0..4).map(|_| DataFolder::with_key("none yet")).collect();
    let start = |machine: &DataFolder| {
        let setup = Setup::on(machine).without_worker();
        cluster.process(setup).start()
    };
    let apis: Vec<Server> = std::thread::scope(|scope| {
        let starting = machines
            .iter()
            .map(|machine| scope.spawn(|| start(machine)));
        let starting: Vec<_> = starting.collect();
        let started = starting.into_iter().map(|one| one.join().unwrap());
        started.collect()
    });
    let listed: Value =
        serde_json::from_str(&cluster.command(&["keys", "list", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let written = |machine: &&DataFolder| machine.path().join("first-key").exists();
    let [only] = machines.iter().filter(written).collect::<Vec<_>>()[..] else {
        panic!("not one key was handed over");
    };
    let told = || -> usize {
        let apis = apis.iter();
        apis.map(|api| api.logged(&["first API key written"])).sum()
    };
    until("it to be told", || (told() > 0).then_some(()));
    assert_eq!(told(), 1);
    let key = std::fs::read_to_string(only.path().join("first-key")).unwrap();
    for api in &apis {
        assert_eq!(api.client_with(key.trim()).get("/v1/models").status, 200);
    }
}

/// The tasks of these events in a worker's log.
fn tasks_of(worker: &Server, message: &str) -> Vec<String> {
    tasks_in(&worker.log(), message)
}

/// The same in the text of a log.
fn tasks_in(log: &str, message: &str) -> Vec<String> {
    let events = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let done = events.filter(|event| event["message"] == message);
    done.map(|event| event["span"]["task"].as_str().unwrap().to_owned())
        .collect()
}

/// The tasks of so many of these events in the workers' logs, sorted. A worker logs what clients may already have seen.
fn all_logged(workers: &[&Server], message: &str, count: usize) -> Vec<String> {
    until(message, || {
        let logged = workers.iter().map(|worker| tasks_of(worker, message));
        let mut logged: Vec<String> = logged.flatten().collect();
        logged.sort();
        (logged.len() >= count).then_some(logged)
    })
}

/// Each of these tasks was finished by one of the workers, once, and there are the files of one attempt of each.
fn assert_made_once<'w>(
    cluster: &Cluster,
    workers: impl IntoIterator<Item = &'w Server>,
    accepted: &[String],
) {
    let workers: Vec<&Server> = workers.into_iter().collect();
    let made = all_logged(&workers, "task finished", accepted.len());
    let mut accepted = accepted.to_vec();
    accepted.sort();
    assert_eq!(made, accepted, "each is published once");
    until("only files of results to be left", || {
        (cluster.objects().len() == RESULT_FILES * accepted.len()).then_some(())
    });
}

#[test]
fn a_worker_gives_its_task_back_when_it_must_stop_at_once() {
    let cluster = Cluster::new();
    let api = cluster.api();
    let client = api.client();
    let worker = cluster.worker();
    let monitor = worker.anonymous();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(monitor.get(path).status, 200, "{path}");
    }
    monitor.get("/v1/models").refused(404, "not_found");
    let video = client.submit(&slow());
    worker.wait_for_log(&["task started", video.id()]);
    worker.terminate();
    worker.wait_for_log(&["stopping:"]);
    worker.terminate();
    let (status, log) = worker.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(log.contains("stopping at once"), "{log}");
    assert!(!client.video(video.id()).is_finished());
    let second = cluster.worker();
    second.wait_for_log(&["task started", video.id()]);
}

#[test]
fn a_database_without_a_schema_is_refused_with_the_command_that_makes_it() {
    let data = DataFolder::default();
    let database = Postgres::shared().database();
    for word in ["serve", "worker", "workers"] {
        let mut command = kinora();
        command.arg(word).arg("--data").arg(data.path());
        let refused = run({
            command.env("KINORA_STORE_URL", &database);
            command
        });
        assert!(!refused.status.success(), "{word}: {refused:#?}");
        assert!(
            refused.stderr.contains("kinora migrate"),
            "{word}: {refused:#?}"
        );
    }
}
