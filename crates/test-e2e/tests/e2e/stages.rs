//! A cancel at every stage of a task: it is failed in the answer itself, work on it stops, its
//! slot is free again, and nothing of it stays. What is printed is how soon.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Hold, Host, RESULT_FILES, Server, Setup, Video, studio, until};
use serde_json::{Value, json};

use crate::support::{busy, narrow, quick, reaching_from, slow};

/// A cancel is obeyed within two seconds. The rest is for a machine with other things to do.
const FREE_SOON: Duration = Duration::from_secs(20);
/// Cancels that race a finish.
const RACES: usize = 200;

/// Cancels what is failed in the answer itself.
fn cancel(client: &Client, video: &Video) -> Instant {
    let asked = Instant::now();
    let reply = client.post(&format!("/v1/videos/{}/cancel", video.id()));
    let failed = reply.video();
    assert_eq!(failed["error"]["code"], "cancelled", "{failed:#?}");
    assert_eq!(client.video(video.id()), failed);
    asked
}

/// Waits until work on another task has begun: there is a slot for it.
fn assert_slot_is_free(server: &Server) -> Video {
    let next = server.client().submit(&quick("kinora-b1"));
    server.wait_for_log(&["\"task started\"", next.id()]);
    next
}

/// Waits until nothing of it is left, and sees that nothing comes again.
fn assert_vanishes(server: &Server, video: &Video, stage: &str, since: Instant) {
    let id = video.id();
    let gone = || server.data().files(id).is_empty();
    until("the end of its files", || gone().then_some(()));
    told(stage, "nothing was left", since);
    let next = assert_slot_is_free(server);
    server.client().wait_completed(next.id());
    assert!(gone(), "{:?}", server.data().files(id));
    assert_eq!(
        server.logged(&["\"task finished\"", id]),
        0,
        "{}",
        server.log()
    );
}

fn told(stage: &str, what: &str, since: Instant) {
    println!("{stage}: {what} after {} ms", since.elapsed().as_millis());
}

fn with_picture(url: &str) -> Value {
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(url);
    body
}

#[test]
fn a_cancel_in_the_queue_is_obeyed() {
    let (server, blocker) = busy();
    let client = server.client();
    let (first, second) = (
        client.submit(&quick("kinora-b1")),
        client.submit(&quick("kinora-b1")),
    );
    let asked = cancel(&client, &first);
    told("waiting", "it was failed", asked);
    cancel(&client, &blocker);
    server.wait_for_log(&["\"task started\"", second.id()]);
    assert_eq!(server.logged(&["\"task started\"", first.id()]), 0);
    assert_vanishes(&server, &first, "waiting", asked);
}

#[test]
fn a_cancel_while_references_are_fetched_hangs_up() {
    let host = Host::start();
    let server = reaching_from(narrow()).start();
    let client = server.client();
    // Both wait: what is being fetched holds no slot.
    let videos = ["first", "second"].map(|name| {
        let video = client.submit(&with_picture(&host.drip(name)));
        until("a drip", || (host.drips(name) == 1).then_some(()));
        video
    });
    let [first, second] = &videos;
    let next = assert_slot_is_free(&server);
    client.wait_completed(next.id());
    for video in &videos {
        assert_eq!(client.video(video.id()).status(), "queued");
    }

    let asked = cancel(&client, second);
    until("a hang-up", || (host.drips("second") == 0).then_some(()));
    told("fetching", "the fetch ended", asked);
    assert!(asked.elapsed() < FREE_SOON, "{:?}", asked.elapsed());
    assert_eq!(host.drips("first"), 1, "it is older, and wanted");
    let asked = cancel(&client, first);
    until("a hang-up", || (host.drips("first") == 0).then_some(()));
    for video in &videos {
        assert_eq!(server.logged(&["\"task started\"", video.id()]), 0);
    }
    for video in &videos {
        assert_vanishes(&server, video, "fetching", asked);
    }
}

