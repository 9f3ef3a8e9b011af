//! The examples of `docs/api.md`, run as a reader would run them: each submit is accepted, and its video is made; every
//! other call succeeds. Only the address of the service is replaced, and the web server of the sound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use kinora_test_e2e::{
    Block, Client, Finished, Host, Video, blocks, readers_path, run, until, workspace,
};
use serde_json::Value;

use crate::support::{fetching, quick, slow};

/// The blocks of the page that are marked as `kind`, in its order.
fn marked(kind: &str) -> Vec<Block> {
    let page = blocks("docs/api.md").into_iter();
    page.filter(|block| block.kind == kind).collect()
}

/// Whether a store that fails on purpose was all that was wrong: the reader tries again.
fn to_be_tried_again(done: &Finished) -> bool {
    let answer: Option<Value> = serde_json::from_str(&done.stdout).ok();
    answer.is_some_and(|answer| answer["error"]["code"] == "storage_unavailable")
        && std::env::var_os("KINORA_FAULT_PPM").is_some()
}

/// What `script` prints, run in `folder` against the service of `client`.
fn run_script(
    script: &str,
    folder: &Path,
    client: &Client,
    variables: &BTreeMap<&str, String>,
) -> Finished {
    let script = script.replace("http://127.0.0.1:8080", client.base_url());
    let curl = "curl() { command curl -sS --fail-with-body \"$@\"; }";
    let programs = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-eu", "-c", &format!("{curl}\n{script}")])
        .current_dir(folder)
        .env("PATH", readers_path("docs/api.md", programs.path()))
        .env("KINORA_KEY", client.key())
        .envs(variables);
    run(command)
}

/// The variables of the page, made as it says; only its web server is one of ours.
fn prepared(client: &Client, host: &Host, id: &str) -> BTreeMap<&'static str, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut variables = BTreeMap::from([("VIDEO_ID", id.to_owned())]);
    for Block { name, text, .. } in marked("preparation") {
        let lines = text.lines();
        let own = lines.filter(|line| !line.contains("http.server") && !line.contains("SOUND="));
        let script = own.collect::<Vec<_>>().join("\n") + "\necho \"${PICTURE-}\"";
        let done = run_script(&script, folder.path(), client, &variables);
        assert!(done.status.success(), "{script}\n{}", done.stderr);
        match name.as_str() {
            "PICTURE" => variables.insert("PICTURE", done.stdout.trim().to_owned()),
            _ => {
                let tone = std::fs::read(folder.path().join("tone.wav")).unwrap();
                variables.insert("SOUND", host.serve("tone.wav", tone))
            }
        };
    }
    variables
}

fn submit_by(script: &str, client: &Client, variables: &BTreeMap<&str, String>) -> Video {
    let folder = tempfile::tempdir().unwrap();
    let done = until("an answer of stores that did not fail", || {
        let done = run_script(script, folder.path(), client, variables);
        (!to_be_tried_again(&done)).then_some(done)
    });
    let answer: Value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {script}\n{}{}", done.stdout, done.stderr));
    assert!(done.status.success(), "{script}\n{answer:#}");
    client.video(answer["id"].as_str().unwrap())
}

#[test]
fn every_example_of_the_page_makes_its_video() {
    let client = fetching().newcomer();
    let host = Host::start();
    let source = client.submit(&quick("kinora-a1"));
    client.wait_completed(source.id());
    let mut variables = prepared(&client, &host, source.id());
    let examples = marked("example");
    for Block { name, text, .. } in &examples {
        let video = submit_by(text, &client, &variables);
        client.wait_completed(video.id());
        if name == "draft" {
            variables.insert("DRAFT_ID", video.id().to_owned());
        }
    }

    // Nothing that a model can do is left without an example.
    let names: BTreeSet<&str> = examples.iter().map(|example| &*example.name).collect();
    let models = client.get("/v1/models").ok();
    let capabilities = models["data"][0]["capabilities"].as_object().unwrap();
    let no_features = ["sizes", "seconds_min", "seconds_max", "seconds_default"];
    let missing: Vec<&String> = capabilities
        .keys()
        .filter(|name| !names.contains(name.as_str()) && !no_features.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "no example for {missing:?}");
}

/// Cancels what a page has submitted and nobody waits for.
fn cancel_all(client: &Client) {
    let tasks = client.get("/v1/videos?limit=100").ok();
    for task in tasks["data"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let status = client.post(&format!("/v1/videos/{id}/cancel")).status;
        // Some have ended.
        assert!(matches!(status, 200 | 409), "{status}");
    }
}

#[test]
fn every_other_call_of_the_page_succeeds() {
    let client = fetching().newcomer();
    let host = Host::start();
    let source = client.submit(&quick("kinora-a1"));
    client.wait_completed(source.id());
    let folder = tempfile::tempdir().unwrap();
    let mut variables = prepared(&client, &host, source.id());
    let mut python = String::new();
    for Block {
        language,
        name,
        text,
        ..
    } in marked("call")
    {
        if language == "python" {
            python += &text;
            continue;
        }
        if name == "cancel" {
            variables.insert("VIDEO_ID", client.submit(&slow()).id().to_owned());
        }
        let done = run_script(&text, folder.path(), &client, &variables);
        assert!(done.status.success(), "{text}\n{done:#?}");
    }
    // One program, of which the page shows a part at a time.
    let program = workspace().join(".venv/bin/python");
    let script = format!("{} - <<'PYTHON'\n{python}PYTHON\n", program.display());
    let done = run_script(&script, folder.path(), &client, &variables);
    assert!(done.status.success(), "{done:#?}");
    for name in ["balloon.mp4", "head.bin"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    cancel_all(&client);
}
