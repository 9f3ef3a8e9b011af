//! Presets: models that differ in their `settings` alone share one engine process and make different videos, an engine that
//! takes no settings is refused with the model's name, and no request can reach them.

use kinora_test_e2e::{Client, DataFolder, Setup, media};
use serde_json::{Value, json};

use crate::processes::{package, python_command};
use crate::support::Download;

/// An engine of the example `ENGINE`, and its models.
fn models(engine: &str, describe: &str, models: &[(&str, &str)]) -> Setup {
    let command = json!(python_command(engine));
    let package = package();
    let models: Vec<String> = models
        .iter()
        .map(|(id, settings)| {
            format!(
                "[[models]]\nid = \"{id}\"\nengine = \"own\"\nsizes = [\"256x256\"]\nseconds = [2]\n{settings}\n"
            )
        })
        .collect();
    Setup::default().config(&format!(
        "[[engines]]\nname = \"own\"\nkind = \"process\"\ncommand = {command}\n\
         environment = {{ PYTHONPATH = {package:?} }}\n\
         describe = {{ size_multiple = 2, fps = 8, features = {{ {describe} }} }}\n{}",
        models.concat()
    ))
}

fn body(model: &str, more: Value) -> Value {
    let mut body = json!({"model": model, "prompt": "Waves at dawn", "seed": 3});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

/// The video of a model, without the parts that name its task.
fn made(client: &Client, body: &Value) -> (String, Vec<u8>) {
    let video = client.wait_completed(client.submit(body).id());
    let file = Download::of(client, &video.content());
    let film = media::without_provenance(&file.bytes).to_vec();
    (video.id().to_owned(), film)
}

#[test]
fn two_models_of_one_engine_share_its_process_and_have_two_looks() {
    let server = models(
        "examples/waves.py:Waves",
        "text_to_video = true, draft = true",
        &[
            ("many", "settings = { waves = 9 }"),
            ("few", "settings = { waves = 2 }"),
            ("usual", ""),
        ],
    )
    .start();
    let client = server.client();
    let [many, few, usual] =
        ["many", "few", "usual"].map(|model| made(&client, &body(model, json!({}))).1);
    assert!(many != few && few != usual && many != usual);
    // Nothing of a preset is left for the next task, and no process was started for one.
    assert!(made(&client, &body("many", json!({}))).1 == many);
    assert!(made(&client, &body("usual", json!({}))).1 == usual);
    assert_eq!(server.children().len(), 1);
    // The final of a draft has the preset of its model.
    let (draft, _) = made(&client, &body("few", json!({"draft": true})));
    let last = json!({"model": "few", "draft_task_id": draft});
    assert!(made(&client, &last).1 == few);

    // Clients see a model, and nothing of its settings.
    let shown = client.get("/v1/models").ok();
    assert!(!shown.to_string().contains("waves"), "{shown}");
    assert_eq!(client.get("/v1/models/few").ok().get("settings"), None);
    for name in ["preset", "settings", "steps", "loras"] {
        let refused = client.submit_json(&body("few", json!({name: {}})));
        refused.refused_for(400, "unknown_parameter", Some(name));
    }
}

/// An engine whose hello promises no presets.
const PLAIN: &str = r#"
from kinora_engine import Description, Engine, Features

class Plain(Engine):
    def describe(self, settings):
        return Description(features=Features(text_to_video=True), size_multiple=2)

    def generate(self, job):
        for _ in range(job.frames):
            yield job.rgb(bytes(job.clip.width * job.clip.height * 3))
"#;

#[test]
fn an_engine_that_takes_no_presets_never_ignores_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain.py");
    std::fs::write(&file, PLAIN).unwrap();
    // An absolute path replaces the folder of the package.
    let engine = format!("{}:Plain", file.display());
    let features = "text_to_video = true";
    let server = models(&engine, features, &[("styled", "settings = { style = 1 }")]).start();
    let client = server.client();
    let failed = client.wait_for(client.submit(&body("styled", json!({}))).id(), "failed");
    assert_eq!(failed["error"]["code"], "generation_failed");
    server.wait_for_log(&["the configuration promises presets"]);
    // Without settings it is as good as any.
    let server = models(&engine, features, &[("plain", "settings = {}")]).start();
    made(&server.client(), &body("plain", json!({})));
}

#[test]
fn settings_of_a_model_that_its_kind_of_engine_cannot_take_stop_the_start() {
    let remote = "[[engines]]\nname = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\nbase_urls = [\"http://127.0.0.1:9\"]\n";
    for (engines, engine, kind) in [
        ("", "storyboard", "storyboard"),
        (remote, "studio", "remote"),
    ] {
        let started = Setup::on(&DataFolder::default())
            .config(&format!(
                "{engines}[[models]]\nid = \"styled\"\nengine = \"{engine}\"\nsettings = {{ steps = 4 }}\n"
            ))
            .try_start();
        let Err(finished) = started else {
            panic!("{engine}: it started");
        };
        let named = format!(
            "The model 'styled': settings: its engine '{engine}' is of the kind '{kind}': it takes no settings of a model."
        );
        assert!(finished.stderr.contains(&named), "{}", finished.stderr);
    }
}
