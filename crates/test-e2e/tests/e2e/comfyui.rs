//! Kinora in front of a ComfyUI: what is asked over HTTP is made by a workflow there, once, whatever dies
//! meanwhile.

use kinora_test_e2e::media::without_provenance;
use kinora_test_e2e::{DataFolder, Host, Setup, kinora, run, studio, until};
use kinora_testkit::comfyui::{TestComfy, Works, edit_workflow, workflow};
use serde_json::json;

use crate::support::{Download, assert_plays, quick, reaching_from, shared};

/// Settings under which `wan` is served by a workflow of `server`.
fn settings(data: &DataFolder, server: &TestComfy) -> String {
    let file = data.path().with_extension("json");
    std::fs::write(&file, workflow().to_string()).unwrap();
    format!(
        "[[engines]]\n\
         name = \"wan\"\n\
         kind = \"comfyui\"\n\
         base_urls = [\"{}\"]\n\
         workflow = \"{}\"\n\
         poll_milliseconds = 50\n\
         [engines.bindings]\n\
         prompt = \"6.text\"\n\
         negative_prompt = \"7.text\"\n\
         seed = \"3.seed\"\n\
         width = \"5.width\"\n\
         height = \"5.height\"\n\
         frames = \"5.length\"\n\
         fps = \"8.fps\"\n\
         first_frame = \"10.image\"\n\
         output = \"9\"\n\
         optional = [\"first_frame\"]\n\
         [engines.describe]\n\
         fps = 16\n\
         [[models]]\n\
         id = \"wan\"\n\
         engine = \"wan\"\n",
        server.base_url(),
        file.display()
    )
}

fn front(data: &DataFolder, server: &TestComfy) -> Setup {
    reaching_from(Setup::on(data)).config(&settings(data, server))
}

/// A server whose films are those of the built-in engine.
fn comfy() -> TestComfy {
    let client = shared().client();
    let video = client.wait_completed(client.submit(&quick("kinora-b1")).id());
    let film = Download::of(&client, &video.content()).bytes;
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.film = without_provenance(&film).to_vec());
    server
}

#[test]
fn a_workflow_makes_a_video_of_a_request_and_its_image() {
    let server = comfy();
    let front = front(&DataFolder::default(), &server).start();
    let client = front.client();
    let host = Host::start();
    let picture = studio::picture("teal.png", (320, 256), "teal");
    let mut body = quick("wan");
    body["first_frame"] = json!(host.serve("teal.png", picture.clone()));
    let video = client.wait_completed(client.submit(&body).id());
    assert_plays(&client, &video);
    let graph = server.graphs().remove(0);
    assert_eq!(graph["6"]["inputs"]["text"], body["prompt"]);
    assert_eq!(graph["3"]["inputs"]["seed"], 7);
    assert_eq!(graph["5"]["inputs"]["length"], 32);
    let uploads = server.uploads();
    assert_eq!((uploads.len(), &uploads[0].1), (1, &picture));
}

#[test]
fn a_front_that_is_killed_follows_its_job_and_a_cancel_reaches_it() {
    let server = comfy();
    server.set(|behaviour| behaviour.works = Works::Endless);
    let data = DataFolder::default();
    let first = front(&data, &server).start();
    let id = first.client().submit(&quick("wan")).id().to_owned();
    until("the job to begin", || (server.looks() > 0).then_some(()));
    first.kill();
    let before = server.looks();
    let second = front(&data, &server).start();
    until("the job to be followed", || {
        (server.looks() > before).then_some(())
    });
    second
        .client()
        .post(&format!("/v1/videos/{id}/cancel"))
        .video();
    until("the job to be stopped", || {
        (!server.stopped().is_empty()).then_some(())
    });
    assert_eq!(server.begun(), server.stopped());
}

#[test]
fn a_workflow_edits_a_video_that_it_is_sent() {
    let server = comfy();
    let data = DataFolder::default();
    let file = data.path().with_extension("edit.json");
    std::fs::write(&file, edit_workflow().to_string()).unwrap();
    let editor = format!(
        "[[engines]]\n\
         name = \"editor\"\n\
         kind = \"comfyui\"\n\
         base_urls = [\"{}\"]\n\
         workflow = \"{}\"\n\
         poll_milliseconds = 50\n\
         [engines.bindings]\n\
         prompt = \"6.text\"\n\
         seed = \"3.seed\"\n\
         source_video = \"14.file\"\n\
         edit_strength = \"3.denoise\"\n\
         output = \"9\"\n\
         [engines.describe]\n\
         fps = 16\n\
         [[models]]\n\
         id = \"editor\"\n\
         engine = \"editor\"\n",
        server.base_url(),
        file.display()
    );
    let both = settings(&data, &server) + &editor;
    let front = reaching_from(Setup::on(&data)).config(&both).start();
    let client = front.client();
    let source = client.wait_completed(client.submit(&quick("wan")).id());
    let made = Download::of(&client, &source.content()).bytes;
    let body = json!({"model": "editor", "prompt": "The same in snow", "edit_task_id": source.id(), "edit_strength": 0.25});
    let video = client.wait_completed(client.submit(&body).id());
    assert_plays(&client, &video);
    assert_eq!(video["size"], source["size"]);
    let uploads = server.uploads();
    assert_eq!((uploads.len(), &uploads[0].1), (1, &made.to_vec()));
    assert_eq!(server.graphs()[1]["3"]["inputs"]["denoise"], 0.25);
}

#[test]
fn a_check_tells_what_the_server_lacks() {
    let server = TestComfy::start();
    let data = DataFolder::default();
    let config = data.path().with_extension("toml");
    std::fs::write(&config, settings(&data, &server)).unwrap();
    let check = || {
        let mut command = kinora();
        command.args(["models", "check", "--config"]).arg(&config);
        run(command)
    };
    let good = check();
    assert!(
        good.status.success() && good.stdout.contains("would make films"),
        "{good:#?}"
    );
    server.set(|behaviour| behaviour.models = vec!["other.safetensors"]);
    let bad = check();
    assert!(
        !bad.status.success() && bad.stdout.contains("model.safetensors"),
        "{bad:#?}"
    );
}

#[test]
fn an_imported_workflow_is_a_configuration() {
    let server = TestComfy::start();
    let data = DataFolder::default();
    let file = data.path().with_extension("workflow 2.json");
    std::fs::write(&file, workflow().to_string()).unwrap();
    let mut command = kinora();
    command
        .args(["comfy", "import", "--server", &server.base_url()])
        .arg(&file);
    let imported = run(command);
    assert!(imported.status.success(), "{imported:#?}");
    let config = data.path().with_extension("toml");
    std::fs::write(&config, &imported.stdout).unwrap();
    let mut command = kinora();
    command.args(["models", "check", "--config"]).arg(&config);
    let checked = run(command);
    assert!(
        checked.status.success(),
        "{checked:#?}\n{}",
        imported.stdout
    );
}
