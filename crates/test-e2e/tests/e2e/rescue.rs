//! Workers that hang or die in the middle of a task: it runs again soon, ends once, and is given
//! up after so many deaths.

use std::time::{Duration, Instant};

use kinora_test_e2e::{DataFolder, Hold, RESULT_FILES, Server, Setup, until};
use serde_json::json;

use crate::support::{assert_plays, narrow, quick, slow, steadily, steady};

/// Far longer than a busy machine keeps a thread waiting.
const LEASE: Duration = Duration::from_secs(8);
/// A lease of 30 s and a sweep of 5 s, of a service with its defaults.
const RESCUED_WITHIN: Duration = Duration::from_secs(35);
/// Of a service with its defaults.
const ATTEMPTS_MAX: usize = 3;

fn hasty(setup: Setup) -> Setup {
    setup
        .set("KINORA_WORKER_LEASE_SECONDS", LEASE.as_secs())
        .set("SWEEP_SECONDS", 1)
}

fn starts(server: &Server, id: &str) -> usize {
    server.logged(&["\"task started\"", id])
}

/// Stands still for two leases.
fn hang(server: &Server) {
    server.freeze();
    let since = Instant::now();
    until("two leases to pass", || {
        (since.elapsed() > 2 * LEASE).then_some(())
    });
    server.thaw();
}

/// It ended once, with one attempt's files.
fn assert_ended_once(server: &Server, id: &str) {
    let client = server.client();
    assert_plays(&client, &client.wait_completed(id));
    until("one attempt's files", || {
        (server.data().files(id).len() == RESULT_FILES).then_some(())
    });
    server.assert_logged(&["\"task finished\"", id], 1);
    assert!(starts(server, id) <= 2, "{}", server.log());
}

#[test]
fn p05_a_process_that_stands_still_for_two_leases_completes_its_task_once() {
    let server = hasty(steadily(narrow())).start();
    let client = server.client();
    let running = client.submit(&steady());
    let waiting = client.submit(&quick("kinora-b1"));
    client.wait_working(running.id());
    hang(&server);
    assert_ended_once(&server, running.id());
    assert_ended_once(&server, waiting.id());
    let log = server.log();
    assert_eq!(
        starts(&server, running.id()),
        1,
        "it has cost an attempt: {log}"
    );
}

#[test]
fn p03_a_process_that_stands_still_while_it_publishes_publishes_once() {
    let hold = Hold::at("blobs.synced", 2);
    let server = hasty(hold.over(narrow())).start();
    let video = server.client().submit(&quick("kinora-a1"));
    hold.wait();
    hang(&server);
    hold.release();
    assert_ended_once(&server, video.id());
    assert_eq!(starts(&server, video.id()), 1, "it has cost an attempt");
}

#[test]
fn p05_a_task_whose_process_was_killed_runs_again_within_a_lease_and_a_sweep() {
    let data = DataFolder::default();
    let server = steadily(Setup::on(&data)).start();
    let video = server.client().submit(&steady());
    server.client().wait_working(video.id());
    server.kill();
    let killed = Instant::now();
    let server = steadily(Setup::on(&data)).start();
    server.wait_for_log(&["\"task started\"", "\"attempt\":2", video.id()]);
    let rescued = killed.elapsed();
    let client = server.client();
    client.wait_completed(video.id());
    println!(
        "runs again after {rescued:?}, completed after {:?}",
        killed.elapsed()
    );
    assert!(rescued < RESCUED_WITHIN, "{rescued:?}");
    assert_ended_once(&server, video.id());
}

#[test]
fn p05_a_task_that_was_running_at_every_death_is_given_up() {
    let data = DataFolder::default();
    let mut id = None;
    let setup = || Setup::on(&data).set("SETTLED_AFTER_SECONDS", 0);
    for attempt in 1..=ATTEMPTS_MAX {
        let server = setup().start();
        let client = server.client();
        let id = id.get_or_insert_with(|| client.submit(&slow()).id().to_owned());
        server.wait_for_log(&["\"task started\"", &format!("\"attempt\":{attempt}"), id]);
        assert_eq!(client.video(id).status(), "in_progress");
        server.kill();
    }
    let id = id.unwrap();
    let server = Setup::on(&data).start();
    let client = server.client();
    let failed = client.wait_for(&id, "failed");
    assert_eq!(failed["error"]["code"], "worker_lost", "{failed:#?}");
    assert_eq!(starts(&server, &id), 0);
    until("the end of its files", || {
        data.files(&id).is_empty().then_some(())
    });
    // It does not take others with it.
    let next = client.submit(&quick("kinora-b1"));
    assert_ended_once(&server, next.id());
}