#[test]
fn a_cancel_while_references_are_opened_frees_the_slot() {
    let host = Host::start();
    let url = host.serve("a.png", studio::picture("a.png", (320, 256), "teal"));
    let hold = Hold::at("worker.opening", 1);
    let server = reaching_from(hold.over(narrow())).start();
    let video = server.client().submit(&with_picture(&url));
    hold.wait();
    let asked = cancel(&server.client(), &video);
    assert_slot_is_free(&server);
    told("opening", "the next task started", asked);
    assert!(hold.is_holding());
    let released = Instant::now();
    hold.release();
    assert_vanishes(&server, &video, "opening", released);
}

#[test]
fn a_cancel_while_frames_are_made_stops_the_engine() {
    let server = narrow().start();
    let client = server.client();
    let video = client.submit(&slow());
    client.wait_working(video.id());
    let asked = cancel(&client, &video);
    // The slot goes with the engine's thread.
    assert_slot_is_free(&server);
    told("generating", "the next task started", asked);
    assert!(asked.elapsed() < FREE_SOON, "{:?}", asked.elapsed());
    assert_vanishes(&server, &video, "generating", asked);
}

#[test]
fn a_cancel_while_files_are_published_takes_them_back() {
    // The store's mark at the start, then four stills and the video; each before and after it has its name.
    for (point, file) in [
        ("blobs.synced", 2),
        ("blobs.linked", 2),
        ("blobs.linked", 6),
    ] {
        let hold = Hold::at(point, file);
        let server = hold.over(narrow()).start();
        let client = server.client();
        let video = client.submit(&quick("kinora-a1"));
        hold.wait();
        let asked = cancel(&client, &video);
        assert_slot_is_free(&server);
        told("publishing", "the next task started", asked);
        assert!(hold.is_holding());
        let released = Instant::now();
        hold.release();
        assert_vanishes(&server, &video, "publishing", released);
    }
}

/// Cancels that come ever nearer to the moment of the finish.
#[derive(Default)]
struct Races {
    begun: AtomicUsize,
    delay_us: AtomicU64,
}

impl Races {
    /// A task that ends, and whether the cancel was first.
    fn run_one(&self, client: &Client) -> (String, bool) {
        let mut body = quick("kinora-a1");
        body["draft"] = json!(true);
        body["aspect_ratio"] = json!("1:1");
        let id = client.submit(&body).id().to_owned();
        until("half of its work", || {
            (client.video(&id).progress() >= 50).then_some(())
        });
        let delay_us = self.delay_us.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(delay_us));
        let reply = client.post(&format!("/v1/videos/{id}/cancel"));
        let cancelled = reply.status == 200;
        let next_us = if cancelled {
            assert_eq!(reply.video()["error"]["code"], "cancelled");
            delay_us * 6 / 5 + 5_000
        } else {
            reply.refused(409, "not_cancellable");
            delay_us * 5 / 6
        };
        self.delay_us.store(next_us, Ordering::Relaxed);
        (id, cancelled)
    }
}

#[test]
fn p02_a_cancel_that_races_the_finish_leaves_one_terminal_state() {
    let server = Setup::default().set("KINORA_WORKER_SLOTS", 4).start();
    let races = Races::default();
    let client = server.client();
    let ended: Vec<(String, bool)> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut ended = Vec::new();
                    while races.begun.fetch_add(1, Ordering::Relaxed) < RACES {
                        ended.push(races.run_one(&client));
                    }
                    ended
                })
            })
            .collect();
        racers
            .into_iter()
            .flat_map(|racer| racer.join().unwrap())
            .collect()
    });
    assert_eq!(ended.len(), RACES);
    for (id, cancelled) in &ended {
        let video = client.video(id);
        let wanted = if *cancelled { "failed" } else { "completed" };
        assert_eq!(video.status(), wanted, "{video:#?}");
        let content = client.get(&video.content()).status;
        assert_eq!(content, if *cancelled { 409 } else { 200 });
    }
    let completed = ended.iter().filter(|(_, cancelled)| !cancelled).count();
    println!("{} cancelled, {completed} completed", RACES - completed);
    assert!((1..RACES).contains(&completed), "there was no race");
    until("files of the completed tasks alone", || {
        (server.data().files_of_tasks().len() == RESULT_FILES * completed).then_some(())
    });
    for (id, cancelled) in &ended {
        let files = server.data().files(id).len();
        assert_eq!(files, if *cancelled { 0 } else { RESULT_FILES }, "{id}");
    }
}
