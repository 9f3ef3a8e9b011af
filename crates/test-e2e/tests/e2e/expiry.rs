//! What ends by time, in the real process: idempotency keys, results, tombstones and tasks that wait too long end by
//! a clock that stays, and what a clock before the release has made is kept for its time.

use kinora_test_e2e::{DataFolder, Host, Setup, WallClock, until};
use serde_json::json;

use crate::clocks::{DAY_S, HOUR_S, TEN_YEARS_S, TOLERANCE_S, submit_once, sweeps_pass, watchful};
use crate::support::{assert_plays, quick, reaching_from};

/// 2000-01-01, in seconds since 1970.
const YEAR_2000_S: i64 = 946_684_800;

/// A service that believes a clock after a second.
fn credulous(setup: Setup) -> Setup {
    watchful(setup).set("CLOCK_SETTLE_MS", 1000)
}

#[test]
fn p10_what_ends_by_time_ends_by_the_clock_and_does_not_come_back() {
    let data = DataFolder::default();
    let clock = WallClock::ahead_by(0);
    // Between two lives the clock may have gone on: only a process knows of steps in its own time.
    let life_at = |ahead_s| {
        clock.jump_to(ahead_s);
        clock.start(credulous(Setup::on(&data)))
    };
    let server = life_at(0);
    let client = server.client();
    let done = submit_once(&client, &quick("kinora-b1")).video();
    let done = client.wait_completed(done.id());
    let path = format!("/v1/videos/{}", done.id());
    server.kill();

    // Idempotency keys live for 24 hours.
    let server = life_at(DAY_S - TOLERANCE_S);
    sweeps_pass(4);
    let twin = submit_once(&server.client(), &quick("kinora-b1")).video();
    assert_eq!(twin.id(), done.id());
    server.kill();
    let server = life_at(DAY_S + TOLERANCE_S);
    let client = server.client();
    let fresh = until("the end of an idempotency key", || {
        let video = submit_once(&client, &quick("kinora-b1")).video();
        (video.id() != done.id()).then_some(video)
    });
    client.wait_completed(fresh.id());
    server.kill();

    // Results for 7 days.
    let server = life_at(7 * DAY_S - TOLERANCE_S);
    sweeps_pass(4);
    let still = server.client().video(done.id());
    // The next life listens elsewhere.
    let result = still.text("result_url").strip_prefix(&server.base_url());
    let result = result.unwrap();
    assert_eq!(server.anonymous().get(result).status, 200);
    server.kill();
    let server = life_at(7 * DAY_S + TOLERANCE_S);
    let client = server.client();
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
    server.kill();

    // Tombstones for 30 days more; then nobody knows it, whatever the clock says later.
    let server = life_at(37 * DAY_S + 2 * TOLERANCE_S);
    let client = server.client();
    for ahead_s in [37 * DAY_S + 2 * TOLERANCE_S, TEN_YEARS_S, 0] {
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
    let data = DataFolder::default();
    let clock = WallClock::ahead_by(0);
    // Between two lives, since waiting is not counted over a step of the clock in one of them.
    let life_at = |ahead_s| {
        clock.jump_to(ahead_s);
        let setup = credulous(reaching_from(Setup::on(&data)))
            .set("KINORA_QUEUE_WAITING_HOURS_MAX", 2)
            .set("KINORA_RESULTS_RETENTION_HOURS", 1);
        clock.start(setup)
    };
    let (server, host) = (life_at(0), Host::start());
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(host.drip("slow"));
    let waiting = server.client().submit(&body);
    until("the fetch to begin", || {
        (host.drips("slow") > 0).then_some(())
    });
    server.kill();
    let server = life_at(2 * HOUR_S + TOLERANCE_S);
    let failed = server.client().wait_for(waiting.id(), "failed");
    assert_eq!(failed["error"]["code"], "task_expired");
    let at = |name: &str| failed[name].as_i64().unwrap();
    assert_eq!(at("expires_at") - at("completed_at"), HOUR_S);
}

/// Whichever way it failed: it has no files, and its texts would fill a disk for as long as results are kept.
#[test]
fn a_failed_task_is_kept_for_a_day_and_a_result_for_a_week() {
    let server = Setup::default().start();
    let client = server.client();
    let mut unreachable = quick("kinora-b1");
    unreachable["first_frame"] = json!("http://127.0.0.1/a.png");
    let completed = client.submit(&quick("kinora-b1"));
    let unreachable = client.submit(&unreachable);
    let cancelled = client.submit(&json!({"model": "kinora-a1", "prompt": "x", "seconds": 15}));
    client.post(&format!("/v1/videos/{}/cancel", cancelled.id()));
    for (task, end, days) in [
        (completed, "completed", 7),
        (unreachable, "failed", 1),
        (cancelled, "failed", 1),
    ] {
        let task = client.wait_for(task.id(), end);
        let at = |name: &str| task[name].as_i64().unwrap();
        assert_eq!(
            at("expires_at") - at("completed_at"),
            days * DAY_S,
            "{task:?}"
        );
    }
}

#[test]
fn p10_what_a_machine_made_in_2000_is_kept_when_its_clock_is_set() {
    // The tests' machine is right, or this proves nothing.
    let now_s = WallClock::machine_s();
    let clock = WallClock::ahead_by(YEAR_2000_S - now_s);
    let server = clock.start(credulous(Setup::default()));
    server.wait_for_log(&["stands before the release"]);
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    assert!(video["created_at"].as_i64().unwrap() < YEAR_2000_S + DAY_S);
    let done = client.wait_completed(video.id());
    clock.jump_to(0);
    // Its expiry moves along with the clock, which a client sees.
    let unjudged = || client.forgetful().video(done.id());
    let moved = until("a later expiry", || {
        let video = unjudged();
        (video["expires_at"].as_i64().unwrap() > now_s + 6 * DAY_S).then_some(video)
    });
    sweeps_pass(4);
    assert_plays(&client, &moved);
    assert_eq!(unjudged().status(), "completed");
    let result = moved.text("result_url");
    assert_eq!(server.anonymous().get(result).status, 200);
    // And it ends like any other.
    let data = server.data().clone();
    server.kill();
    clock.jump_to(8 * DAY_S);
    let server = clock.start(credulous(Setup::on(&data)));
    let client = server.client();
    until("410 for an expired task", || {
        let reply = client.get(&format!("/v1/videos/{}", done.id()));
        (reply.status == 410).then(|| reply.refused(410, "video_expired"))
    });
}
