//! Moves: from one database and a folder to another database and a bucket, and back. Ids, keys, results and signed
//! addresses stay; what was interrupted goes on; what is damaged, or would overwrite something, is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_test_e2e::{
    Client, DataFolder, RESULT_FILES, Receiver, Server, Setup, Video, keys, kinora, run,
};
use kinora_testkit::postgres::Server as Postgres;
use kinora_testkit::s3::TestS3;
use serde_json::Value;

use crate::backups::assert_fails_with;
use crate::support::{reaching_from, square};
use crate::uploads::day;
use crate::webhooks::{add, list, verifies};

const BASE_URL: &str = "http://kinora.test";

/// Where a service keeps its things, by variables.
#[derive(Clone, Default)]
struct Variables(Vec<(&'static str, String)>);

impl Variables {
    /// A database with a schema, and results in a bucket.
    fn shared(database: &str, s3: &TestS3) -> Self {
        let variables = Self(vec![("KINORA_STORE_URL", database.to_owned())]).and_results(s3);
        run(variables.command(&["migrate"])).ok();
        variables
    }

    fn and_results(mut self, s3: &TestS3) -> Self {
        let results = format!("s3://{}/kinora", TestS3::BUCKET);
        self.0.extend([
            ("KINORA_RESULTS_URL", results),
            ("KINORA_RESULTS_S3_ENDPOINT", s3.endpoint()),
            ("KINORA_RESULTS_S3_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", TestS3::KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", TestS3::SECRET.to_owned()),
        ]);
        self
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = kinora();
        command.args(words).envs(self.0.iter().cloned());
        command
    }

    fn over(&self, setup: Setup) -> Setup {
        let variables = self.0.iter();
        variables
            .fold(reaching_from(setup), |setup, (name, value)| {
                setup.set(name, value)
            })
            .set("KINORA_BASE_URL", BASE_URL)
    }

    fn start(&self, data: &DataFolder) -> Server {
        self.over(Setup::on(data)).start()
    }

    fn export(&self, data: &DataFolder, to: &Path, flags: &[&str]) -> Command {
        let mut command = self.command(&["export"]);
        command.arg(to).args(flags).arg("--data").arg(data.path());
        command
    }

    fn import(&self, from: &Path, data: &DataFolder) -> Command {
        let mut command = self.command(&["import"]);
        command.arg(from).arg("--data").arg(data.path());
        command
    }
}

fn stop(server: Server) {
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
}

fn keyed(client: &Client) -> Video {
    let submit = client
        .request("POST", "/v1/videos")
        .json(&square("kinora-b1"));
    submit.header("idempotency-key", "order-17").send().video()
}

/// What a client holds of a completed task: its id, its signed address, and the bytes there.
struct Made {
    id: String,
    url: String,
    bytes: Vec<u8>,
}

impl Made {
    fn of(client: &Client, video: &Video) -> Self {
        let url = video.text("result_url");
        let url = url.strip_prefix(BASE_URL).unwrap().to_owned();
        let bytes = client.get(&url).body;
        assert!(!bytes.is_empty());
        let id = video.id().to_owned();
        Self { id, url, bytes }
    }

    fn assert_kept(&self, server: &Server) {
        let video = server.client().video(&self.id);
        assert_eq!(video.status(), "completed");
        let found = server.anonymous().get(&self.url);
        assert_eq!(found.status, 200, "{}", found.shown());
        assert!(found.body == self.bytes, "{} is another video", self.id);
    }
}

/// What a client holds of a file that it uploaded.
struct Uploaded {
    object: Value,
    bytes: Vec<u8>,
}

impl Uploaded {
    fn by(client: &Client) -> Self {
        let upload = client.request("POST", "/v1/files").form(&day());
        let object = upload.send().ok();
        let id = object["id"].as_str().unwrap();
        let bytes = client.get(&format!("/v1/files/{id}/content")).body;
        Self { object, bytes }
    }

    /// Its address opens, and it is the first frame of a new clip.
    fn assert_kept(&self, server: &Server) {
        let client = server.client();
        let list = client.get("/v1/files").ok();
        assert_eq!(list["data"], serde_json::json!([self.object]));
        let url = self.object["url"].as_str().unwrap();
        let found = server.anonymous().get(url.strip_prefix(BASE_URL).unwrap());
        assert_eq!(found.status, 200, "{}", found.shown());
        assert!(found.body == self.bytes);
        let mut body = square("kinora-b1");
        body["first_frame"] = url.into();
        let video = client.submit(&body);
        client.wait_completed(video.id());
    }
}

/// Makes a video for each of these models on this folder, and stops.
fn made_on(data: &DataFolder, models: &[&str]) -> Vec<Made> {
    let server = Variables::default().start(data);
    let client = server.client();
    let ids: Vec<String> = models
        .iter()
        .map(|model| client.submit(&square(model)).id().to_owned())
        .collect();
    let made = ids
        .iter()
        .map(|id| Made::of(&client, &client.wait_completed(id)))
        .collect();
    stop(server);
    made
}

#[test]
fn a_service_moves_to_postgresql_and_s3_and_back_with_everything_that_clients_hold() {
    let (data, s3, receiver) = (DataFolder::default(), TestS3::start(), Receiver::start());
    let mut made = made_on(&data, &["kinora-a1", "kinora-b1"]);
    let (_, secret) = add(&data, &["--url", &receiver.url("hook")]);
    let webhooks = list(&data);
    let idle = Variables::default().over(Setup::on(&data)).without_worker();
    let server = idle.start();
    let queued = keyed(&server.client()).id().to_owned();
    let picture = Uploaded::by(&server.client());
    stop(server);

    let first = data.beside("first");
    let report = run(Variables::default().export(&data, &first, &["--json"])).ok();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["tasks"]["unfinished"], &report["results"]["files"]),
        (&1.into(), &(2 * RESULT_FILES + 1).into())
    );
    let there = Variables::shared(&Postgres::shared().database(), &s3);
    let machine = DataFolder::to_restore(&data);
    for point in ["import.file:2", "import.tasks:1", "import.filled:1"] {
        let mut command = there.import(&first, &machine);
        command.env("CRASH_AT", point);
        assert!(!run(command).status.success(), "{point}");
        let refused = there.over(Setup::on(&machine)).try_start().unwrap_err();
        assert_fails_with(
            &refused,
            "import into this store was started but has not ended",
        );
    }
    let said = run(there.import(&first, &machine)).ok();
    assert!(
        said.contains("Imported 3 tasks (1 unfinished), 1 key"),
        "{said}"
    );
    let server = there.start(&machine);
    made.iter().for_each(|video| video.assert_kept(&server));
    let client = server.client();
    let completed = client.wait_completed(&queued);
    made.push(Made::of(&client, &completed));
    assert_eq!(keyed(&client).id(), queued);
    let told = &receiver.wait_for(1)[0];
    assert_eq!(told.event()["data"]["id"], queued.as_str());
    assert!(verifies(told, &secret), "{told:#?}");
    picture.assert_kept(&server);
    stop(server);
    assert_orphans_are_found(&there, &s3);

    // Back, and the results stay in the bucket; then they come back as well.
    let (second, third) = (data.beside("second"), data.beside("third"));
    run(there.export(&machine, &second, &["--results", "reference"])).ok();
    assert!(!second.join("results").exists());
    let half = Variables::default().and_results(&s3);
    let folder = DataFolder::to_restore(&data);
    run(half.import(&second, &folder)).ok();
    let server = half.start(&folder);
    made.iter().for_each(|video| video.assert_kept(&server));
    stop(server);
    run(half.export(&folder, &third, &[])).ok();
    let home = DataFolder::to_restore(&data);
    run(Variables::default().import(&third, &home)).ok();
    let server = Variables::default().start(&home);
    made.iter().for_each(|video| video.assert_kept(&server));
    picture.assert_kept(&server);
    let client = server.client();
    assert_eq!(keyed(&client).id(), queued);
    let listed = client.get("/v1/videos").ok();
    // With the clips of the picture.
    assert_eq!(listed["data"].as_array().unwrap().len(), 3 + 2);
    assert_eq!(list(&home), webhooks);
}

/// Files of a task that a newer copy of the database may have accepted.
fn assert_orphans_are_found(variables: &Variables, s3: &TestS3) {
    let orphans = |flags: &[&str]| run(variables.command(&[&["orphans"], flags].concat())).ok();
    assert!(orphans(&[]).contains("Every file has its task"));
    let stray = "kinora/videos/video_7zzzzzzzzz0000000000000000/9/video.mp4";
    s3.put(stray, "x".into());
    let found = orphans(&[]);
    assert!(found.contains("1 files without a task found"), "{found}");
    assert!(orphans(&["--remove"]).contains("1 files without a task removed"));
    assert_eq!(s3.object(stray), None);
}

fn find(folder: &Path, name: &str) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with(name) {
                return path;
            }
        }
    }
    panic!("no {name}");
}