/// A service that is killed again and again, as soon as it works or says that it waits.
#[test]
fn p05_a_crash_loop_ends_no_innocent_task() {
    const KILLS: usize = 15;
    const TASKS: usize = 12;
    let data = DataFolder::default();
    let mut ids = Vec::new();
    let mut pauses = 0;
    for _ in 0..KILLS {
        let server = Setup::on(&data).set("SETTLED_AFTER_SECONDS", 3_600).start();
        while ids.len() < TASKS {
            ids.push(server.client().submit(&slow()).id().to_owned());
        }
        let waits = |server: &Server| server.logged(&["pause after unclean starts"]);
        until("work, or a pause", || {
            (server.logged(&["\"task started\""]) + waits(&server) > 0).then_some(())
        });
        pauses += waits(&server);
        server.kill();
    }
    assert!(pauses > KILLS / 2, "{pauses}");
    assert_none_failed(&data, &ids);
}

/// The same without pauses: a task that ran at two deaths is left alone, while others of its age go on.
#[test]
fn p05_a_process_that_is_killed_young_ends_no_task() {
    const KILLS: usize = 8;
    let data = DataFolder::default();
    let mut ids: Vec<String> = Vec::new();
    for life in 0..KILLS {
        let server = Setup::on(&data)
            .set("KINORA_WORKER_SLOTS", 2)
            .set("START_PAUSE_SECONDS_MAX", 0)
            .set("SETTLED_AFTER_SECONDS", 3_600)
            .start();
        let client = match life {
            0 => server.client(),
            _ => server.newcomer(),
        };
        let id = client.submit(&slow()).id().to_owned();
        until("its work", || (starts(&server, &id) > 0).then_some(()));
        match ids.first() {
            Some(first) if life == 1 => {
                until("another try", || (starts(&server, first) > 0).then_some(()));
            }
            Some(first) => assert_eq!(starts(&server, first), 0, "in life {life}"),
            None => {}
        }
        ids.push(id);
        server.kill();
    }
    assert_none_failed(&data, &ids[..1]);
}

/// A task of another project ends in each life: that says nothing of the one that is killed.
#[test]
fn p05_a_crash_loop_that_completes_short_tasks_ends_no_innocent_task() {
    const KILLS: usize = 5;
    let data = DataFolder::default();
    let mut id = None;
    for life in 0..KILLS {
        let server = Setup::on(&data)
            .set("KINORA_WORKER_SLOTS", 2)
            .set("START_PAUSE_SECONDS_MAX", 0)
            .set("SETTLED_AFTER_SECONDS", 3_600)
            .start();
        let client = server.client();
        let id = id.get_or_insert_with(|| client.submit(&slow()).id().to_owned());
        let newcomer = server.newcomer();
        if life < ATTEMPTS_MAX - 1 {
            until("its work", || (starts(&server, id) > 0).then_some(()));
        }
        newcomer.wait_completed(newcomer.submit(&quick("kinora-b1")).id());
        let next = newcomer.submit(&quick("kinora-b1"));
        until("another short task, or the last attempt", || {
            let ended = newcomer.video(next.id()).is_finished();
            (ended || starts(&server, id) > usize::from(life < ATTEMPTS_MAX - 1)).then_some(())
        });
        assert_ne!(client.video(id).status(), "failed", "in life {life}");
        server.kill();
    }
    assert_none_failed(&data, &[id.unwrap()]);
}

/// They go on when the service lives.
fn assert_none_failed(data: &DataFolder, ids: &[String]) {
    let server = Setup::on(data)
        .set("START_PAUSE_SECONDS_MAX", 0)
        .set("SETTLED_AFTER_SECONDS", 0)
        .start();
    let client = server.client();
    server.wait_for_log(&["\"task started\"", &ids[0]]);
    for id in ids {
        assert_ne!(client.video(id).status(), "failed");
    }
}

#[test]
fn p05_a_task_that_kills_its_process_ends_and_its_neighbours_do_not() {
    let data = DataFolder::default();
    let setup = || {
        Setup::on(&data)
            .set("KINORA_WORKER_SLOTS", 2)
            .set("START_PAUSE_SECONDS_MAX", 0)
            .set("SETTLED_AFTER_SECONDS", 0)
    };
    let mut body = quick("kinora-a1");
    body["seconds"] = json!(8);
    let (mut poison, mut neighbours) = (None, Vec::new());
    let mut deaths = 0;
    loop {
        let server = setup().start();
        let client = server.client();
        let poison = poison.get_or_insert_with(|| client.submit(&slow()).id().to_owned());
        while neighbours.len() < 3 {
            neighbours.push(client.submit(&body).id().to_owned());
        }
        let ended = until("the poison to work, or to be given up", || {
            if client.video(poison).status() == "failed" {
                return Some(true);
            }
            // Together with a neighbour, until it runs alone.
            let beside = server.logged(&["\"task started\""]) > 1 || deaths + 1 == ATTEMPTS_MAX;
            (starts(&server, poison) > 0 && beside).then_some(false)
        });
        if ended {
            assert_eq!(
                client.video(poison)["error"]["code"],
                "worker_lost",
                "after {deaths} deaths"
            );
            for id in &neighbours {
                client.wait_completed(id);
            }
            break;
        }
        server.kill();
        deaths += 1;
    }
    assert_eq!(deaths, ATTEMPTS_MAX);
}
