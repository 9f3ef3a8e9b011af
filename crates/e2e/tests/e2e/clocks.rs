//! A wall clock that jumps, in the real process: ahead, back and far away, while tasks wait, run
//! and are being published, and between two lives of the service. No task is lost, none is made
//! twice, and what ends by time ends by the clock as it now stands.

use kinora_e2e::{Client, DataFolder, Hold, Host, Reply, Server, Setup, Video, WallClock, until};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::support::{assert_plays, narrow, quick, reaching_from};

const HOUR_S: i64 = 60 * 60;
const DAY_S: i64 = 24 * HOUR_S;
const TEN_YEARS_S: i64 = 3652 * DAY_S;
/// Jumps from the machine's time, and later back to it.
const JUMPS_S: [i64; 3] = [HOUR_S, -2 * HOUR_S, TEN_YEARS_S];
/// Far longer than a test takes, and far shorter than a jump.
const TOLERANCE_S: i64 = HOUR_S / 4;
/// Tasks under the clock that never stands still.
const RESTLESS_TASKS: usize = 16;

/// A service that looks every second for what ends by time.
fn watchful(setup: Setup) -> Setup {
    setup.set("KINORA_WORKER_SWEEP_SECONDS", 1)
}

/// A clip that takes some seconds.
fn steady() -> Value {
    let mut body = quick("kinora-a1");
    body["seconds"] = json!(4);
    body
}

fn submit_once(client: &Client, body: &Value) -> Reply {
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
            (server.data().files(id).len() == 3).then_some(())
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
        let server = clock.start(watchful(narrow()));
        let client = server.client();
        let running = client.submit(&steady());
        let waiting = submit_once(&client, &quick("kinora-b1")).video();
        client.wait_working(running.id());
        clock.jump_to(jump_s);
        let later = client.submit(&quick("kinora-b1"));
        assert_moved(&waiting, &later, jump_s);
        assert_made_once(&server, "", &[running.id(), waiting.id(), later.id()], 2);
        if jump_s < DAY_S {
            let twin = submit_once(&client, &quick("kinora-b1")).video();
            assert_eq!(twin.id(), waiting.id(), "its key was forgotten too early");
        }

        // And back, which is a jump as well.
        let running = client.submit(&steady());
        let waiting = client.submit(&quick("kinora-a1"));
        client.wait_working(running.id());
        clock.jump_to(0);
        let last = client.submit(&quick("kinora-a1"));
        assert_moved(&waiting, &last, -jump_s);
        assert_made_once(&server, "", &[running.id(), waiting.id(), last.id()], 2);
        // What ended before the jump back is what it was.
        assert_plays(&client, &client.video(later.id()));
    }
}

#[test]
fn p10_a_jump_while_a_result_is_published_publishes_it_once() {
    for jump_s in JUMPS_S {
        println!("a jump of {jump_s} s");
        let clock = WallClock::ahead_by(0);
        // The third file is the video; the two before it have their names.
        let hold = Hold::at("blobs.synced", 3);
        // Renewed so rarely that the jump is noticed before the next renewal hides it.
        let setup = watchful(narrow()).set("KINORA_WORKER_LEASE_SECONDS", 300);
        let server = clock.start(hold.over(setup));
        let client = server.client();
        let video = client.submit(&quick("kinora-a1"));
        hold.wait();
        clock.jump_to(jump_s);
        // By the new clock its lease is over: the task is taken up again and completed...
        let next = client.submit(&quick("kinora-b1"));
        assert_moved(&video, &next, jump_s);
        server.wait_for_log(&["\"task finished\"", video.id()]);
        assert_eq!(client.video(video.id()).status(), "completed");
        assert!(hold.is_holding());
        // ...and what the first run publishes after all goes.
        hold.release();
        server.wait_for_log(&["\"the run was stopped\"", video.id()]);
        assert_made_once(&server, "", &[video.id(), next.id()], 2);
        let objects = server.data().files_of_tasks().len();
        assert_eq!(objects, 6, "one attempt's files");
    }
}

#[test]
fn p10_a_jump_between_two_lives_loses_and_doubles_nothing() {
    for jump_s in JUMPS_S {
        println!("a jump of {jump_s} s");
        let data = DataFolder::default();
        let clock = WallClock::ahead_by(0);
        let on_data = || watchful(narrow_on(&data));
        let server = clock.start(on_data());
        let running = submit_once(&server.client(), &steady()).video();
        let waiting = server.client().submit(&quick("kinora-b1"));
        server.client().wait_working(running.id());
        let mut logs = kill(server);
        clock.jump_to(jump_s);
        let server = clock.start(on_data());
        let client = server.client();
        let twin = (jump_s < DAY_S).then(|| submit_once(&client, &steady()).video());
        assert!(twin.is_none_or(|twin| twin.id() == running.id()));
        let later = client.submit(&quick("kinora-a1"));
        assert_moved(&waiting, &later, jump_s);
        client.wait_working(running.id());
        logs += &kill(server);
        clock.jump_to(0);
        let server = clock.start(on_data());
        // Two kills in the middle of the work, and three lives.
        assert_made_once(&server, &logs, &[running.id(), waiting.id(), later.id()], 3);
    }
}

