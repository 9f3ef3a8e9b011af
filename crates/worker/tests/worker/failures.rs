//! What a client sees when an engine fails, and that nothing else suffers.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::FailureCode;
use kinora_worker::{AnyEngine, EngineLineup, ServedEngine};

use crate::bench::{Bench, DEADLINE, MODEL, Running, until};
use crate::engines::{Act, PRIVATE, Puppet};

const FAILURES: [(Act, FailureCode); 15] = [
    (Act::Fails, FailureCode::GenerationFailed),
    (Act::RunsOutOfMemory, FailureCode::OutOfMemory),
    (Act::Panics, FailureCode::GenerationFailed),
    (Act::PanicsInPlan, FailureCode::GenerationFailed),
    (Act::RefusesInPlan, FailureCode::GenerationFailed),
    (Act::ClaimsCancel, FailureCode::GenerationFailed),
    (Act::OneFrameTooFew, FailureCode::GenerationFailed),
    (Act::OneFrameTooMany, FailureCode::GenerationFailed),
    (Act::ShortFrame, FailureCode::GenerationFailed),
    (Act::Decides(0), FailureCode::GenerationFailed),
    // One more than the longest clip of the plan.
    (Act::Decides(5), FailureCode::GenerationFailed),
    (Act::DecidesTwice, FailureCode::GenerationFailed),
    (Act::DecidesNothing, FailureCode::GenerationFailed),
    (Act::DecidesUnasked, FailureCode::GenerationFailed),
    (Act::Silent, FailureCode::GenerationTimeout),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_an_engine_has_its_public_code_and_no_private_word() {
    let bench = Bench::new();
    let model = |act: Act| format!("{act:?}");
    let served = FAILURES.map(|(act, _)| {
        let served = ServedEngine {
            device: None,
            seats: None,
            engine: AnyEngine::Frames(Arc::new(Puppet::new(act))),
            progress_timeout: match act {
                Act::Silent => Duration::from_millis(30),
                _ => DEADLINE,
            },
            preset: None,
        };
        (model(act), served)
    });
    let mut worker = bench.worker_of([]);
    worker.lineup = EngineLineup::new(served);
    let running = Running::start(worker);
    for (act, code) in FAILURES {
        let id = bench.submit_to(&model(act)).await;
        let (told, message) = bench.fails(id).await;
        assert_eq!(told, code.as_str(), "{act:?}");
        assert_eq!(message, code.sentence(), "{act:?}");
        assert!(!message.contains(PRIVATE));
        assert_eq!(bench.task(id).await.attempt, 1, "{act:?} is final");
    }
    running.drained().await;
    bench.holds_only(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_an_engine_costs_its_own_task_alone() {
    let bench = Bench::new();
    let (held, panics, good) = (
        Arc::new(Puppet::new(Act::Held)),
        Arc::new(Puppet::new(Act::Panics)),
        Arc::new(Puppet::new(Act::Good)),
    );
    let mut worker = bench.worker_of([("held", &held), ("panics", &panics), ("good", &good)]);
    worker.settings.slots = 2;
    let running = Running::start(worker);
    let beside = bench.submit_to("held").await;
    until("the neighbour runs", async || held.at_work() == 1).await;
    for _ in 0..3 {
        let failed = bench.submit_to("panics").await;
        let (code, _) = bench.fails(failed).await;
        assert_eq!(code, FailureCode::GenerationFailed.as_str());
    }
    let after = bench.submit_to("good").await;
    let after = bench.completes(after).await;
    held.release();
    let beside = bench.completes(beside).await;
    running.drained().await;
    bench.holds_only(&[beside, after]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stands_still_is_told_to_stop_and_its_task_fails() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Silent));
    let served = |progress_timeout| ServedEngine {
        seats: None,
        engine: AnyEngine::Frames(engine.clone()),
        progress_timeout,
        device: None,
        preset: None,
    };
    let mut worker = bench.worker(&engine);
    worker.lineup = EngineLineup::new([
        ("hasty".to_owned(), served(Duration::from_millis(30))),
        (MODEL.to_owned(), served(DEADLINE)),
    ]);
    let running = Running::start(worker);
    let id = bench.submit_to("hasty").await;
    let (code, _) = bench.fails(id).await;
    assert_eq!(code, FailureCode::GenerationTimeout.as_str());
    until("the engine was told", async || engine.told().is_some()).await;
    // The one slot is free again.
    let next = bench.submit().await;
    let next = bench.completes(next).await;
    running.drained().await;
    bench.holds_only(&[next]).await;
}
