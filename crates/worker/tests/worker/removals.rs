//! A result store that accepts removals and never answers them: nothing else waits for it.

use std::sync::Arc;

use kinora_store::faulty::StoreMethod::LeaseChores;

use crate::bench::{Bench, LEASE_MS, Running, until};
use crate::engines::{Act, Puppet};
use crate::rescue::claim_and_die;

/// How long the files that a process was about to remove belong to it.
const CHORE_LEASE_MS: u64 = 60_000;

/// The files of a run.
const FILES: usize = 5;
/// So many are removed at a time.
const HANGING: usize = 4;

/// Leaves the files of a run that has ended without a result.
async fn leave_files(bench: &Bench) {
    let id = bench.submit().await;
    claim_and_die(bench, LEASE_MS).await;
    bench.cancel(id).await;
}

/// A worker that has begun to remove files, and hangs.
async fn hung_worker(bench: &Bench) -> Running {
    bench.held.hold_removals(true);
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let hangs = async || bench.held.removals() == HANGING;
    until("the removals hang", hangs).await;
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn p05_a_dead_workers_task_waits_for_no_removal() {
    let bench = Bench::new();
    leave_files(&bench).await;
    let id = bench.submit().await;
    claim_and_die(&bench, LEASE_MS).await;
    let running = hung_worker(&bench).await;
    bench.clock.advance(LEASE_MS);
    bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 2);
    running.drained().await;
}

/// The process is idle, and nobody asks for a stop at once.
#[tokio::test(flavor = "multi_thread")]
async fn p16_a_stop_waits_for_no_removal_and_another_process_does_it_after_the_lease() {
    let bench = Bench::new();
    leave_files(&bench).await;
    let running = hung_worker(&bench).await;
    running.drained().await;
    bench.held.hold_removals(false);
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    // Enough for many rounds: the lease stands.
    let rounds = || bench.store_plan.calls(LeaseChores);
    let enough = rounds() + 20;
    until("some rounds pass", async || rounds() >= enough).await;
    assert_eq!(bench.held.removals(), HANGING);
    bench.clock.advance(CHORE_LEASE_MS);
    let again = async || bench.held.removals() == HANGING + FILES;
    until("the files are removed", again).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p16_a_process_that_only_tidies_up_waits_for_no_removal_either() {
    let bench = Bench::new();
    leave_files(&bench).await;
    bench.held.hold_removals(true);
    let shutdown = kinora_worker::Shutdown::default();
    let worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    let tending = tokio::spawn(worker.tend(shutdown.clone()));
    let hangs = async || bench.held.removals() == HANGING;
    until("the removals hang", hangs).await;
    shutdown.drain();
    let ended = tokio::time::timeout(crate::bench::DEADLINE, tending).await;
    ended.expect("tend() returns").unwrap();
}
