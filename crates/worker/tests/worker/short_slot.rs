//! Long tasks leave one slot to short ones, once there have been any.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Phase, Seconds, VideoSpec};
use kinora_worker::Worker;

use crate::bench::{Bench, MODEL, Running, spec, until};
use crate::engines::{Act, Puppet};

const SHORT: &str = "short";
const OTHER: &str = "other";

/// Two slots; tasks of [`MODEL`] run until they are released, those of [`SHORT`] end at once.
fn worker(bench: &Bench, held: &Arc<Puppet>) -> Worker {
    let good = Arc::new(Puppet::new(Act::Good));
    let mut worker = bench.worker_of([(MODEL, held), (SHORT, &good)]);
    worker.settings.slots = 2;
    worker.settings.short_slot_memory = Duration::from_secs(600);
    worker
}

fn lasting(model: &str, seconds: u32) -> VideoSpec {
    VideoSpec {
        seconds: Seconds::Fixed(seconds),
        ..spec(model)
    }
}

/// Submits a short task of a project of its own, and waits until it is completed.
async fn newcomer_completes(bench: &Bench) {
    let id = bench.submit_as(OTHER, SHORT).await;
    until("the newcomer's task is completed", async || {
        let found = bench.store.tasks.get(OTHER, id).await.unwrap();
        found.is_some_and(|task| task.state.phase() == Phase::Completed)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_short_task_of_another_project_does_not_wait_for_long_ones() {
    let bench = Bench::new();
    let held = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(worker(&bench, &held));
    newcomer_completes(&bench).await;
    let mut long = Vec::new();
    for _ in 0..6 {
        long.push(bench.submit_spec(lasting(MODEL, 15)).await);
    }
    until("a long task runs", async || held.at_work() == 1).await;
    // None of the long ones has been released, nor is before the last of these.
    for _ in 0..3 {
        newcomer_completes(&bench).await;
    }
    let short = bench.submit_spec(lasting(MODEL, 5)).await;
    for id in &long[1..] {
        assert_eq!(bench.phase(*id).await, Phase::Waiting);
    }
    for _ in 0..5 {
        held.release_one();
    }
    // The last long one and the short one behind it use both slots.
    until("both are at work", async || held.at_work() == 2).await;
    held.release();
    for id in long.into_iter().chain([short]) {
        bench.completes(id).await;
    }
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_alone_with_equal_tasks_uses_all_slots() {
    let bench = Bench::new();
    let held = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(worker(&bench, &held));
    let mut equal = Vec::new();
    for _ in 0..6 {
        equal.push(bench.submit_spec(lasting(MODEL, 15)).await);
    }
    for released in 0..5 {
        until("both slots work", async || {
            held.started() == released + 2 && held.at_work() == 2
        })
        .await;
        held.release_one();
    }
    held.release();
    for id in equal {
        bench.completes(id).await;
    }
    running.drained().await;
}
