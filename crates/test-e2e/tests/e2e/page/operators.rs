//! What operators see of the whole service.

use kinora_test_e2e::keys;
use serde_json::{Value, json};

use crate::support::{narrow, quick, slow};

use super::{operator, scenario};

/// Two engines of 30 GB on a device with 40, beside the built-in models.
pub(super) const SHARED: &str = r#"
[[devices]]
name = "gpu0"
memory_megabytes = 40000
idle_seconds = 0
[[engines]]
name = "sketches"
kind = "storyboard"
device = "gpu0"
memory_megabytes = 30000
[[models]]
id = "sketches"
engine = "sketches"
[[engines]]
name = "films"
kind = "storyboard"
device = "gpu0"
memory_megabytes = 30000
[[models]]
id = "films-480p"
engine = "films"
[[models]]
id = "films-720p"
engine = "films"
[[models]]
card = "kinora-a1"
id = "kinora-a1"
engine = "storyboard"
[[models]]
card = "kinora-b1"
id = "kinora-b1"
engine = "storyboard"
"#;

pub(super) fn of_model(mut body: Value, model: &str) -> Value {
    body["model"] = json!(model);
    body
}

#[test]
fn operators_see_the_whole_service_and_nobody_else_does() {
    let server = narrow().start();
    let client = server.client();
    let mut tasks = Vec::new();
    // They begin when there is a browser to look at them.
    scenario("operations", &operator(&server), |word| match word {
        "work" => {
            let running = client.submit(&slow());
            client.wait_working(running.id());
            tasks = vec![client.submit(&quick("kinora-b1")), running];
        }
        _ => tasks.iter().for_each(|video| {
            client.delete(&format!("/v1/videos/{}", video.id())).ok();
        }),
    });
}

#[test]
fn operators_pause_and_resume_models() {
    let server = narrow().start();
    let flags = [
        "create",
        "--name",
        "ops",
        "--project",
        "ops",
        "--operator-write",
    ];
    let operator = server.client_with(keys(server.data(), &flags).ok().trim());
    let paused = || operator.get("/v1/operations").ok()["paused"].clone();
    scenario("pauses", &operator, |word| match word {
        "paused" => assert_eq!(paused()[0]["model"], "kinora-b1"),
        _ => assert_eq!(paused(), json!([])),
    });
}

#[test]
fn operators_see_what_is_loaded_on_a_device_that_engines_share() {
    let server = narrow().config(SHARED).start();
    let client = server.client();
    let mut running = None;
    scenario("devices", &operator(&server), |word| match word {
        "load" => {
            let video = client.submit(&of_model(slow(), "films-720p"));
            running = Some(client.wait_working(video.id()));
        }
        _ => {
            let video = client.submit(&of_model(quick("kinora-a1"), "sketches"));
            let blocker = running.take().unwrap();
            client.delete(&format!("/v1/videos/{}", blocker.id())).ok();
            client.wait_completed(video.id());
        }
    });
}