#[test]
fn a_damaged_export_and_a_store_that_is_not_empty_are_refused_and_nothing_changes() {
    let data = DataFolder::default();
    let made = made_on(&data, &["kinora-b1"]);
    let (to, here) = (data.beside("export"), Variables::default());
    run(here.export(&data, &to, &[])).ok();
    for name in [
        "video.mp4",
        "tasks.jsonl",
        "counters.jsonl",
        "secrets.jsonl",
    ] {
        let path = find(&to, name);
        let bytes = fs::read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        for damage in [&flipped[..], &bytes[..bytes.len() / 2]] {
            fs::write(&path, damage).unwrap();
            let target = DataFolder::to_restore(&data);
            let refused = run(here.import(&to, &target));
            assert_fails_with(&refused, "The export is damaged");
            assert_fails_with(&refused, name);
            assert!(!target.path().exists(), "{name}");
        }
        fs::write(&path, bytes).unwrap();
    }
    let held = keys(&data, &["list", "--json"]).ok();
    assert_fails_with(&run(here.import(&to, &data)), "is not empty");
    assert_eq!(keys(&data, &["list", "--json"]).ok(), held);
    let server = here.start(&data);
    made[0].assert_kept(&server);
    drop(server);

    // Results of another store.
    let other = DataFolder::default();
    let strange = Variables(vec![(
        "KINORA_RESULTS_URL",
        other.path().join("results").display().to_string(),
    )]);
    stop(here.start(&other));
    let target = DataFolder::to_restore(&data);
    assert_fails_with(&run(strange.import(&to, &target)), "Another store uses");
    assert_eq!(target.files("kinora.db"), Vec::<PathBuf>::new());
    run(here.import(&to, &target)).ok();
    made[0].assert_kept(&here.start(&target));
}

