//! PostgreSQL that is away for a while, or dies again and again, under load.

use kinora_test_postgres::{Server as Postgres, Settings};

use super::{Cluster, finished};
use crate::support::square;

/// How often the server dies.
const DEATHS: usize = 10;

#[test]
fn a_database_that_dies_again_and_again_costs_no_task() {
    let postgres = Postgres::start(Settings {
        fsync: true,
        ..Settings::default()
    });
    let cluster = Cluster::on(postgres.database());
    let api = cluster.api();
    let workers = [cluster.worker(), cluster.worker()];
    let client = api.client();
    let mut accepted = Vec::new();
    for round in 0..DEATHS {
        for number in 0..3 {
            let submit = client
                .request("POST", "/v1/videos")
                .json(&square("kinora-b1"));
            let submit = submit.header("idempotency-key", format!("{round}-{number}"));
            accepted.push(submit.send().video().id().to_owned());
        }
        postgres.stop();
        // Refused with what to do, and nothing hangs.
        let refused = client.submit_json(&square("kinora-b1"));
        refused.refused(503, "storage_unavailable");
        postgres.resume();
        kinora_e2e::until("submits to be taken again", || {
            let reply = client.get("/readyz");
            (reply.status == 200).then_some(())
        });
    }
    for id in &accepted {
        client.wait_completed(id);
    }
    let mut made: Vec<String> = workers.iter().flat_map(finished).collect();
    made.sort();
    accepted.sort();
    assert_eq!(made, accepted, "each is published once");
}
