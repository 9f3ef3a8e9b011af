//! Engines that are commands of the operator, and look for the secrets of the service that started them.

use kinora_test_e2e::{Setup, workspace};
use serde_json::json;

use crate::processes::package;

/// What the spy looks for.
const ALL: [&str; 10] = [
    "environment",
    "memory",
    "descriptors",
    "tracing",
    "signals",
    "database",
    "data folder",
    "new files",
    "own code",
    "own folder",
];

/// What a spy with these settings finds.
fn found(setup: Setup, settings: &str) -> Vec<&'static str> {
    let spy = workspace().join("crates/test-e2e/tests/e2e/attacks/spy.py:Spy");
    let command = json!(["python3", "-m", "kinora_engine", spy]);
    let data = setup.data_path();
    let server = setup
        .set("KINORA_LOG_LEVEL", "info,kinora_engine_host=debug")
        .set("AWS_SECRET_ACCESS_KEY", "secret-of-a-cloud")
        .config(&format!(
            "[[engines]]\n\
             name = \"spy\"\n\
             kind = \"process\"\n\
             command = {command}\n\
             environment = {{ PYTHONPATH = {package:?} }}\n\
             settings = {{ data = {data:?} }}\n\
             {settings}\n\
             [engines.describe]\n\
             fps = 8\n\
             features = {{ text_to_video = true }}\n\
             [[models]]\n\
             id = \"spy\"\n\
             engine = \"spy\"\n\
             sizes = [\"256x256\"]\n\
             seconds = [2]\n",
            package = package(),
        ))
        .start();
    let client = server.client();
    let task = client.submit(&json!({"model": "spy", "prompt": "A door ajar"}));
    client.wait_completed(task.id());
    let has = |what: &&str| server.logged(&[&format!("the spy has: {what}.")]) > 0;
    ALL.into_iter().filter(has).collect()
}

/// A service without the capabilities of root, which open every process.
fn without_capabilities() -> Setup {
    match rustix::process::geteuid().is_root() {
        true => Setup::default().under(&["setpriv", "--bounding-set=-all", "--inh-caps=-all"]),
        false => Setup::default(),
    }
}

#[test]
fn p14_a_command_finds_no_secrets_in_the_process_of_its_service() {
    let own = [
        "signals",
        "database",
        "data folder",
        "new files",
        "own code",
    ];
    assert_eq!(found(without_capabilities(), ""), own);
}

#[test]
fn p14_a_confined_command_finds_its_own_files_alone_even_as_root() {
    let lacking = kinora_engine_host::rehearse();
    if lacking.iter().any(|part| part.contains("Landlock")) {
        println!("not tested: {lacking:?}");
        return;
    }
    let readable = json!([
        workspace().join("python/src"),
        workspace().join("crates/test-e2e/tests")
    ]);
    let settings = format!("confine = true\nreadable = {readable}");
    assert_eq!(
        found(Setup::default(), &settings),
        ["own code", "own folder"]
    );
}
