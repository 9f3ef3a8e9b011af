//! Servers that free their memory for another engine.

use kinora_engine::FilmEngine;
use kinora_test_comfyui::{TestComfy, workflow};

use crate::support::{BINDINGS, card, engine};

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
    let engine = engine(card(&workflow(), BINDINGS), &[&keeps, &silent]);
    engine.unload().await;
    assert_eq!(held(&keeps), HELD);
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
