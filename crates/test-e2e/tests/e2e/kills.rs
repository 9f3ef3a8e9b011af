//! `kill -9` at random moments and at every named point, again and again on one folder, while a
//! client submits, repeats, cancels, deletes and polls. In the end nothing acknowledged is lost,
//! nothing exists twice, and every completed file opens and is what its hash says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kinora_test_e2e::{
    DataFolder, Host, RESULT_FILES, Reply, Server, Setup, Video, media, raw, studio, until,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dice::Dice;
use crate::support::{Download, reaching_from, square};

/// Kills of one run; `KINORA_KILLS` asks for another number, `KINORA_KILLS_SEED` for other ones.
const KILLS: u64 = 100;
/// Longest lives in milliseconds, of which one is drawn for each; `KINORA_KILLS_PACE` divides them.
const LIVES_MS: [u64; 4] = [200, 200, 400, 1700];
/// How often the process dies at each named point.
const DEATHS_AT_A_POINT: u64 = 5;
/// Tasks that may be unfinished before the client waits.
const UNFINISHED_MAX: usize = 4;

/// What the client knows of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Known {
    #[default]
    Submitted,
    Finished,
    /// Told to be cancelled, or said to have been.
    Cancelled,
    /// Told to be deleted; without an answer it may have been or not.
    Deleting,
    Deleted,
}

/// A client that remembers every answer, over all lives of the service.
struct Client {
    data: DataFolder,
    dice: Dice,
    host: Host,
    /// Idempotency keys with what they were sent with, and the task that was answered.
    orders: Vec<(Value, Option<String>)>,
    tasks: BTreeMap<String, Known>,
}

impl Client {
    fn new(seed: u64) -> Self {
        let host = Host::start();
        host.serve(
            "still.png",
            studio::picture("still.png", (320, 256), "teal"),
        );
        Self {
            data: DataFolder::default(),
            dice: Dice(seed),
            host,
            orders: Vec::new(),
            tasks: BTreeMap::new(),
        }
    }

    fn serve(&self) -> Setup {
        reaching_from(Setup::on(&self.data))
            .set("KINORA_WORKER_ATTEMPTS_MAX", 10_000)
            // Lives are shorter than the pause after them.
            .set("START_PAUSE_SECONDS_MAX", 0)
            .set("SWEEP_SECONDS", 1)
    }

