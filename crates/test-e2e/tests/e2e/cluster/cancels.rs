//! A cancel at an API, and the slot of a worker on another machine that it frees.

use std::time::{Duration, Instant};

use kinora_test_e2e::until;

use super::{Cluster, elsewhere};
use crate::support::{narrow_on, slow, square};

/// From the answer to a cancel until a freed slot elsewhere has its next task, at most.
const FREED_MAX: Duration = Duration::from_secs(2);
/// Cancels of which one must be as quick: the machine may be busy with other tests.
const CANCELS: usize = 10;

#[test]
fn a_cancel_on_one_machine_frees_a_slot_on_another() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let client = apis[0].client();
    let other = elsewhere(&client, &apis[1]);
    until("the API to know that nobody serves yet", || {
        let models = client.get("/v1/models").ok();
        (models["data"][0]["available"] == false).then_some(())
    });
    // It waits.
    let reply = client.submit_json(&slow());
    assert!(reply.header("x-kinora-warning").is_some());
    let mut long = reply.video();
    let worker = narrow_on(&cluster.machine()).as_worker();
    let worker = cluster.process(worker).start();
    let mut freed = Vec::new();
    for _ in 0..CANCELS {
        client.wait_working(long.id());
        let next = client.submit(&square("kinora-b1"));
        let cancelled = other
            .post(&format!("/v1/videos/{}/cancel", long.id()))
            .video();
        let answered = Instant::now();
        assert_eq!(cancelled.status(), "failed");
        worker.wait_for_log(&["task started", next.id()]);
        freed.push(answered.elapsed());
        client.wait_completed(next.id());
        until(
            "the end of the cancelled task to be seen by the other API",
            || (client.video(long.id()).status() == "failed").then_some(()),
        );
        if freed.last() < Some(&FREED_MAX) {
            return;
        }
        long = client.submit(&slow());
    }
    panic!("no slot was free within {FREED_MAX:?}: {freed:?}");
}
