//! The registry of workers: announced on one handle, seen on another, ended by the store's clock.

use kinora_contract::Clock;

use super::bench::Bench;
use super::fixtures::{LEASE_MS, MODELS, NOW};
use super::{Harness, Site};
use crate::{
    DeviceEngine, DeviceEngineState, LivingWorker, ServedModel, SharedDevice, WorkerAnnouncement,
    WorkerPlace, WorkerPlaceState, WorkerState,
};

const ANNOUNCED_MS: u64 = 20_000;

fn worker(id: &str, models: &[&str]) -> WorkerAnnouncement {
    let serves = |model: &&str| ServedModel {
        model: (*model).to_owned(),
        engine: "storyboard/7".to_owned(),
        device: Some("cuda0, \"quoted\"".to_owned()),
        is_available: true,
    };
    WorkerAnnouncement {
        id: id.to_owned(),
        host: "gpu-1".to_owned(),
        pid: 4711,
        version: "0.1.0".to_owned(),
        models: models.iter().map(serves).collect(),
        slots: 2,
        started_at_ms: 1_700_000_000_000,
        state: WorkerState::Serving,
        places: vec![WorkerPlace {
            engine: "wan".to_owned(),
            name: "device 0".to_owned(),
            state: WorkerPlaceState::Quarantined,
            running: 1,
            attempts: 12,
            failures: 3,
            quarantined_seconds: 60,
            last_error: Some("generation failed: \"Xid 31\"".to_owned()),
        }],
        devices: vec![SharedDevice {
            name: "gpu0".to_owned(),
            memory_megabytes: 80_000,
            swaps: 3,
            engines: vec![DeviceEngine {
                engine: "wan".to_owned(),
                models: vec!["wan-480p".to_owned(), "wan-720p".to_owned()],
                memory_megabytes: 40_000,
                state: DeviceEngineState::Idle,
            }],
        }],
    }
}

async fn announce(site: &Site, worker: &WorkerAnnouncement) {
    site.workers.announce(worker, ANNOUNCED_MS).await.unwrap();
}

async fn living(site: &Site) -> Vec<LivingWorker> {
    site.workers.living().await.unwrap()
}

async fn ids(site: &Site) -> Vec<String> {
    let living = living(site).await.into_iter();
    living.map(|one| one.worker.id).collect()
}

async fn served(site: &Site) -> Vec<String> {
    let served = site.workers.served_models().await.unwrap();
    served.into_iter().collect()
}

/// Announcements are complete, in the order of their ids, with their age.
pub async fn a_worker_is_seen_on_another_handle(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    assert!(living(&there).await.is_empty() && served(&there).await.is_empty());
    let (first, second) = (worker("b", &["two"]), worker("a", &["one", "two"]));
    announce(&here, &first).await;
    here.clock.advance(7);
    announce(&there, &second).await;
    let one = |worker: &WorkerAnnouncement, seen_ms_ago| LivingWorker {
        worker: worker.clone(),
        seen_ms_ago,
        running: 0,
    };
    for site in [&here, &there] {
        assert_eq!(living(site).await, [one(&second, 0), one(&first, 7)]);
        assert_eq!(served(site).await, ["one", "two"]);
    }
    let mut quarantined = second.clone();
    quarantined.models[0].is_available = false;
    announce(&there, &quarantined).await;
    assert_eq!(served(&here).await, ["two"], "nobody can run the other");
}

/// The announcement ends by the store's clock, to the millisecond; a renewal counts from its own
/// time.
pub async fn an_announcement_ends_unless_it_is_renewed(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    announce(&here, &worker("lasting", &["one"])).await;
    announce(&here, &worker("passing", &["two"])).await;
    here.clock.advance(ANNOUNCED_MS - 1);
    announce(&here, &worker("lasting", &["one"])).await;
    assert_eq!(ids(&there).await, ["lasting", "passing"]);
    here.clock.advance(1);
    assert_eq!(ids(&there).await, ["lasting"]);
    assert_eq!(served(&there).await, ["one"]);
    here.clock.advance(ANNOUNCED_MS - 1);
    for site in [&here, &there] {
        assert!(living(site).await.is_empty() && served(site).await.is_empty());
    }
}

/// An announcement lasts for its full time even after a step of the wall clock.
pub async fn an_announcement_outlives_a_step_of_the_wall_clock(harness: &impl Harness) {
    let site = harness.open("store").await;
    announce(&site, &worker("one", &["one"])).await;
    site.clock.set(NOW + 60 * 60 * 1000);
    assert_eq!(ids(&site).await, ["one"]);
    site.clock.set(NOW - 60 * 60 * 1000);
    assert_eq!(ids(&site).await, ["one"]);
    site.clock.advance(ANNOUNCED_MS);
    assert!(ids(&site).await.is_empty());
}

/// The worker is gone on every handle. Withdrawing it again, or withdrawing an unknown worker, does
/// nothing.
pub async fn a_withdrawn_worker_is_gone_at_once(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    announce(&here, &worker("one", &["one"])).await;
    announce(&here, &worker("two", &["two"])).await;
    for _ in 0..2 {
        there.workers.withdraw("one").await.unwrap();
        assert_eq!(ids(&here).await, ["two"]);
        assert_eq!(served(&here).await, ["two"]);
    }
    announce(&here, &worker("one", &["one"])).await;
    assert_eq!(ids(&there).await, ["one", "two"]);
}

/// A draining worker is listed until it ends, and serves nothing.
pub async fn a_draining_worker_serves_no_model(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    announce(&here, &worker("one", &["one"])).await;
    let draining = WorkerAnnouncement {
        state: WorkerState::Draining,
        ..worker("one", &["one"])
    };
    announce(&here, &draining).await;
    assert_eq!(living(&there).await[0].worker, draining);
    assert!(served(&there).await.is_empty());
}

/// Tasks are counted by the worker names in the leases; an ended lease no longer counts.
pub async fn the_tasks_of_a_worker_are_counted(harness: &impl Harness) {
    let [api, site] = harness.open_both("store").await;
    for number in 1..=3 {
        api.submit(number, "one").await;
    }
    let claims = site.claim(2).await;
    let running = async |site: &Site| {
        let living = living(site).await.into_iter();
        living.map(|one| one.running).collect::<Vec<u64>>()
    };
    let name = super::fixtures::claiming(1).worker;
    announce(&site, &worker(&name, &MODELS)).await;
    announce(&site, &worker("zz idle", &MODELS)).await;
    assert_eq!(running(&api).await, [2, 0]);
    site.complete(&claims[0]).await.unwrap();
    assert_eq!(running(&api).await, [1, 0]);
    let one = claims[1].task.id;
    let deleted = api.tasks.delete("one", one).await;
    deleted.unwrap();
    assert_eq!(running(&api).await, [0, 0]);
    site.claim_one().await;
    assert_eq!(running(&api).await, [1, 0]);
    // The lease ends, and the task returns to the queue.
    announce(&site, &worker(&name, &MODELS)).await;
    api.sweep(api.clock.now_ms() + LEASE_MS).await;
    announce(&site, &worker(&name, &MODELS)).await;
    assert_eq!(running(&api).await, [0]);
}
