//! Engines that take fewer tasks at a time than there are slots.

use std::sync::Arc;

use kinora_contract::TaskPhase;
use kinora_worker::{AnyEngine, EngineLineup, ServedEngine, Worker};
use tokio::sync::Semaphore;

use crate::bench::{Bench, DEADLINE, MODEL, Running, until};
use crate::engines::{Act, Puppet};

const OTHER: &str = "other";
const TWIN: &str = "twin";

/// Four slots; [`MODEL`] and [`TWIN`] share an engine with one seat, [`OTHER`] has one without bounds.
fn worker(bench: &Bench, narrow: &Arc<Puppet>, wide: &Arc<Puppet>) -> Worker {
    let seats = Arc::new(Semaphore::new(1));
    let served = |model: &str, engine: &Arc<Puppet>, seats| {
        let served = ServedEngine {
            engine: AnyEngine::Frames(engine.clone()),
            progress_timeout: DEADLINE,
            device: None,
            seats,
            preset: None,
        };
        (model.to_owned(), served)
    };
    let mut worker = bench.worker(narrow);
    worker.settings.slots = 4;
    worker.lineup = EngineLineup::new([
        served(MODEL, narrow, Some(seats.clone())),
        served(TWIN, narrow, Some(seats)),
        served(OTHER, wide, None),
    ]);
    worker
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_with_one_seat_has_one_task_and_the_others_wait_without_a_slot() {
    let bench = Bench::new();
    let narrow = Arc::new(Puppet::new(Act::Held));
    let wide = Arc::new(Puppet::new(Act::Good));
    let running = Running::start(worker(&bench, &narrow, &wide));
    let mut waiting = Vec::new();
    for model in [MODEL, TWIN, MODEL, TWIN, MODEL] {
        waiting.push(bench.submit_to(model).await);
    }
    until("the engine works", async || narrow.at_work() == 1).await;
    // More than the slots that are left: each is claimed after the others of its queue were not.
    for _ in 0..5 {
        let other = bench.submit_to(OTHER).await;
        bench.completes(other).await;
    }
    for id in &waiting[1..] {
        assert_eq!(bench.phase(*id).await, TaskPhase::Waiting);
    }
    narrow.release();
    for id in waiting {
        bench.completes(id).await;
    }
    running.drained().await;
    assert_eq!(narrow.at_work_max(), 1);
}
