//! Makes the stores of a release, with tasks in every state, that later programs must open:
//! `crates/store/tests/upgrade.rs` says what they promise. Run it with the binary of the release, before its schema
//! changes: `cargo test -p kinora-test-e2e --test e2e releases:: -- --ignored`. The stores hold the names of the machine and
//! of the user who ran it.

use std::fs;
use std::process::Command;

use kinora_test_e2e::{
    Client, DataFolder, Hold, Host, Receiver, Server, Setup, Video, WallClock, kinora, run, studio,
    until, workspace,
};
use kinora_testkit::postgres::Server as Postgres;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::clocks::{HOUR_S, watchful};
use crate::support::{cancel, narrow, narrow_on, reaching_from, slow, square};

/// Where the stores are kept.
const FIXTURES: &str = "crates/store/tests/fixtures";

const REMOVALS: &str = "SELECT count(*) FROM chores WHERE kind = 'remove_file'";
const PENDING: &str = "SELECT count(*) FROM deliveries WHERE state = 'pending'";

/// A data folder, and the database of its tasks unless that is in the folder.
#[derive(Default)]
struct Place {
    data: DataFolder,
    database: Option<String>,
}

impl Place {
    /// A service that makes one video at a time.
    fn setup(&self) -> Setup {
        let setup = watchful(reaching_from(narrow_on(&self.data))).set("CLOCK_SETTLE_MS", 1000);
        let url = self.database.iter();
        url.fold(setup, |setup, url| setup.set("KINORA_STORE_URL", url))
    }

    /// Sets the clock by which the store judges.
    fn set_clock(&self, clock: &WallClock, ahead_s: i64) {
        clock.jump_to(ahead_s);
        if let Some(url) = &self.database {
            Postgres::shared().move_clock(url, ahead_s);
        }
    }

    /// Runs a command on the store.
    fn kinora(&self, words: &[&str]) -> String {
        let mut command = kinora();
        command.args(words).arg("--data").arg(self.data.path());
        command.envs(self.database.iter().map(|url| ("KINORA_STORE_URL", url)));
        run(command).ok()
    }

    /// The one number that answers a question.
    fn number(&self, question: &str) -> i64 {
        if let Some(url) = &self.database {
            return Postgres::shared().run(url, question).parse().unwrap();
        }
        let path = self.data.path().join("kinora.db");
        let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        store.query_row(question, [], |row| row.get(0)).unwrap()
    }

    fn wait_for(&self, question: &str, number: i64) {
        until(question, || (self.number(question) == number).then_some(()));
    }
}

/// A task that the tests know by this name.
fn named(name: &str, mut body: Value) -> Value {
    body["metadata"] = json!({"case": name});
    body
}

fn submit_once(client: &Client, key: &str, body: &Value) -> Video {
    let request = client.request("POST", "/v1/videos");
    request
        .header("idempotency-key", key)
        .json(body)
        .send()
        .video()
}

/// A model that this other service makes.
fn far_model(upstream: &Server) -> String {
    let key = upstream.data().path().join("key");
    fs::write(&key, upstream.data().key().unwrap()).unwrap();
    format!(
        "[[engines]]\nname = \"far\"\nkind = \"remote\"\ndialect = \"kinora\"\nbase_urls = [\"{}/v1\"]\n\
         key_file = \"{}\"\nmodel = \"kinora-a1\"\nsound = true\npoll_milliseconds = 100\n\
         [[models]]\ncard = \"kinora-a1\"\nid = \"far-1\"\nengine = \"far\"\n\
         [[models]]\ncard = \"kinora-a1\"\nid = \"kinora-a1\"\nengine = \"storyboard\"\n\
         [[models]]\ncard = \"kinora-b1\"\nid = \"kinora-b1\"\nengine = \"storyboard\"\n",
        upstream.base_url(),
        key.display(),
    )
}

/// The tasks that end in the second life: completed, failed, deleted, cancelled with work at an upstream.
fn end_tasks(place: &Place, client: &Client, host: &Host, receiver: &Receiver, upstream: Server) {
    let with_frame = |url: String| {
        let mut body = square("kinora-b1");
        body["first_frame"] = json!(url);
        body
    };
    let completed = submit_once(client, "order-1", &named("completed", square("kinora-b1")));
    client.wait_completed(completed.id());
    let picture = host.serve("a.png", studio::flat("a.png", (640, 640)));
    let referenced = client.submit(&named("referenced", with_frame(picture)));
    client.wait_completed(referenced.id());
    let unreachable = with_frame(host.url("gone.png"));
    let unreachable = client.submit(&named("unreachable", unreachable));
    client.wait_for(unreachable.id(), "failed");
    let deleted = submit_once(client, "order-2", &named("deleted", square("kinora-b1")));
    client.wait_completed(deleted.id());
    receiver.wait_for(4);
    place.wait_for(PENDING, 0);
    client.delete(&format!("/v1/videos/{}", deleted.id())).ok();
    let mut far = slow();
    far["model"] = json!("far-1");
    let far = client.submit(&named("far", far));
    let has_ticket = match &place.database {
        Some(_) => "SELECT count(*) FROM tasks WHERE ticket IS NOT NULL",
        None => "SELECT count(*) FROM tasks WHERE kept IS NOT NULL",
    };
    place.wait_for(has_ticket, 1);
    upstream.kill();
    cancel(client, far.id());
    receiver.wait_for(5);
    place.wait_for(PENDING, 0);
}

