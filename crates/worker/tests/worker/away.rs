//! Results that cannot be stored for a while: nothing is claimed meanwhile, and nothing piles up.

use std::sync::Arc;

use kinora_blobs::faulty::{BlobMethod, Rates};
use kinora_contract::{StandstillReason, TaskPhase, WorkerReadiness};
use kinora_store::faulty::StoreMethod::Sweep;
use kinora_worker::FaultBackoff;

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet};

/// A result store that takes no file at all is only probed, with nothing rendered.
#[tokio::test(flavor = "multi_thread")]
async fn p11_nothing_is_claimed_until_the_blob_store_takes_a_file_again() {
    let bench = Bench::new();
    for method in [BlobMethod::PutFile, BlobMethod::PutBytes, BlobMethod::Probe] {
        bench.blob_plan.set_of(method, Some(Rates::AWAY));
    }
    let engine = Arc::new(Puppet::new(Act::Good));
    let readiness = WorkerReadiness::default();
    let mut worker = bench.worker(&engine);
    worker.backoff = FaultBackoff::new(readiness.clone(), crate::bench::real_clock());
    let running = Running::start(worker);
    let ids = [bench.submit().await, bench.submit().await];
    let probes = || bench.blob_plan.calls(BlobMethod::Probe);
    until("it is probed again", async || probes() >= 2).await;
    for id in ids {
        let waits = async || bench.phase(id).await == TaskPhase::Waiting;
        until("the task waits", waits).await;
    }
    assert_eq!(
        (engine.started(), readiness.standstill()),
        (1, Some(StandstillReason::Results))
    );
    for method in [BlobMethod::PutFile, BlobMethod::PutBytes, BlobMethod::Probe] {
        bench.blob_plan.set_of(method, None);
    }
    let artifacts = [bench.completes(ids[0]).await, bench.completes(ids[1]).await];
    assert_eq!(readiness.standstill(), None);
    running.drained().await;
    bench.holds_only(&artifacts).await;
}

/// However slow it is: otherwise more and more results wait for it, with all that they hold.
#[tokio::test(flavor = "multi_thread")]
async fn p08_a_run_keeps_its_slot_until_its_outcome_is_written() {
    const SLOTS: usize = 2;
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Good));
    let mut worker = bench.worker(&engine);
    worker.settings.slots = SLOTS;
    bench.held.hold(true);
    let running = Running::start(worker);
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(bench.submit().await);
    }
    let begun = async || bench.files_begun() >= SLOTS as u64;
    until("two results are being put", begun).await;
    // Time enough for others to be claimed.
    let sweeps = || bench.store_plan.calls(Sweep);
    let enough = sweeps() + 20;
    until("some sweeps pass", async || sweeps() >= enough).await;
    assert_eq!(engine.started(), SLOTS);
    let mut at_work = 0;
    for id in &ids {
        at_work += usize::from(bench.phase(*id).await == TaskPhase::Running);
    }
    assert_eq!(at_work, SLOTS);
    bench.held.hold(false);
    let mut artifacts = Vec::new();
    for id in ids {
        artifacts.push(bench.completes(id).await);
    }
    running.drained().await;
    for artifact in &artifacts {
        bench.is_whole(artifact).await;
    }
}

/// A cancel gives the slot back at once, but not for ever more writes that are still under way.
#[tokio::test(flavor = "multi_thread")]
async fn p08_cancels_leave_no_more_writes_under_way_than_there_are_slots() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Good));
    bench.held.hold(true);
    let running = Running::start(bench.worker(&engine));
    for begun in 1..=2 {
        let id = bench.submit().await;
        until("its result is being put", async || {
            bench.files_begun() >= begun
        })
        .await;
        bench.cancel(id).await;
    }
    let waiting = bench.submit().await;
    let sweeps = || bench.store_plan.calls(Sweep);
    let enough = sweeps() + 20;
    until("some sweeps pass", async || sweeps() >= enough).await;
    assert_eq!(bench.phase(waiting).await, TaskPhase::Waiting);
    bench.held.hold(false);
    let artifact = bench.completes(waiting).await;
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}