    /// One call; `None` when the service died before its answer.
    fn call(&self, to: &Target, head: &str, body: &str, more: &str) -> Option<Reply> {
        let length = body.len();
        let key = &to.key;
        let request = format!(
            "{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        );
        raw::try_exchange(to.address, request.as_bytes())
    }

    /// Submits a new order, or one whose answer never came, or one that was answered before.
    /// One whose task was deleted is not repeated: its key went too, and it would be a new task.
    fn submit(&mut self, to: &Target) -> Option<()> {
        let open = self.orders.iter().position(|(_, task)| task.is_none());
        let standing: Vec<usize> = (0..self.orders.len())
            .filter(|number| {
                self.orders[*number]
                    .1
                    .as_ref()
                    .is_some_and(|id| !self.is_gone(id))
            })
            .collect();
        let repeat = !standing.is_empty() && self.dice.below(4) == 0;
        let number = match open {
            Some(number) => number,
            None if repeat => standing[self.dice.below(standing.len() as u64) as usize],
            None => {
                let order = self.order();
                self.orders.push((order, None));
                self.orders.len() - 1
            }
        };
        self.submit_order(number, to)
    }

    fn submit_order(&mut self, number: usize, to: &Target) -> Option<()> {
        let (body, known) = self.orders[number].clone();
        let key = format!("Idempotency-Key: order-{number}\r\n");
        let reply = self.call(to, "POST /v1/videos", &body.to_string(), &key)?;
        let id = self.data.judged(&reply).id().to_owned();
        match known {
            Some(known) => assert_eq!(known, id, "order {number} became two tasks"),
            None => {
                self.orders[number].1 = Some(id.clone());
                self.tasks.insert(id, Known::Submitted);
            }
        }
        Some(())
    }

    fn is_gone(&self, id: &str) -> bool {
        matches!(self.tasks[id], Known::Deleted | Known::Deleting)
    }

    fn order(&mut self) -> Value {
        let model = ["kinora-b1", "kinora-a1"][self.dice.below(4) as usize / 3];
        let mut order = square(model);
        order["seed"] = json!(self.dice.below(1000));
        if self.dice.below(3) == 0 {
            order["first_frame"] = json!(self.host.url("still.png"));
        }
        order
    }

    fn any(&mut self, wanted: impl Fn(Known) -> bool) -> Option<String> {
        let fitting: Vec<&String> = self
            .tasks
            .iter()
            .filter(|(_, known)| wanted(**known))
            .map(|(id, _)| id)
            .collect();
        let count = fitting.len() as u64;
        (count > 0).then(|| fitting[self.dice.below(count) as usize].clone())
    }

    fn cancel(&mut self, to: &Target) -> Option<()> {
        let Some(id) = self.any(|known| known == Known::Submitted) else {
            return Some(());
        };
        let reply = self.call(to, &format!("POST /v1/videos/{id}/cancel"), "", "")?;
        let known = match reply.status {
            409 => Known::Finished,
            _ => {
                assert_eq!(self.data.judged(&reply).status(), "failed");
                Known::Cancelled
            }
        };
        self.tasks.insert(id, known);
        Some(())
    }

    fn delete(&mut self, to: &Target) -> Option<()> {
        let Some(id) = self.any(|known| known != Known::Deleted) else {
            return Some(());
        };
        let before = self.tasks.insert(id.clone(), Known::Deleting);
        let reply = self.call(to, &format!("DELETE /v1/videos/{id}"), "", "")?;
        let again = before == Some(Known::Deleting) && reply.status == 404;
        assert!(reply.status == 200 || again, "{id}: {}", reply.shown());
        self.tasks.insert(id, Known::Deleted);
        Some(())
    }

    fn poll(&mut self, to: &Target) -> Option<()> {
        // Mostly those of which there is news.
        let open = self.any(|known| known == Known::Submitted);
        let any = self.any(|_| true);
        let Some(id) = open.filter(|_| self.dice.below(3) > 0).or(any) else {
            return Some(());
        };
        let reply = self.call(to, &format!("GET /v1/videos/{id}"), "", "")?;
        let known = self.tasks[&id];
        match known {
            Known::Deleted => assert_eq!(reply.status, 404, "{id} came back"),
            Known::Deleting if reply.status == 404 => {
                self.tasks.insert(id, Known::Deleted);
            }
            _ => {
                let video = self.data.judged(&reply);
                assert!(known != Known::Cancelled || video.status() == "failed");
                if known == Known::Submitted && video.is_finished() {
                    self.tasks.insert(id, Known::Finished);
                }
            }
        }
        Some(())
    }

    /// One thing or another; `None` when the service has died.
    fn act(&mut self, to: &Target) -> Option<()> {
        let unfinished = self.tasks.values().filter(|one| **one == Known::Submitted);
        let full = unfinished.count() >= UNFINISHED_MAX;
        match self.dice.below(100) {
            0..=19 if !full => self.submit(to),
            20 => self.cancel(to),
            21 => self.delete(to),
            _ => {
                // Between polls the machine is left to the engine.
                std::thread::sleep(Duration::from_millis(5));
                self.poll(to)
            }
        }
    }

    /// After the last life: everything ends, and what is there is what was acknowledged.
    fn settle(mut self) {
        let server = self.serve().start();
        let to = Target::of(&server);
        // After all that, it still does what it is there for.
        self.orders.push((square("kinora-b1"), None));
        for number in 0..self.orders.len() {
            if self.orders[number].1.is_none() {
                self.submit_order(number, &to).unwrap();
            }
        }
        let client = server.client();
        let deleting = |known: &Known| *known == Known::Deleting;
        for (id, _) in self.tasks.iter().filter(|(_, known)| deleting(known)) {
            client.delete(&format!("/v1/videos/{id}"));
        }
        let kept: BTreeSet<&str> = self
            .tasks
            .iter()
            .filter(|(_, known)| !matches!(known, Known::Deleting | Known::Deleted))
            .map(|(id, _)| id.as_str())
            .collect();
        let mut files = Vec::new();
        for id in &kept {
            let video = until(id, || {
                let video = client.video(id);
                video.is_finished().then_some(video)
            });
            if video.status() == "completed" {
                files.push(as_recorded(&client, &video));
            } else {
                assert_eq!(video["error"]["code"], "cancelled", "{video:#?}");
            }
        }
        assert_eq!(
            all_listed(&client),
            kept.iter().map(|id| (*id).to_owned()).collect()
        );
        let completed = files.len();
        assert!(completed > 0, "nothing was ever completed");
        let paths: Vec<PathBuf> = files.iter().map(Download::path).collect();
        media::assert_all_decode(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        until("one attempt's files for each completed task", || {
            (self.data.files_of_tasks().len() == RESULT_FILES * completed).then_some(())
        });
        println!("{} tasks, {completed} completed and kept", self.tasks.len());
    }
}

/// Where the present life of the service is.
struct Target {
    address: std::net::SocketAddr,
    key: String,
}

impl Target {
    fn of(server: &Server) -> Self {
        Self {
            address: server.address(),
            key: server.client().key().to_owned(),
        }
    }
}

fn all_listed(client: &kinora_test_e2e::Client) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut path = "/v1/videos?limit=100".to_owned();
    loop {
        let (page, videos) = client.get(&path).list();
        ids.extend(videos.iter().map(|video| video.id().to_owned()));
        if page["has_more"] != true {
            return ids;
        }
        path = format!(
            "/v1/videos?limit=100&after={}",
            page["last_id"].as_str().unwrap()
        );
    }
}

/// The file of a video, which is the one whose hash was recorded.
fn as_recorded(client: &kinora_test_e2e::Client, video: &Video) -> Download {
    let reply = client.get(&video.content());
    let digest = Sha256::digest(&reply.body);
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(reply.header("etag"), Some(&*format!("\"{hash}\"")));
    assert_eq!(reply.status, 200, "{}", reply.shown());
    Download::holding(reply.body)
}

/// What was asked for by a variable.
pub(crate) fn asked(variable: &str, default: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(default, |text| text.parse().unwrap())
}

fn killed_again_and_again(seed: u64) {
    let seed = seed ^ asked("KINORA_KILLS_SEED", 0);
    let pace = asked("KINORA_KILLS_PACE", 1);
    println!("seed {seed}");
    let mut client = Client::new(seed);
    for _ in 0..asked("KINORA_KILLS", KILLS) {
        let server = client.serve().start();
        let to = Target::of(&server);
        // Any moment will do; which one it was decides what is exercised, never what holds.
        let most_ms = LIVES_MS[client.dice.index(LIVES_MS.len())];
        let moment = Duration::from_millis(client.dice.below(most_ms) / pace);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(moment);
                server.kill();
            });
            while client.act(&to).is_some() {}
        });
    }
    client.settle();
}