/// The tasks that the second life leaves unfinished, and one that is cancelled while its webhook is away.
fn leave_tasks(place: &Place, [client, other]: [&Client; 2], host: &Host, receiver: &Receiver) {
    let running = client.submit(&named("running", slow()));
    client.wait_working(running.id());
    submit_once(client, "order-3", &named("waiting", square("kinora-b1")));
    let mut urgent = named("urgent", square("kinora-a1"));
    urgent["priority"] = json!("high");
    client.submit(&urgent);
    let mut fetched = named("fetched", square("kinora-b1"));
    fetched["first_frame"] = json!(host.url("a.png"));
    fetched["callback_url"] = json!(receiver.url("callback"));
    client.submit(&fetched);
    let at_hand = match &place.database {
        Some(_) => "fetch_state = 0",
        None => "references_ready = 1",
    };
    let fetched = "SELECT count(*) FROM tasks WHERE metadata LIKE '%fetched%' AND";
    place.wait_for(&format!("{fetched} {at_hand}"), 1);
    other.submit(&named("other", square("kinora-b1")));
    let mut fetching = named("fetching", square("kinora-b1"));
    fetching["first_frame"] = json!(host.drip("slow"));
    other.submit(&fetching);
    until("the fetch to begin", || {
        (host.drips("slow") > 0).then_some(())
    });
    let cancelled = client.submit(&named("cancelled", square("kinora-b1")));
    cancel(client, cancelled.id());
}

/// Three lives of a service, two hours ago, each of which is killed. In the first, a task completes whose result is kept
/// for an hour. In the second, tasks come to every other state. In the third, a task is claimed, and the two hours pass
/// at once: the service expires the first task, and dies when it has removed one of its files, so that chores are left.
fn fill(place: &Place) {
    let (clock, host, receiver) = (WallClock::ahead_by(0), Host::start(), Receiver::start());
    place.set_clock(&clock, -2 * HOUR_S);
    let first = place.setup().set("KINORA_RESULTS_RETENTION_HOURS", 1);
    let server = clock.start(first);
    let client = server.client();
    let expired = client.submit(&named("expired", square("kinora-b1")));
    client.wait_completed(expired.id());
    server.kill();

    let upstream = narrow().start();
    let second = place.setup().config(&far_model(&upstream));
    let server = clock.start(second);
    let client = server.client();
    let create = ["keys", "create", "--name", "other", "--project", "other"];
    let limits = ["--requests-per-minute", "600", "--unfinished-max", "5"];
    let other = place.kinora(&[&create[..], &limits].concat());
    let other = server.client_with(other.trim());
    place.kinora(&["keys", "create", "--name", "turned"]);
    place.kinora(&["keys", "rotate", "turned", "--grace", "24"]);
    place.kinora(&["keys", "create", "--name", "revoked"]);
    place.kinora(&["keys", "revoke", "revoked"]);
    place.kinora(&["webhooks", "add", "--url", &receiver.url("hook")]);
    place.kinora(&["webhooks", "add"]);
    end_tasks(place, &client, &host, &receiver, upstream);
    receiver.answer(503);
    leave_tasks(place, [&client, &other], &host, &receiver);
    place.wait_for("SELECT count(*) FROM deliveries WHERE status = 503", 1);
    place.wait_for(REMOVALS, 0);
    server.kill();

    let hold = Hold::at("worker.claimed", 1);
    // An embedded store first removes the five files that the run of the second life may have left.
    let file = if place.database.is_some() { 1 } else { 6 };
    let crash = format!("worker.swept_file:{file}");
    let server = clock.start(hold.over(place.setup().set("CRASH_AT", crash)));
    hold.wait();
    place.wait_for(REMOVALS, 0);
    place.set_clock(&clock, 0);
    let (status, log) = server.wait();
    assert!(!status.success(), "{log}");
}

#[test]
#[ignore = "makes the fixtures of a release"]
fn a_folder_of_a_release() {
    let place = Place::default();
    fill(&place);
    let folder = place.data.path();
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    names.retain(|name| name.to_string_lossy().starts_with("kinora.db"));
    names.sort();
    let mut pack = Command::new("tar");
    pack.args(["--owner=0", "--group=0", "-czf"]);
    pack.arg(workspace().join(FIXTURES).join("sqlite.tar.gz"));
    pack.arg("-C").arg(folder).args(names);
    run(pack).ok();
}

#[test]
#[ignore = "makes the fixtures of a release"]
fn a_database_of_a_release() {
    let server = Postgres::shared();
    let url = server.database();
    let place = Place {
        database: Some(url.clone()),
        ..Place::default()
    };
    place.kinora(&["migrate"]);
    fill(&place);
    server.reset_clock(&url);
    fs::write(
        workspace().join(FIXTURES).join("postgres.sql"),
        server.dump(&url),
    )
    .unwrap();
}
