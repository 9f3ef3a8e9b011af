//! A wall clock that jumps, in the real process: ahead, back and far away, while tasks wait, run
//! and are being published, and between two lives of the service. No task is lost, none is made
//! twice, no attempt is used up, and nothing expires by a clock that is wrong for a while.

use std::time::{Duration, Instant};

use kinora_test_e2e::{
    Client, DataFolder, Hold, RESULT_FILES, Reply, Server, Setup, Video, WallClock, until,
};
use serde_json::Value;

use crate::dice::Dice;
use crate::support::{assert_plays, narrow, narrow_on, quick, steadily, steady};

pub(crate) const HOUR_S: i64 = 60 * 60;
pub(crate) const DAY_S: i64 = 24 * HOUR_S;
pub(crate) const TEN_YEARS_S: i64 = 3652 * DAY_S;
/// Jumps from the machine's time, and later back to it.
const JUMPS_S: [i64; 3] = [HOUR_S, -2 * HOUR_S, TEN_YEARS_S];
/// Far longer than a test takes, and far shorter than a jump.
pub(crate) const TOLERANCE_S: i64 = HOUR_S / 4;
/// Tasks under the clock that never stands still.
const RESTLESS_TASKS: usize = 16;

/// A service that looks every second for what ends by time.
pub(crate) fn watchful(setup: Setup) -> Setup {
    setup.set("SWEEP_SECONDS", 1)
}

/// Lets several sweeps of a watchful service pass, in which nothing may happen.
pub(crate) fn sweeps_pass(count: u64) {
    let begun = Instant::now();
    until("some sweeps to pass", || {
        (begun.elapsed() > Duration::from_secs(count)).then_some(())
    });
}

pub(crate) fn submit_once(client: &Client, body: &Value) -> Reply {
    let request = client.request("POST", "/v1/videos");
    request.header("idempotency-key", "once").json(body).send()
}

/// How far the service's clock has moved between two submits, in seconds.
fn assert_moved(before: &Video, after: &Video, jump_s: i64) {
    let at = |video: &Video| video["created_at"].as_i64().unwrap();
    let off = at(after) - at(before) - jump_s;
    assert!(
        off.abs() < TOLERANCE_S,
        "{off} s off\n{before:#?}\n{after:#?}"
    );
}

/// How often work on a task began, by the logs of all its lives.
fn runs(log: &str, id: &str) -> usize {
    let begun = |line: &&str| line.contains("\"task started\"") && line.contains(id);
    log.lines().filter(begun).count()
}

/// Every one is completed, plays, was finished by one run of at most `runs_max`, and has one file
/// of each kind.
fn assert_made_once(server: &Server, logs: &str, ids: &[&str], runs_max: usize) {
    let client = server.client();
    for id in ids {
        assert_plays(&client, &client.wait_completed(id));
        let log = until("the end of its run", || {
            let log = format!("{logs}{}", server.log());
            (finishes(&log, id) > 0).then_some(log)
        });
        let runs = runs(&log, id);
        assert!((1..=runs_max).contains(&runs), "{id}: {runs} runs\n{log}");
        assert_eq!(finishes(&log, id), 1, "{id}\n{log}");
        until("one file of each kind", || {
            (server.data().files(id).len() == RESULT_FILES).then_some(())
        });
    }
}

fn finishes(log: &str, id: &str) -> usize {
    let done = |line: &&str| line.contains("\"task finished\"") && line.contains(id);
    log.lines().filter(done).count()
}

#[test]
fn p10_a_jump_while_tasks_wait_and_run_loses_and_doubles_nothing() {
    for jump_s in JUMPS_S {
        println!("a jump of {jump_s} s");
        let clock = WallClock::ahead_by(0);
        let server = clock.start(watchful(steadily(narrow())));
        let client = server.client();
        let running = client.submit(&steady());
        let waiting = submit_once(&client, &quick("kinora-b1")).video();
        client.wait_working(running.id());
        clock.jump_to(jump_s);
        let later = client.submit(&quick("kinora-b1"));
        assert_moved(&waiting, &later, jump_s);
        assert_made_once(&server, "", &[running.id(), waiting.id(), later.id()], 1);
        let twin = submit_once(&client, &quick("kinora-b1")).video();
        assert_eq!(twin.id(), waiting.id(), "its key was forgotten too early");

        // And back, which is a jump as well.
        let running = client.submit(&steady());
        let waiting = client.submit(&quick("kinora-a1"));
        client.wait_working(running.id());
        clock.jump_to(0);
        let last = client.submit(&quick("kinora-a1"));
        assert_moved(&waiting, &last, -jump_s);
        assert_made_once(&server, "", &[running.id(), waiting.id(), last.id()], 1);
        // What ended before the jump back is what it was.
        assert_plays(&client, &client.video(later.id()));
    }
}

#[test]
fn p10_a_jump_while_a_result_is_published_publishes_it_once() {
    for jump_s in JUMPS_S {
        println!("a jump of {jump_s} s");
        let clock = WallClock::ahead_by(0);
        // The sixth file is the video; the store's mark and the stills before it have their names.
        let hold = Hold::at("blobs.synced", 6);
        // Renewed so rarely that the jump is noticed before the next renewal hides it.
        let setup = watchful(narrow()).set("KINORA_WORKER_LEASE_SECONDS", 300);
        let server = clock.start(hold.over(setup));
        let client = server.client();
        let video = client.submit(&quick("kinora-a1"));
        hold.wait();
        clock.jump_to(jump_s);
        // By the new clock its lease is over, or years away; its run is well.
        let next = client.submit(&quick("kinora-b1"));
        assert_moved(&video, &next, jump_s);
        sweeps_pass(3);
        assert_eq!(client.video(video.id()).status(), "in_progress");
        assert!(hold.is_holding());
        hold.release();
        assert_made_once(&server, "", &[video.id(), next.id()], 1);
        let objects = server.data().files_of_tasks().len();
        assert_eq!(objects, 2 * RESULT_FILES, "one attempt's files");
    }
}

