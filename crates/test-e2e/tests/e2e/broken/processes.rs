//! Processes on devices.

use kinora_test_e2e::{Server, Setup, Video, until, workspace};
use serde_json::json;

use super::{
    assert_all_complete, beside, body, ended, place, places, wait_for_failures, wait_until_back,
};
use crate::processes::package;

/// How one device of several is sick.
const KINDS: [&str; 9] = [
    "fails",
    "fails_late",
    "fails_every_second",
    "broken",
    "exits",
    "lies",
    "opening_hangs",
    "opening_exits",
    "opening_fails",
];

/// A service with an engine on so many devices, of which "0" is sick in this way until a file exists.
pub(super) fn sick(setup: Setup, how: &str, devices: &[String]) -> (Setup, std::path::PathBuf) {
    let mended = setup.data_path().with_extension("mended");
    let engine = workspace().join("crates/test-e2e/tests/e2e/broken/sick.py:Sick");
    let command = json!(["python3", "-m", "kinora_engine", engine]);
    let settings = format!(
        "[worker]\n\
         slots = {slots}\n\
         [[engines]]\n\
         name = \"wan\"\n\
         kind = \"process\"\n\
         command = {command}\n\
         environment = {{ PYTHONPATH = {package:?} }}\n\
         devices = {names}\n\
         settings = {{ how = {how:?}, device = \"0\", mended = {mended:?} }}\n\
         [engines.host]\n\
         open_seconds = 5\n\
         [engines.describe]\n\
         fps = 8\n\
         features = {{ text_to_video = true }}\n\
         [[models]]\n\
         id = \"wan\"\n\
         engine = \"wan\"\n\
         sizes = [\"256x256\"]\n\
         seconds = [2]\n",
        package = package(),
        slots = devices.len(),
        names = json!(devices),
    );
    (setup.config(&settings), mended)
}

fn start(how: &str, devices: usize) -> (Server, std::path::PathBuf) {
    let devices: Vec<String> = (0..devices).map(|device| device.to_string()).collect();
    let (setup, mended) = sick(Setup::default(), how, &devices);
    (setup.start(), mended)
}

#[test]
fn p18_no_task_fails_that_the_other_of_two_devices_completes() {
    for how in KINDS {
        let (server, _) = start(how, 2);
        assert_all_complete(&server.client(), 10);
        wait_for_failures(&server, "device 0", 1);
        assert_eq!(place(&server, "device 1")["failures"], 0, "{how}");
    }
}

#[test]
fn p18_one_sick_device_of_eight_gets_probes_and_is_back_once_it_is_mended() {
    let (server, mended) = start("fails", 8);
    let client = server.client();
    assert_all_complete(&client, 40);
    let sick = until("the record of the sick one", || {
        // On a busy machine its process may open last, and get few of the first ones.
        assert_all_complete(&client, 8);
        let sick = place(&server, "device 0");
        (sick["state"] != "available").then_some(sick)
    });
    assert!(sick["attempts"].as_u64() < Some(10), "{sick:#?}");
    let error = sick["last_error"].as_str().unwrap();
    assert!(error.contains("the picture is black"), "{sick:#?}");
    std::fs::write(mended, "").unwrap();
    wait_until_back(&server, &client, "device 0");
}

#[test]
fn p18_a_broken_context_of_an_only_device_costs_no_task() {
    let (server, mended) = start("broken", 1);
    let client = server.client();
    let first = client.submit(&body("Boat"));
    std::fs::write(mended, "").unwrap();
    client.wait_completed(first.id());
    assert_all_complete(&client, 3);
}

#[test]
fn p18_a_request_that_breaks_every_process_ends_after_three() {
    let (server, _) = start("broken", 1);
    let video = ended(&server.client(), 1).remove(0);
    assert_eq!(video["error"]["code"], "generation_failed");
    server.assert_logged(&["engine process started"], 3);
}

#[test]
fn a_request_that_fails_everywhere_fails_after_one_retry() {
    let (server, _) = start("never", 4);
    let client = server.client();
    // Every device refuses it.
    let mut video = client.submit(&body("fails everywhere"));
    video = until("it to end", || {
        Some(client.video(video.id())).filter(Video::is_finished)
    });
    assert_eq!(video["error"]["code"], "generation_failed");
    let attempts = until("both to be counted", || {
        let places = places(&server);
        let attempts = places
            .iter()
            .map(|place| place["attempts"].as_u64().unwrap());
        Some(attempts.sum::<u64>()).filter(|sum| *sum > 1)
    });
    assert_eq!(attempts, 2);
    assert_all_complete(&client, 8);
}

#[test]
fn p18_tasks_wait_for_an_only_device_that_does_not_open() {
    let (server, mended) = start("opening_fails", 1);
    let client = server.client();
    let id = client.submit(&body("Boat")).id().to_owned();
    until("the device to be in quarantine", || {
        (place(&server, "device 0")["state"] == "quarantined").then_some(())
    });
    until("the service to say so", || {
        let ready = client.get("/readyz");
        (ready.status == 503).then_some(())
    });
    until("the model to be unavailable", || {
        let models = client.get("/v1/models").ok();
        (models["data"][0]["available"] == false).then_some(())
    });
    assert!(!client.video(&id).is_finished());
    let doctor = beside(&server, &["doctor"]);
    assert!(
        doctor.stdout.contains("No CUDA GPUs are available"),
        "{doctor:#?}"
    );
    std::fs::write(mended, "").unwrap();
    client.wait_completed(&id);
}