#[test]
fn p01_p02_p03_hundreds_of_kills_lose_nothing_and_double_nothing() {
    killed_again_and_again(0x9e37_79b9_7f4a_7c15);
}

#[test]
fn p04_p06_hundreds_of_other_kills_leave_whole_files_and_single_tasks() {
    killed_again_and_again(0xd1b5_4a32_d192_ed03);
}

#[test]
fn p01_to_p06_a_death_at_every_named_point_is_survived() {
    for point in kinora_system::crash::POINTS {
        let mut client = Client::new(0x2545_f491 + point.len() as u64);
        // Its first key is made and printed before.
        client.serve().start().kill();
        for _ in 0..DEATHS_AT_A_POINT {
            // Commits come by the dozen, whole tasks one by one.
            let most = if point.starts_with("store.") { 60 } else { 3 };
            let time = 1 + client.dice.below(most);
            let setup = client.serve().set("CRASH_AT", format!("{point}:{time}"));
            let (status, log) = match setup.try_start() {
                Ok(server) => {
                    let to = Target::of(&server);
                    while client.act(&to).is_some() {}
                    server.wait()
                }
                // It died before it served.
                Err(ended) => (ended.status, ended.stderr),
            };
            assert_eq!(status.code(), None, "{point}: it ended by itself:\n{log}");
        }
        println!("{point}: {DEATHS_AT_A_POINT} deaths");
        client.settle();
    }
}