#[test]
fn p10_a_jump_between_two_lives_loses_and_doubles_nothing() {
    for jump_s in JUMPS_S {
        println!("a jump of {jump_s} s");
        let data = DataFolder::default();
        let clock = WallClock::ahead_by(0);
        // With an attempt to spare: the last one waits until its process is a minute old.
        let on_data = || watchful(steadily(narrow_on(&data))).set("KINORA_WORKER_ATTEMPTS_MAX", 4);
        // Each life but the last ends in the middle of a task.
        let hold = Hold::at("worker.recorded", 1);
        let server = clock.start(hold.over(on_data()));
        let running = submit_once(&server.client(), &steady()).video();
        let waiting = server.client().submit(&quick("kinora-b1"));
        hold.wait();
        let mut logs = kill(server);
        hold.forget();
        clock.jump_to(jump_s);
        let server = clock.start(hold.over(on_data()));
        let client = server.client();
        assert_eq!(submit_once(&client, &steady()).video().id(), running.id());
        let later = client.submit(&quick("kinora-a1"));
        assert_moved(&waiting, &later, jump_s);
        hold.wait();
        logs += &kill(server);
        clock.jump_to(0);
        let server = clock.start(on_data());
        // Two kills in the middle of the work, and three lives.
        assert_made_once(&server, &logs, &[running.id(), waiting.id(), later.id()], 3);
    }
}

/// Ends it without a word, and keeps what it logged.
fn kill(server: Server) -> String {
    let log = server.log();
    server.kill();
    log
}

#[test]
fn p10_a_clock_that_is_wrong_for_some_sweeps_destroys_nothing() {
    let clock = WallClock::ahead_by(0);
    let server = clock.start(watchful(Setup::default()));
    let client = server.client();
    let keyed = submit_once(&client, &quick("kinora-b1")).video();
    let other = client.submit(&quick("kinora-a1"));
    let done = [keyed.id(), other.id()].map(|id| client.wait_completed(id));
    let files = server.data().files_of_tasks();
    for (jump_s, sweeps) in [(TEN_YEARS_S, 12), (25 * HOUR_S, 6), (-TEN_YEARS_S, 3)] {
        clock.jump_to(jump_s);
        sweeps_pass(sweeps);
        let twin = submit_once(&client, &quick("kinora-b1")).video();
        assert_eq!(
            twin.id(),
            keyed.id(),
            "a second video by a jump of {jump_s} s"
        );
        clock.jump_to(0);
        sweeps_pass(2);
        for video in &done {
            assert_plays(&client, &client.video(video.id()));
        }
        let twin = submit_once(&client, &quick("kinora-b1")).video();
        assert_eq!(twin.id(), keyed.id(), "a second video after {jump_s} s");
    }
    assert_eq!(server.data().files_of_tasks(), files);
}

#[test]
fn a_list_misses_nothing_after_a_step_back_of_the_clock() {
    let data = DataFolder::default();
    let clock = WallClock::ahead_by(0);
    let server = clock.start(narrow_on(&data));
    let first = server.client().submit(&quick("kinora-b1"));
    clock.jump_to(-2 * HOUR_S);
    let second = server.client().submit(&quick("kinora-b1"));
    server.kill();
    // Nor after one between two lives.
    clock.jump_to(-4 * HOUR_S);
    let server = clock.start(narrow_on(&data));
    let client = server.client();
    let third = client.submit(&quick("kinora-b1"));
    let listed = |after: &str| {
        let page = client
            .get(&format!("/v1/videos?order=asc&after={after}"))
            .ok();
        let tasks = page["data"].as_array().unwrap().clone();
        let ids = tasks
            .iter()
            .map(|task| task["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed(first.id()), [second.id(), third.id()]);
    assert_eq!(listed(second.id()), [third.id()]);
}

#[test]
fn p10_a_clock_that_never_stands_still_loses_and_doubles_nothing() {
    const SEED: u64 = 0x5851_f42d_4c95_7f2d;
    println!("seed {SEED}");
    let mut dice = Dice(SEED);
    let clock = WallClock::ahead_by(0);
    let server = clock.start(watchful(Setup::default()));
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..RESTLESS_TASKS {
        let video = client.submit(&quick("kinora-b1"));
        ids.push(video.id().to_owned());
        clock.jump_to([0, HOUR_S, -2 * HOUR_S, DAY_S][dice.index(4)]);
        // Somewhere in its life, or in one of those before it, the next jump comes.
        let watched = &ids[dice.index(ids.len())];
        let percent = dice.below(100);
        until("progress", || {
            let video = client.video(watched);
            (video.progress() >= percent || video.is_finished()).then_some(())
        });
    }
    clock.jump_to(0);
    for id in &ids {
        assert_plays(&client, &client.wait_completed(id));
    }
    until("one attempt's files for each task", || {
        (server.data().files_of_tasks().len() == RESULT_FILES * ids.len()).then_some(())
    });
    let log = server.log();
    assert!(ids.iter().all(|id| finishes(&log, id) == 1), "{log}");
    let most = ids.iter().map(|id| runs(&log, id)).max();
    assert_eq!(most, Some(1), "a jump has cost an attempt\n{log}");
}