/// A service that does one thing at a time on a folder of before.
fn narrow_on(data: &DataFolder) -> Setup {
    Setup::on(data)
        .set("KINORA_WORKER_SLOTS", 1)
        .set("KINORA_STORYBOARD_THREADS", 1)
        .set("KINORA_MEDIA_ENCODER_THREADS", 1)
}

/// Ends it without a word, and keeps what it logged.
fn kill(server: Server) -> String {
    let log = server.log();
    server.kill();
    log
}

#[test]
fn p10_what_ends_by_time_ends_by_the_clock_and_does_not_come_back() {
    let clock = WallClock::ahead_by(0);
    let server = clock.start(watchful(Setup::default()));
    let client = server.client();
    let done = submit_once(&client, &quick("kinora-b1")).video();
    let done = client.wait_completed(done.id());
    let path = format!("/v1/videos/{}", done.id());

    // Idempotency keys live for 24 hours.
    clock.jump_to(DAY_S - TOLERANCE_S);
    let twin = submit_once(&client, &quick("kinora-b1")).video();
    assert_eq!(twin.id(), done.id());
    clock.jump_to(DAY_S + TOLERANCE_S);
    let fresh = until("the end of an idempotency key", || {
        let video = submit_once(&client, &quick("kinora-b1")).video();
        (video.id() != done.id()).then_some(video)
    });
    client.wait_completed(fresh.id());

    // Results for 7 days.
    clock.jump_to(7 * DAY_S - TOLERANCE_S);
    let result = done.text("result_url");
    assert_eq!(server.anonymous().get(result).status, 200);
    clock.jump_to(7 * DAY_S + TOLERANCE_S);
    until("410 for an expired task", || {
        let reply = client.get(&path);
        (reply.status == 410).then(|| reply.refused(410, "video_expired"))
    });
    client.get(&done.content()).refused(410, "video_expired");
    server.anonymous().get(result).refused(410, "video_expired");
    until("the end of its files", || {
        server.data().files(done.id()).is_empty().then_some(())
    });
    // The other one is a day younger.
    assert_plays(&client, &client.video(fresh.id()));

    // Tombstones for 30 days more; then nobody knows it, whatever the clock says later.
    clock.jump_to(37 * DAY_S + TOLERANCE_S);
    for ahead_s in [37 * DAY_S + TOLERANCE_S, TEN_YEARS_S, 0] {
        clock.jump_to(ahead_s);
        until("404 for a forgotten task", || {
            let reply = client.get(&path);
            (reply.status == 404).then(|| reply.refused(404, "video_not_found"))
        });
    }
    until("the end of all files", || {
        server.data().files_of_tasks().is_empty().then_some(())
    });
    let last = client.submit(&quick("kinora-b1"));
    assert_plays(&client, &client.wait_completed(last.id()));
}

/// It waits for a reference that drips, and so never has its first run.
#[test]
fn a_task_that_waits_longer_than_it_may_expires_and_is_kept_as_long_as_configured() {
    let clock = WallClock::ahead_by(0);
    let setup = watchful(reaching_from(Setup::default()))
        .set("KINORA_QUEUE_WAITING_HOURS_MAX", 2)
        .set("KINORA_RESULTS_RETENTION_HOURS", 1);
    let server = clock.start(setup);
    let (client, host) = (server.client(), Host::start());
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(host.drip("slow"));
    let waiting = client.submit(&body);
    until("the fetch to begin", || {
        (host.drips("slow") > 0).then_some(())
    });
    clock.jump_to(2 * HOUR_S + TOLERANCE_S);
    let failed = client.wait_for(waiting.id(), "failed");
    assert_eq!(failed["error"]["code"], "task_expired");
    let at = |name: &str| failed[name].as_i64().unwrap();
    assert_eq!(at("expires_at") - at("completed_at"), HOUR_S);
}

#[test]
fn p10_a_clock_that_never_stands_still_loses_and_doubles_nothing() {
    const SEED: u64 = 0x5851_f42d_4c95_7f2d;
    println!("seed {SEED}");
    let mut dice = Dice(SEED);
    let clock = WallClock::ahead_by(0);
    let setup = watchful(Setup::default()).set("KINORA_WORKER_ATTEMPTS_MAX", 10_000);
    let server = clock.start(setup);
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
        (server.data().files_of_tasks().len() == 3 * ids.len()).then_some(())
    });
    let log = server.log();
    assert!(ids.iter().all(|id| finishes(&log, id) == 1), "{log}");
    let most = ids.iter().map(|id| runs(&log, id)).max();
    println!("at most {most:?} runs of one task");
}