#[test]
fn an_export_goes_on_where_it_stopped_and_tells_what_is_missing() {
    let data = DataFolder::default();
    made_on(&data, &["kinora-b1"]);
    let (to, here) = (data.beside("export"), Variables::default());
    let partial = data.beside("export.partial");
    for point in ["export.records:1", "export.file:2"] {
        let mut command = here.export(&data, &to, &[]);
        command.env("CRASH_AT", point);
        assert!(!run(command).status.success(), "{point}");
        assert!(!to.exists() && partial.exists(), "{point}");
        let target = DataFolder::to_restore(&data);
        assert_fails_with(&run(here.import(&partial, &target)), "is not a");
    }
    let stray = partial.join("results/objects/videos/gone");
    fs::create_dir_all(stray.parent().unwrap()).unwrap();
    fs::write(&stray, "of a task that was deleted since").unwrap();
    run(here.export(&data, &to, &[])).ok();
    assert!(to.exists() && !partial.exists());
    assert!(!to.join("results/objects/videos/gone").exists());

    fs::remove_file(find(&data.path(), "thumbnail.webp")).unwrap();
    let again = data.beside("again");
    let refused = run(here.export(&data, &again, &[]));
    assert_fails_with(&refused, "1 file of results missing or damaged");
    assert_fails_with(&refused, "thumbnail.webp");
    let said = run(here.export(&data, &again, &["--accept-loss"])).ok();
    assert!(said.contains("note: 1 file of results missing"), "{said}");
    let none = run(here.export(&DataFolder::default(), &data.beside("none"), &[]));
    assert_fails_with(&none, "There is no store");
    let database = Postgres::shared().database();
    let variables = Variables(vec![("KINORA_STORE_URL", database)]);
    let refused = run(variables.import(&to, &DataFolder::default()));
    assert_fails_with(&refused, "kinora migrate");
    let mut backup = variables.command(&["backup"]);
    backup.arg(data.beside("backup"));
    assert_fails_with(&run(backup), "pg_dump");
}
