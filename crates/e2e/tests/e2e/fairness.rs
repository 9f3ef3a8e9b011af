//! Workers share the engines fairly among projects: however much one has waiting, another's only
//! task is the next to be started.

use kinora_e2e::{Client, until};
use serde_json::Value;

use crate::support::{narrow, quick, slow};

/// Tasks that the busy project has waiting.
const QUEUED: usize = 1_000;

fn started(log: &str) -> Vec<String> {
    let events = log.lines().filter(|line| line.contains("\"task started\""));
    events
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["span"]["task"].as_str().unwrap().to_owned()
        })
        .collect()
}

fn cancel(client: &Client, id: &str) {
    client.post(&format!("/v1/videos/{id}/cancel")).video();
}

#[test]
fn p12_a_project_with_a_thousand_waiting_tasks_does_not_starve_one_with_a_single_task() {
    let server = narrow()
        .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", QUEUED + 100)
        .start();
    let (busy, other) = (server.client(), server.newcomer());
    let first = busy.submit(&slow());
    busy.wait_working(first.id());
    for _ in 0..QUEUED {
        busy.submit(&quick("kinora-b1"));
    }
    // Of the same model, so that it waits in the same line.
    let single = other.submit(&quick("kinora-b1"));
    assert_eq!(started(&server.log()), [first.id()]);
    cancel(&busy, first.id());
    let order = until("the next start", || {
        let order = started(&server.log());
        (order.len() > 1).then_some(order)
    });
    assert_eq!(order[1], single.id(), "the busy project was served again");
    other.wait_completed(single.id());
}
