//! What the topics share: one service for those that only look at their own tasks, and requests
//! that are quick or slow on purpose.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kinora_contract::{Clock, RunningClock};
use kinora_test_e2e::{Client, DataFolder, Reply, Server, Setup, Video, until};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A service with its defaults. Each topic takes a project of its own on it.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| crate::setup().start())
}

/// A service that fetches references from this machine as well: from a test's own [`Host`].
///
/// [`Host`]: kinora_test_e2e::Host
pub(crate) fn fetching() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| reaching_from(crate::setup()).start())
}

/// The same of another service.
pub(crate) fn reaching_from(setup: Setup) -> Setup {
    // All tests' hosts are one to it.
    setup
        .set("KINORA_REFERENCES_ALLOW_NETWORKS", "127.0.0.0/8")
        .set("REFERENCE_HOST_CONNECTIONS_MAX", 1000)
}

/// The shortest and smallest clip.
pub(crate) fn quick(model: &str) -> Value {
    json!({"model": model, "prompt": "A paper boat crosses a pond", "seconds": 2,
           "resolution": "480p", "seed": 7})
}

/// The same in a square, which costs a fifth less: for tests that make many and look at none.
pub(crate) fn square(model: &str) -> Value {
    let mut body = quick(model);
    body["aspect_ratio"] = json!("1:1");
    body
}

/// A configuration with one model, `tiny`, of the smallest clips that the engine makes: half the work of a square.
pub(crate) const TINY: &str = r#"
[[models]]
id = "tiny"
engine = "storyboard"
sizes = ["256x256"]
seconds = [2]
[models.features]
text_to_video = true
"#;

/// A clip that takes far longer than any test needs, by pauses between its frames.
pub(crate) fn slow() -> Value {
    json!({"model": "kinora-a1", "prompt": "A ship crosses an ocean", "seconds": 15,
           "resolution": "480p"})
}

/// A clip that takes some seconds in a service that is [`steadily`] set up, on the fastest machine too: long enough to
/// be seen at work, and short enough to be waited for.
pub(crate) fn steady() -> Value {
    let mut body = quick("kinora-a1");
    body["seconds"] = json!(10);
    body
}

/// A service whose long clips take some seconds ([`steady`]).
pub(crate) fn steadily(setup: Setup) -> Setup {
    setup.set("LONG_CLIP_FRAME_MS", 12)
}

/// A service that does one thing at a time, slowly.
pub(crate) fn narrow() -> Setup {
    narrowed(crate::setup())
}

/// The same on this folder.
pub(crate) fn narrow_on(data: &DataFolder) -> Setup {
    narrowed(Setup::on(data))
}

fn narrowed(setup: Setup) -> Setup {
    setup.set("KINORA_WORKER_SLOTS", 1)
}

/// A narrow service that is busy with a slow task of another project: what comes after it waits.
pub(crate) fn busy() -> (Server, Video) {
    busy_on(narrow())
}

/// The same of another narrow service.
pub(crate) fn busy_on(setup: Setup) -> (Server, Video) {
    let server = setup.start();
    let blocker = server.client().submit(&slow());
    let blocker = server.client().wait_working(blocker.id());
    (server, blocker)
}

/// The key that signs the result addresses of the service on this folder.
pub(crate) fn signing_key(data: &DataFolder) -> [u8; 32] {
    let path = data.path().join("kinora.db");
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let sql = "SELECT value FROM secrets WHERE name = 'signing_key'";
    let bytes: Vec<u8> = database.query_row(sql, [], |row| row.get(0)).unwrap();
    bytes.try_into().unwrap()
}

/// The bytes of a download, as a file for other programs to look into.
pub(crate) struct Download {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    folder: TempDir,
}

impl Download {
    /// Takes the content of a task.
    pub(crate) fn of(client: &Client, target: &str) -> Self {
        let reply = client.get(target);
        assert_eq!(reply.status, 200, "{}", reply.shown());
        Self::holding(reply.body)
    }

    /// Bytes that were taken already.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), &bytes).unwrap();
        Self { bytes, folder }
    }

    /// Where they are.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }
}

/// Asserts that a completed task has a file that plays to its end.
pub(crate) fn assert_plays(client: &Client, video: &Video) {
    let file = Download::of(client, &video.content());
    let frames = kinora_test_e2e::media::assert_decodes(&file.path());
    assert_eq!(frames, video["frames"]);
}

/// For children that this process starts: measures in real time.
pub(crate) fn clock() -> Arc<dyn Clock> {
    let begun = Instant::now();
    Arc::new(RunningClock::at(0, move || begun.elapsed()))
}

/// The tasks whose starts a service has logged, in that order.
pub(crate) fn started(log: &str) -> Vec<String> {
    let events = log.lines().filter(|line| line.contains("\"task started\""));
    events
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["span"]["task"].as_str().unwrap().to_owned()
        })
        .collect()
}

pub(crate) fn cancel(client: &Client, id: &str) {
    client.post(&format!("/v1/videos/{id}/cancel")).video();
}

/// What the thumbnail of a task is at the moment.
pub(crate) fn thumbnail(client: &Client, id: &str) -> Reply {
    client.get(&format!("/v1/videos/{id}/content?variant=thumbnail"))
}

/// Waits for a preview that is not `old`.
pub(crate) fn preview(client: &Client, id: &str, old: &[u8]) -> Reply {
    until("another preview", || {
        let reply = thumbnail(client, id);
        if reply.status == 409 {
            reply.refused(409, "video_not_ready");
            return None;
        }
        (reply.body != old).then_some(reply)
    })
}
