//! Servers that free their memory for another engine.

use kinora_engine::FilmEngine;
use kinora_testkit::comfyui::{TestComfy, workflow};

use crate::support::{BINDINGS, card, engine, hasty};

const HELD: u64 = 20 << 30;

fn holding(frees_after: Option<u32>) -> TestComfy {
    let server = TestComfy::start();
    server.set(|behaviour| {
        behaviour.held = HELD;
        behaviour.frees_after = frees_after;
    });
    server
}

fn held(server: &TestComfy) -> u64 {
    let mut held = 0;
    server.set(|behaviour| held = behaviour.held);
    held
}

#[tokio::test]
async fn an_engine_leaves_once_all_its_servers_have_freed_their_memory() {
    let (quick, slow) = (holding(Some(0)), holding(Some(7)));
    let engine = engine(card(&workflow(), BINDINGS), &[&quick, &slow]);
    engine.unload().await;
    assert_eq!((held(&quick), held(&slow)), (0, 0));
}

#[tokio::test]
async fn a_server_that_keeps_its_memory_or_does_not_answer_holds_nobody_up() {
    let (keeps, silent) = (holding(None), holding(Some(0)));
    silent.set(|behaviour| behaviour.is_silent = true);
    let engine = hasty(card(&workflow(), BINDINGS), &[&keeps, &silent]);
    engine.unload().await;
    assert_eq!(held(&keeps), HELD);
}

#[tokio::test]
async fn a_server_is_waited_for_until_its_job_ends() {
    // Far more looks than fit into the time of a server without a job.
    let works = holding(Some(0));
    works.set(|behaviour| behaviour.works_for = 500);
    let engine = engine(card(&workflow(), BINDINGS), &[&works]);
    engine.unload().await;
    assert_eq!(held(&works), 0);
}

#[tokio::test]
async fn a_server_with_a_job_that_has_loaded_nothing_yet_is_waited_for() {
    let works = TestComfy::start();
    works.set(|behaviour| behaviour.works_for = 3);
    engine(card(&workflow(), BINDINGS), &[&works])
        .unload()
        .await;
    let mut left = u32::MAX;
    works.set(|behaviour| left = behaviour.works_for);
    assert_eq!(left, 0);
}

#[tokio::test]
async fn memory_that_pytorch_does_not_see_is_waited_for() {
    let server = TestComfy::start();
    server.set(|behaviour| {
        behaviour.unseen = HELD;
        behaviour.frees_after = Some(3);
    });
    engine(card(&workflow(), BINDINGS), &[&server])
        .unload()
        .await;
    let mut unseen = HELD;
    server.set(|behaviour| unseen = behaviour.unseen);
    assert_eq!(unseen, 0);
}

#[tokio::test]
async fn a_server_that_frees_its_memory_slowly_is_waited_for() {
    // More looks than fit into the time of a server that frees nothing.
    let slow = holding(Some(0));
    slow.set(|behaviour| behaviour.frees_at_a_time = Some(HELD / 200));
    engine(card(&workflow(), BINDINGS), &[&slow]).unload().await;
    assert_eq!(held(&slow), 0);
}

#[tokio::test]
async fn some_failed_looks_are_not_taken_for_free_memory() {
    let fails = holding(Some(9));
    fails.set(|behaviour| behaviour.fails = 3);
    engine(card(&workflow(), BINDINGS), &[&fails])
        .unload()
        .await;
    assert_eq!(held(&fails), 0);
}

#[tokio::test]
async fn a_server_that_does_not_say_what_it_holds_is_not_waited_for() {
    let server = holding(None);
    server.set(|behaviour| behaviour.device_bytes = None);
    engine(card(&workflow(), BINDINGS), &[&server])
        .unload()
        .await;
    let requests = server.requests();
    let lines: Vec<&str> = requests.iter().map(|request| &*request.line).collect();
    assert_eq!(lines, ["POST /free", "GET /system_stats"]);
}
