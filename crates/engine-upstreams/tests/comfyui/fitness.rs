//! What `kinora models check` and the doctor tell of servers: each finding with what to do.

use kinora_engine::FilmEngine;
use kinora_testkit::comfyui::{TestComfy, workflow};

use crate::support::{BINDINGS, card, engine};

async fn asked(bindings: &str, server: &TestComfy) -> Option<String> {
    let engine = engine(card(&workflow(), bindings), &[server]);
    let report = engine.ask_servers().await.remove(0);
    assert_eq!(report.server, server.base_url());
    report.refusal
}

#[tokio::test]
async fn a_server_that_has_everything_is_good() {
    let server = TestComfy::start();
    assert_eq!(asked(BINDINGS, &server).await, None);
    server.set(|behaviour| behaviour.version = "0.6.0");
    assert_eq!(asked(BINDINGS, &server).await, None);
}

#[tokio::test]
async fn what_a_server_lacks_is_told_with_what_to_do() {
    let server = TestComfy::start();
    server.set(|behaviour| {
        behaviour.lacks = vec!["ImageToVideo"];
        behaviour.models = vec!["other.safetensors"];
        behaviour.version = "0.5.1";
    });
    let told = asked(BINDINGS, &server).await.unwrap();
    for words in [
        "no class ImageToVideo; install",
        "'ckpt_name' is \"model.safetensors\"",
        "one of: other.safetensors",
        "update it to 0.6.0",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(told.lines().count(), 3, "{told}");
}

#[tokio::test]
async fn an_optional_file_must_feed_an_input_that_may_be_empty() {
    let mut graph = workflow();
    graph["8"]["inputs"]["images"] = serde_json::json!(["10", 0]);
    let server = TestComfy::start();
    let bindings = "prompt = \"6.text\"\nfirst_frame = \"10.image\"\noutput = \"9\"\noptional = [\"first_frame\"]";
    // The text leads nowhere in this graph.
    let broken =
        kinora_engine_upstreams::comfyui::Workflow::read(graph.to_string().as_bytes()).unwrap();
    let read = toml::from_str(bindings).unwrap();
    let refused = kinora_engine_upstreams::comfyui::WorkflowCard::new(
        broken,
        read,
        toml::from_str("fps = 16").unwrap(),
    );
    assert!(
        refused
            .unwrap_err()
            .0
            .contains("does not lead to the output")
    );
    graph["8"]["inputs"]["other"] = serde_json::json!(["3", 0]);
    let engine = engine(card(&graph, bindings), &[&server]);
    let told = engine.ask_servers().await.remove(0).refusal.unwrap();
    assert!(
        told.contains("node 8 (CreateVideo) needs its input 'images'"),
        "{told}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_told_as_such() {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.wants = Some(("x-gate", "open")));
    let told = asked(BINDINGS, &server).await.unwrap();
    assert!(told.contains("401"), "{told}");
}
