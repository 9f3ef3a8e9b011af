//! The budget of a key, over two API processes.

use std::thread;

use kinora_test_e2e::{Server, Setup};
use serde_json::Value;

use super::Cluster;
use crate::support::square;

/// A clip of 2 s costs 0.1, whatever its size.
const PRICED: &str = r#"
[[models]]
card = "kinora-b1"
id = "kinora-b1"
engine = "storyboard"
[models.prices]
per_second = 0.05
"#;
const CLIPS: usize = 10;

fn api(cluster: &Cluster) -> Server {
    let setup = Setup::on(&cluster.machine()).without_worker();
    cluster.process(setup).config(PRICED).start()
}

#[test]
fn p12_a_key_s_budget_holds_over_two_apis() {
    let cluster = Cluster::new();
    let apis = [api(&cluster), api(&cluster)];
    let key = cluster.command(&[
        "keys",
        "create",
        "--name",
        "limited",
        "--budget-per-day",
        "1",
    ]);
    let clients = apis.each_ref().map(|api| api.client_with(key.trim()));
    let accepted: Vec<String> = thread::scope(|scope| {
        let submits = (0..20).map(|number| {
            let client = &clients[number % 2];
            scope.spawn(move || {
                let mut accepted = Vec::new();
                for _ in 0..10 {
                    let reply = client.submit_json(&square("kinora-b1"));
                    match reply.status {
                        200 => accepted.push(reply.video().id().to_owned()),
                        _ => drop(reply.refused(429, "budget_exceeded")),
                    }
                }
                accepted
            })
        });
        let submits: Vec<_> = submits.collect();
        submits
            .into_iter()
            .flat_map(|submit| submit.join().unwrap())
            .collect()
    });
    assert_eq!(accepted.len(), CLIPS);
    // A cancel at one process makes room at the other, for one.
    clients[0]
        .post(&format!("/v1/videos/{}/cancel", accepted[0]))
        .ok();
    let again = clients[1].submit(&square("kinora-b1"));
    clients[0]
        .submit_json(&square("kinora-b1"))
        .refused(429, "budget_exceeded");

    let setup = Setup::on(&cluster.machine()).as_worker();
    let worker = cluster.process(setup).config(PRICED).start();
    for id in accepted[1..].iter().map(String::as_str).chain([again.id()]) {
        let video = clients[0].wait_completed(id);
        assert_eq!(video["cost"]["amount"], 0.1, "{id}");
    }
    let usage = clients[1].get("/v1/usage").ok();
    assert_eq!(usage["budgets"]["key"]["spent_today"], 1.0, "{usage:#}");
    let rows: Value = serde_json::from_str(&cluster.command(&["usage", "--json"])).unwrap();
    let costs = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["cost"].as_f64().unwrap());
    assert!((costs.sum::<f64>() - 1.0).abs() < 1e-9, "{rows:#}");
    drop(worker);
}
