//! "Copy as code" does what it says: the texts of a request run as they are, with curl and both SDKs.

use std::path::Path;
use std::process::Command;

use kinora_test_e2e::{Client, Host, media, run, studio, workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{fetching, quick, square};

/// The texts of a request by their languages, as the page would show them.
fn texts(client: &Client, body: &Value) -> Vec<(String, String)> {
    let mut command = Command::new("node");
    command
        .arg(workspace().join("crates/test-e2e/node/snippets.mjs"))
        .arg(format!("{}/", client.base_url()))
        .arg(body.to_string());
    serde_json::from_str(&run(command).ok()).unwrap()
}

/// Runs a text in `folder`, as somebody would who has pasted it there.
fn paste(language: &str, text: &str, folder: &Path, client: &Client) -> String {
    let modules = workspace().join("crates/test-e2e/node/node_modules");
    let (program, name) = match language {
        "curl" => ("bash".into(), "paste.sh"),
        "Python" => (workspace().join(".venv/bin/python"), "paste.py"),
        "JavaScript" => ("node".into(), "paste.mjs"),
        other => panic!("no test runs {other}"),
    };
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
    let mut command = Command::new(program);
    command
        .arg(name)
        .current_dir(folder)
        .env("KINORA_KEY", client.key())
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL");
    let done = run(command);
    assert!(
        done.status.success(),
        "{language}: {text}\n{}\n{}",
        done.stdout,
        done.stderr
    );
    done.stdout
}

/// Runs the texts of `body` in all languages; each makes a task that is what `body` asks for in `fields`.
fn runs(client: &Client, body: &Value, fields: &[&str]) {
    let texts = texts(client, body);
    assert_eq!(texts.len(), 3, "{texts:?}");
    for (language, text) in texts {
        let folder = TempDir::new().unwrap();
        let before = newest(client);
        let printed = paste(&language, &text, folder.path(), client);
        let task = newest(client);
        assert_ne!(
            task["id"], before["id"],
            "{language} has made no task: {text}"
        );
        for field in fields {
            let made = same_lines(&task[*field]);
            assert_eq!(made, body[*field], "{language}: {text}\n{task:#}");
        }
        if language == "curl" {
            let answer: Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(answer["id"], task["id"]);
            client.wait_completed(task["id"].as_str().unwrap());
        } else {
            media::assert_decodes(&folder.path().join("video.mp4"));
        }
    }
}

/// The SDK for JavaScript submits a form, in which every end of a line becomes two characters (RFC 7578).
fn same_lines(value: &Value) -> Value {
    let text = value.as_str().map(|text| text.replace("\r\n", "\n"));
    text.map_or_else(|| value.clone(), Value::from)
}

fn newest(client: &Client) -> Value {
    client.get("/v1/videos?limit=1").ok()["data"][0].clone()
}

#[test]
fn a_request_with_hard_words_runs_in_all_languages() {
    let client = fetching().newcomer();
    let prompt = "It's a \"kite\" over $HOME, `ls`, 50 % \\ off\n— 凧 🪁 it's '''raw'''";
    let mut body = square("kinora-a1");
    body["prompt"] = json!(prompt);
    body["negative_prompt"] = json!("rain, but not 'fog'");
    body["generate_audio"] = json!(false);
    runs(&client, &body, &["prompt", "seed", "model"]);
}

#[test]
fn a_request_with_pictures_and_sounds_runs_in_all_languages() {
    let host = Host::start();
    let picture = host.serve("photo.png", studio::landscape("photo.png", (640, 480)));
    let sound = host.serve("tone.wav", studio::tone("tone.wav", 440, 3.0));
    let body = json!({"model": "kinora-a1", "prompt": "A kite", "seconds": 2, "aspect_ratio": "adaptive",
        "resolution": "480p", "reference_images": [picture, picture], "reference_audios": [sound]});
    runs(&fetching().newcomer(), &body, &["prompt"]);
}

#[test]
fn a_final_and_an_edit_run_in_all_languages() {
    let client = fetching().newcomer();
    let mut draft = square("kinora-a1");
    draft["draft"] = json!(true);
    let draft = client.submit(&draft);
    let draft = client.wait_completed(draft.id());
    let body = json!({"model": "kinora-a1", "draft_task_id": draft.id()});
    runs(&client, &body, &["draft_task_id"]);
    let source = client.submit(&quick("kinora-b1"));
    let source = client.wait_completed(source.id());
    let body = json!({"model": "kinora-b1", "prompt": "It's night", "seed": 9,
        "edit_task_id": source.id(), "edit_strength": 0.6});
    runs(&client, &body, &["prompt", "edit_task_id", "seed"]);
}
