//! PostgreSQL that is away for a while, or dies again and again, under load.

use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Reply, until};
use kinora_testkit::postgres::{Server as Postgres, Settings};

use super::{Cluster, Server, assert_made_once, setting};
use crate::support::{slow, square};

/// How often the server dies.
const DEATHS: usize = 10;
/// How long it is away, in seconds: as long as a lease lasts. `KINORA_CLUSTER_OUTAGE_SECONDS` asks for another time.
const OUTAGE_SECONDS: u64 = 30;
/// Orders that are refused meanwhile, at least.
const REFUSED_MIN: usize = 20;
/// Orders that a client repeats until they are taken.
const REPEATED: usize = 4;

fn synced() -> Postgres {
    Postgres::start(Settings {
        fsync: true,
        ..Settings::default()
    })
}

pub(super) fn order(client: &Client, key: &str) -> Reply {
    let submit = client
        .request("POST", "/v1/videos")
        .json(&square("kinora-b1"));
    submit.header("idempotency-key", key).send()
}

fn accepted(client: &Client, key: &str) -> String {
    order(client, key).video().id().to_owned()
}

fn wait_ready(api: &Server) {
    until("submits to be taken again", || {
        (api.anonymous().get("/readyz").status == 200).then_some(())
    });
}

#[test]
fn a_database_that_dies_again_and_again_costs_no_task() {
    let postgres = synced();
    let cluster = Cluster::on(postgres.database());
    let api = cluster.api();
    let workers = [cluster.worker(), cluster.worker()];
    let client = api.client();
    let mut ids = Vec::new();
    for round in 0..DEATHS {
        ids.extend((0..3).map(|number| accepted(&client, &format!("{round}-{number}"))));
        postgres.stop();
        // Refused with what to do, and nothing hangs.
        let refused = client.submit_json(&square("kinora-b1"));
        refused.refused(503, "storage_unavailable");
        postgres.resume();
        wait_ready(&api);
    }
    for id in &ids {
        client.wait_completed(id);
    }
    assert_made_once(&cluster, &workers, &ids);
}

#[test]
fn a_database_that_is_away_for_long_costs_no_task_and_ended_tasks_are_shown_meanwhile() {
    let postgres = synced();
    let cluster = Cluster::on(postgres.database());
    let apis = [cluster.api(), cluster.api()];
    let workers = [cluster.worker(), cluster.worker()];
    let clients = apis.each_ref().map(Server::client);
    let client = &clients[0];
    let mut ids = vec![accepted(client, "ended-1"), accepted(client, "ended-2")];
    let ended = ids.clone();
    for (client, id) in clients
        .iter()
        .flat_map(|one| ended.iter().map(move |id| (one, id)))
    {
        client.wait_completed(id);
    }
    // All slots are busy, and more tasks wait.
    let long = (0..4).map(|_| client.submit(&slow()).id().to_owned());
    ids.extend(long.collect::<Vec<_>>());
    client.wait_working(&ids[2]);
    ids.extend((0..3).map(|number| accepted(client, &format!("before-{number}"))));

    postgres.stop();
    let outage = Duration::from_secs(setting("KINORA_CLUSTER_OUTAGE_SECONDS", OUTAGE_SECONDS));
    let (begun, mut refused) = (Instant::now(), 0);
    while begun.elapsed() < outage || refused < REFUSED_MIN {
        let client = &clients[refused % 2];
        // With the time after which it is worth another try.
        order(client, &format!("during-{}", refused % REPEATED))
            .refused(503, "storage_unavailable");
        refused += 1;
        for id in &ended {
            let video = client.video(id);
            assert_eq!(video.status(), "completed");
            assert_eq!(client.get(&video.content()).status, 200);
        }
        let unfinished = format!("/v1/videos/{}", ids[2]);
        // A poll may show for a moment what an earlier one has read.
        until("polls of unfinished tasks to be refused", || {
            (client.get(&unfinished).status != 200).then_some(())
        });
        client.get(&unfinished).refused(503, "storage_unavailable");
        assert_eq!(client.get("/readyz").status, 503);
        // An answer takes no time; the outage does.
        let answered = Instant::now();
        until("the next order", || {
            (answered.elapsed() > Duration::from_millis(100)).then_some(())
        });
    }
    postgres.resume();
    apis.iter().for_each(wait_ready);
    // What was refused left nothing behind, and is taken now, once.
    let listed = client.get("/v1/videos?limit=100").ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), ids.len());
    for number in 0..REPEATED {
        let same = clients
            .each_ref()
            .map(|client| accepted(client, &format!("during-{number}")));
        assert_eq!(same[0], same[1]);
        ids.extend(same.into_iter().take(1));
    }
    for id in &ids {
        client.wait_completed(id);
    }
    assert_made_once(&cluster, &workers, &ids);
}
