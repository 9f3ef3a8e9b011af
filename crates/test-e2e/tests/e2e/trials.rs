//! What `kinora engine try` does at a provider, and what it shows: a stand-in of xAI, by the built-in dialect.

use std::path::Path;
use std::process::Output;

use kinora_media::{ClipFormat, Recorder, RecorderOptions};
use kinora_test_e2e::kinora;
use kinora_testkit::providers::{Fate, TestProvider, Xai};

const KEY: &str = "marked-key-of-the-provider";

/// The bytes of a film of `frames` frames, eight a second.
fn film(folder: &Path, (width, height): (u32, u32), frames: u32) -> Vec<u8> {
    let path = folder.join("made.mp4");
    let format = ClipFormat {
        width,
        height,
        fps: 8,
        frames,
        audio: None,
    };
    let mut recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
    for _ in 0..frames {
        recorder
            .push_frame(&vec![0x60; format.frame_bytes()])
            .unwrap();
    }
    recorder.finish().unwrap();
    std::fs::read(&path).unwrap()
}

/// A provider that takes [`KEY`] and makes such films.
fn provider(folder: &Path, size: (u32, u32), frames: u32) -> TestProvider {
    let provider = TestProvider::start(Xai, KEY);
    let film = film(folder, size, frames);
    provider.set(|behaviour| behaviour.film = film);
    provider
}

fn settings(folder: &Path, provider: &TestProvider) -> String {
    let key = folder.join("key");
    std::fs::write(&key, KEY).unwrap();
    format!(
        "[[engines]]\nname = \"far\"\nkind = \"remote\"\ndialect = \"xai\"\nbase_urls = [\"{}\"]\n\
         key_file = \"{}\"\nmodel = \"grok-imagine-video-1.5\"\npoll_milliseconds = 50\n\
         [[engines]]\nname = \"near\"\nkind = \"process\"\ncommand = [\"true\"]\n\
         describe = {{ fps = 8, features = {{ text_to_video = true }} }}\n\
         [[models]]\nid = \"grok\"\naliases = [\"far-away\"]\nengine = \"far\"\nsizes = [\"848x480\"]\nseconds = [5]\n\
         [[models]]\nid = \"house\"\nengine = \"near\"\nfeatures = {{ text_to_video = true }}\n",
        provider.base_url(),
        key.display()
    )
}

/// Tries a model of these settings; the result lies in `folder`.
fn attempt(folder: &Path, settings: &str, arguments: &[&str]) -> (Output, String) {
    let file = folder.join("kinora.toml");
    std::fs::write(&file, settings).unwrap();
    let mut command = kinora();
    command.args(["engine", "try"]).args(arguments);
    command
        .arg("--config")
        .arg(&file)
        .arg("-o")
        .arg(folder.join("film.mp4"));
    command.stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    let [told, failure] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    let said = told + &failure;
    assert!(!said.contains(KEY), "{said}");
    (output, said)
}

#[test]
fn a_trial_shows_each_exchange_without_the_key_and_saves_a_film_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let provider = provider(folder.path(), (848, 480), 40);
    let settings = settings(folder.path(), &provider);
    let picture = folder.path().join("first.png");
    std::fs::write(
        &picture,
        kinora_test_e2e::studio::picture("first.png", (640, 480), "teal"),
    )
    .unwrap();
    let (output, said) = attempt(
        folder.path(),
        &settings,
        &[
            "far-away",
            "A red balloon",
            "--first-frame",
            picture.to_str().unwrap(),
            "--yes",
        ],
    );
    assert!(output.status.success(), "{said}");
    for part in [
        &*format!("> POST {}/videos/generations\n", provider.base_url()),
        "> authorization: ***\n",
        "\"prompt\": \"A red balloon\"",
        "\"url\": \"data:image/png;base64,",
        "characters)\"",
        "= id c0ffee00",
        "= phase running, progress 40 %",
        "= phase completed, progress 100 %, film http://",
        "cost 0.35 USD",
        "film.mp4: 848x480, 5.00 s, 8.000 frames/s, without sound",
        "fits the request",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(provider.submits().len(), 1);
    assert!(folder.path().join("film.mp4").exists());
}

#[test]
fn money_is_not_spent_before_somebody_agreed() {
    let folder = tempfile::tempdir().unwrap();
    let provider = provider(folder.path(), (64, 64), 1);
    let settings = settings(folder.path(), &provider);
    for (arguments, why) in [
        (&["grok", "A balloon"][..], "agree with --yes"),
        (&["nobody", "A balloon", "--yes"], "There is no model"),
        (&["grok", "A balloon", "--yes", "--seconds", "7"], "seconds"),
        (&["house", "A balloon", "--yes"], "kinora engine check"),
    ] {
        let (output, said) = attempt(folder.path(), &settings, arguments);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn a_film_of_another_size_is_named_and_a_refusal_is_told_as_the_task_would_tell_it() {
    let folder = tempfile::tempdir().unwrap();
    let provider = provider(folder.path(), (640, 368), 16);
    let kept = settings(folder.path(), &provider);
    let tried = ["grok", "A balloon", "--yes"];
    let (output, said) = attempt(folder.path(), &kept, &tried);
    assert!(output.status.success(), "{said}");
    for part in [
        "640x368, expected 848x480",
        "2 s, expected 5 s",
        "with a warning",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    std::fs::remove_file(folder.path().join("film.mp4")).unwrap();
    let refused = kept.replacen(
        "poll_milliseconds",
        "mismatched = \"refuse\"\npoll_milliseconds",
        1,
    );
    let (output, said) = attempt(folder.path(), &refused, &tried);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("would refuse this film"), "{said}");
    std::fs::remove_file(folder.path().join("film.mp4")).unwrap();
    provider.set(|behaviour| behaviour.fate = Fate::Moderated);
    let (output, said) = attempt(folder.path(), &kept, &tried);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("content_policy"), "{said}");
    assert!(!folder.path().join("film.mp4").exists());
}
