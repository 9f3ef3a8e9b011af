//! The curl lines of `docs/api.md`, run as a reader would run them: each is accepted, and its
//! video is made. Only the two hosts in them are replaced, by the service and by a caller's host.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use kinora_e2e::{Client, Host, Video, run, studio, workspace};
use serde_json::Value;

use crate::support::{quick, reaching};

/// Name and text of each example of the page, in its order.
fn examples() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(workspace().join("docs/api.md")).unwrap();
    let marked = page.split("<!-- example: ").skip(1);
    marked
        .map(|part| {
            let (name, rest) = part.split_once(" -->\n```sh\n").unwrap();
            let (script, _) = rest.split_once("```\n").unwrap();
            (name.to_owned(), script.to_owned())
        })
        .collect()
}

/// Serves whatever of `https://example.com` the script names, and returns it with the host's
/// address in place of that one.
fn with_host(script: &str, host: &Host) -> String {
    for part in script.split("https://example.com/").skip(1) {
        let name = part.split(['"', '\n', ' ']).next().unwrap();
        let bytes = match name.rsplit('.').next().unwrap() {
            "mp3" => studio::tone(name, 440, 2.0),
            _ => studio::landscape(name, (800, 600)),
        };
        host.serve(name, bytes);
    }
    script.replace("https://example.com/", &host.url(""))
}

fn submit_by(script: &str, client: &Client, ids: &BTreeMap<&str, String>) -> Video {
    let mut command = Command::new("bash");
    command
        .args([
            "-eu",
            "-c",
            &format!("curl() {{ command curl -sS --fail-with-body \"$@\"; }}\n{script}"),
        ])
        .env("KINORA_KEY", client.key())
        .envs(ids);
    let done = run(command);
    let answer: Value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {script}\n{}{}", done.stdout, done.stderr));
    assert!(done.status.success(), "{script}\n{answer:#}");
    client.video(answer["id"].as_str().unwrap())
}

#[test]
fn every_example_of_the_page_makes_its_video() {
    let client = reaching().newcomer();
    let host = Host::start();
    let source = client.submit(&quick("kinora-a1"));
    client.wait_completed(source.id());
    let mut ids = BTreeMap::from([("VIDEO_ID", source.id().to_owned())]);
    let examples = examples();
    for (name, script) in &examples {
        let script = with_host(script, &host).replace("http://127.0.0.1:8080", client.base_url());
        let video = submit_by(&script, &client, &ids);
        client.wait_completed(video.id());
        if name == "draft" {
            ids.insert("DRAFT_ID", video.id().to_owned());
        }
    }

    // Nothing that a model can do is left without an example.
    let names: BTreeSet<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
    let models = client.get("/v1/models").ok();
    let capabilities = models["data"][0]["capabilities"].as_object().unwrap();
    let no_features = ["sizes", "seconds_min", "seconds_max", "seconds_default"];
    let missing: Vec<&String> = capabilities
        .keys()
        .filter(|name| !names.contains(name.as_str()) && !no_features.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "no example for {missing:?}");
}
