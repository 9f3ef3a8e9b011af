//! The files of configured models, by the real binary: downloaded once, listed, removed unless another model uses them;
//! and a service without them says what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use kinora_test_e2e::{DataFolder, Finished, Host, Running, Setup, kinora, run, until};
use serde_json::Value;

use crate::cli::bare;

/// SHA-256 of "weights", by `sha256sum`.
const SHA256: &str = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

/// A configuration with models of commands, each named after its engine.
pub(crate) struct Configured {
    data: DataFolder,
    text: String,
    publisher: String,
    models: Vec<String>,
}

impl Configured {
    /// One without models. Their files will be in the folder `weights` beside the data folder.
    pub(crate) fn new(data: &DataFolder, publisher: &Host) -> Self {
        Self {
            data: data.clone(),
            text: String::new(),
            publisher: publisher.url(""),
            models: Vec::new(),
        }
    }

    /// With a file of `model` that the publisher has by the same name; `more` is known of it.
    pub(crate) fn file(mut self, model: &str, name: &str, more: &str) -> Self {
        let path = self.path(name);
        if self.models.last().is_none_or(|last| last != model) {
            self.models.push(model.to_owned());
            self.text += &format!(
                "[[models]]\nid = \"{model}\"\naliases = [\"{model}-alias\"]\nengine = \"{model}\"\n\
                 [[engines]]\nname = \"{model}\"\nkind = \"process\"\ncommand = [\"cat\"]\n\
                 describe = {{ fps = 16, features = {{ text_to_video = true }} }}\n"
            );
        }
        self.text += &format!(
            "[[engines.files]]\npath = \"{}\"\nurl = \"{}{name}\"\n{more}\n",
            path.display(),
            self.publisher
        );
        self
    }

    /// Where a file is to be.
    fn path(&self, name: &str) -> PathBuf {
        self.data.beside("weights").join(name)
    }

    pub(crate) fn write(&self) -> PathBuf {
        let path = self.data.beside("kinora.toml");
        fs::write(&path, &self.text).unwrap();
        path
    }

    /// Runs `kinora models` on it.
    fn models(&self, arguments: &[&str]) -> Finished {
        let mut command = kinora();
        command.arg("models").args(arguments);
        command.arg("--config").arg(self.write());
        run(command)
    }
}

/// Two models, one of which has a file of its own, and share another.
fn shared_files(data: &DataFolder, publisher: &Host) -> Configured {
    publisher.serve("own", "weights");
    publisher.serve("both", "other weights");
    let known = format!("bytes = 7\nsha256 = \"{SHA256}\"");
    Configured::new(data, publisher)
        .file("one", "own", &known)
        .file("one", "both", "")
        .file("two", "both", "")
}

#[test]
fn files_are_downloaded_once_and_checked() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = shared_files(&data, &publisher);
    let pulled = config.models(&["pull", "one-alias"]);
    let said = pulled.stderr.clone();
    let printed = pulled.ok();
    assert!(
        printed.contains("own: downloaded, 7 bytes; SHA-256 is right"),
        "{printed}"
    );
    assert!(
        printed.contains("both: downloaded, 13 bytes; only its length"),
        "{printed}"
    );
    // Without a terminal there is no bar.
    assert!(said.contains("kinora: own: downloading 7 bytes"), "{said}");
    assert!(
        said.contains("kinora: own: 100 %") && !said.contains('['),
        "{said}"
    );
    assert_eq!(fs::read_to_string(config.path("own")).unwrap(), "weights");
    let mode = fs::metadata(config.path("own"))
        .unwrap()
        .permissions()
        .mode();
    assert_ne!(mode & 0o077, 0, "the service's user cannot read it");

    let again = config.models(&["pull", "one", "two"]).ok();
    assert_eq!(again.matches(": present, ").count(), 2, "{again}");
    assert_eq!(
        [publisher.asked_for("own"), publisher.asked_for("both")],
        [1, 1]
    );
    let left = fs::read_dir(data.beside("weights")).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn a_list_shows_what_is_present_for_people_and_programs() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = shared_files(&data, &publisher);
    let states = || {
        let list = config.models(&["list", "--json"]).ok();
        let list: Value = serde_json::from_str(&list).unwrap();
        let models = list.as_array().unwrap().clone();
        let states = models
            .iter()
            .map(|model| model["state"].as_str().unwrap().to_owned());
        (states.collect::<Vec<_>>(), list)
    };
    let (before, list) = states();
    assert_eq!(before, ["missing", "missing"], "{list}");
    assert_eq!(
        (&list[0]["engine"], &list[0]["kind"]),
        (&"one".into(), &"process".into())
    );
    let file = &list[0]["files"][0];
    assert_eq!(
        (&file["state"], &file["sha256"]),
        (&"missing".into(), &SHA256.into())
    );
    let text = config.models(&["list"]).ok();
    assert!(
        text.contains("0/2") && text.contains("own: missing"),
        "{text}"
    );
    assert!(text.contains("models pull one two --config"), "{text}");

    config.models(&["pull", "two"]).ok();
    assert_eq!(states().0, ["incomplete", "installed"]);
    config.models(&["pull", "one"]).ok();
    let (after, list) = states();
    assert_eq!(after, ["installed", "installed"]);
    assert_eq!(list[0]["bytes"], 20);
    let text = config.models(&["list"]).ok();
    assert!(text.contains("2/2") && !text.contains("missing"), "{text}");
    // A model without files is complete.
    let text = run({
        let mut command = kinora();
        command.args(["models", "list", "--data"]).arg(data.path());
        command
    });
    assert!(text.ok().contains("storyboard"), "the default list");
}

#[test]
fn a_file_that_another_model_uses_is_not_removed() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = shared_files(&data, &publisher);
    config.models(&["pull", "one", "two"]).ok();
    fs::write(config.path(".own.part"), "left").unwrap();
    let removed = config.models(&["remove", "one"]).ok();
    assert!(removed.contains("both: kept, two uses it"), "{removed}");
    assert!(
        removed.ends_with("1 file removed, 11 bytes freed.\n"),
        "{removed}"
    );
    assert!(!config.path("own").exists() && !config.path(".own.part").exists());
    assert!(config.path("both").exists());
    let removed = config.models(&["remove", "one", "two"]).ok();
    assert!(
        removed.ends_with("1 file removed, 13 bytes freed.\n"),
        "{removed}"
    );
    let nothing = config.models(&["remove", "two"]).ok();
    assert_eq!(nothing, "0 files removed, 0 bytes freed.\n");
}

#[test]
fn what_goes_wrong_is_said_with_what_to_do() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    publisher.serve("wrong", "WEIGHTS");
    let known = format!("bytes = 7\nsha256 = \"{SHA256}\"");
    let config = Configured::new(&data, &publisher)
        .file("wrong", "wrong", &known)
        .file("long", "wrong2", "bytes = 8")
        .file("gone", "gone", "");
    publisher.serve("wrong2", "WEIGHTS");
    fs::create_dir(data.beside("weights")).unwrap();
    for (model, code, parts) in [
        (
            "wrong",
            1,
            &["SHA-256 is", SHA256, "correct its sha256"][..],
        ),
        ("long", 1, &["7 bytes instead of 8", "correct its bytes"]),
        ("gone", 4, &["HTTP 404", "correct its url"]),
        ("other", 1, &["no model 'other'", "wrong, long, gone"]),
    ] {
        let done = config.models(&["pull", model]);
        assert_eq!(done.status.code(), Some(code), "{model}: {done:#?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part}: {done:#?}");
        }
        let left = fs::read_dir(data.beside("weights")).unwrap().count();
        assert_eq!(left, 0, "{model}");
    }
    // A file of another length may be the operator's own.
    fs::write(config.path("wrong"), "mine").unwrap();
    let done = config.models(&["pull", "wrong"]);
    assert!(done.stderr.contains("it has 4 bytes"), "{done:#?}");
    assert_eq!(fs::read_to_string(config.path("wrong")).unwrap(), "mine");
    let list = config.models(&["list"]).ok();
    assert!(
        list.contains("it has 4 bytes, and the configuration says 7"),
        "{list}"
    );
}

#[test]
fn an_interrupted_download_keeps_what_it_has() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = Configured::new(&data, &publisher).file("slow", "drip-slow", "");
    let mut command = kinora();
    command
        .args(["models", "pull", "slow", "--config"])
        .arg(config.write());
    let pulling = Running::start(command);
    let part = config.path(".drip-slow.part");
    until("the first bytes", || {
        let part = fs::metadata(&part).ok()?;
        (part.len() > 0).then_some(())
    });
    pulling.interrupt();
    let done = pulling.finished();
    assert_eq!(done.status.code(), Some(130), "{done:#?}");
    assert!(
        done.stderr.contains("Run the same command again"),
        "{done:#?}"
    );
    assert!(fs::metadata(&part).unwrap().len() > 0);
    let list = config.models(&["list"]).ok();
    assert!(list.contains("incomplete"), "{list}");
}

/// More than a first packet.
const MANY_BYTES: u64 = 256 << 10;

#[test]
fn as_many_files_come_at_a_time_as_the_configuration_says() {
    for most in [1, 2] {
        let (data, publisher) = (DataFolder::default(), Host::start());
        let names = ["a", "b", "c"];
        let config = names
            .iter()
            .fold(Configured::new(&data, &publisher), |config, name| {
                config.file("slow", &format!("drip-{name}"), "")
            });
        let mut command = kinora();
        command
            .args(["models", "pull", "slow", "--config"])
            .arg(config.write())
            .env("KINORA_WEIGHTS_DOWNLOADS_MAX", most.to_string());
        let pulling = Running::start(command);
        let parts = names.map(|name| config.path(&format!(".drip-{name}.part")));
        until("the downloads", || {
            let grown =
                |part: &&PathBuf| fs::metadata(part).is_ok_and(|part| part.len() > MANY_BYTES);
            (parts.iter().filter(grown).count() >= most).then_some(())
        });
        let at_once: usize = names.iter().map(|name| publisher.drips(name)).sum();
        assert_eq!(at_once, most);
        pulling.interrupt();
        pulling.finished();
    }
}

#[test]
fn files_that_an_engine_gets_by_itself_are_not_called_installed() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let mut config = Configured::new(&data, &publisher);
    for (model, more) in [
        (
            "hub",
            "settings = { model = \"Wan-AI/Wan2.1-T2V-1.3B-Diffusers\" }\n\
             environment = { HF_HOME = \"/srv/the hub\" }\n",
        ),
        ("folder", "settings = { model = \"/srv/weights/wan\" }\n"),
    ] {
        config.text += &format!(
            "[[models]]\nid = \"{model}\"\nengine = \"{model}\"\n\
             [[engines]]\nname = \"{model}\"\nkind = \"process\"\ncommand = [\"cat\"]\n{more}\
             describe = {{ fps = 16, features = {{ text_to_video = true }} }}\n"
        );
    }
    publisher.serve("own", "weights");
    let config = config.file("own", "own", "");
    let text = config.models(&["list"]).ok();
    assert_eq!(text.matches("by its engine").count(), 2, "{text}");
    let list = config.models(&["list", "--json"]).ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    let states = [0, 1, 2].map(|index| list[index]["state"].as_str().unwrap());
    assert_eq!(states, ["by_engine", "by_engine", "missing"]);

    let hub = config.models(&["pull", "hub"]).ok();
    let command = "HF_HOME='/srv/the hub' hf download Wan-AI/Wan2.1-T2V-1.3B-Diffusers\n";
    assert!(hub.ends_with(command), "{hub}");
    let folder = config.models(&["pull", "folder", "own"]).ok();
    assert!(
        folder.contains("folder: the engine gets its files by itself") && !folder.contains("hf "),
        "{folder}"
    );
    assert!(folder.contains("own: downloaded, 7 bytes"), "{folder}");
}

#[test]
fn a_service_without_its_files_says_the_command_that_gets_them() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = shared_files(&data, &publisher);
    let server = Setup::on(&data).config(&config.text).start();
    let said = [
        "WARN",
        "2 files missing for one, two",
        "models pull one two",
    ];
    let log = server.log();
    let line = log
        .lines()
        .find(|line| said.iter().all(|part| line.contains(part)));
    let line = line.unwrap_or_else(|| panic!("never said: {log}"));
    let (_, command) = line.split_once("download with: ").unwrap();
    let (command, _) = command.split_once(". Tasks").unwrap();
    drop(server);

    let mut shell = bare("sh");
    shell.args(["-c", command]).current_dir("/");
    let pulled = run(shell).ok();
    assert_eq!(pulled.matches(": downloaded, ").count(), 2, "{pulled}");
    let server = Setup::on(&data).config(&config.text).start();
    assert_eq!(server.logged(&["models pull"]), 0);
}

#[test]
fn a_token_reaches_its_origin_alone_and_no_output() {
    let (data, publisher) = (DataFolder::default(), Host::start());
    let config = Configured::new(&data, &publisher).file("gated", "gated", "");
    let pull = |variables: &[(&str, &str)]| {
        let mut command = kinora();
        command
            .args(["models", "pull", "gated", "--config"])
            .arg(config.write());
        command.envs(variables.iter().copied());
        run(command)
    };
    let token = ("HUB_TOKEN", "marked-secret");
    let variable = ("KINORA_WEIGHTS_TOKEN_VARIABLE", "HUB_TOKEN");
    let done = pull(&[token, variable]);
    assert!(done.stderr.contains("weights.token_origin"), "{done:#?}");
    let plain = ("KINORA_WEIGHTS_TOKEN_ORIGIN", "http://hub.example.com");
    let done = pull(&[token, variable, plain]);
    assert!(
        done.stderr.contains("is not an origin for a token"),
        "{done:#?}"
    );
    let origin = publisher.url("");
    let done = pull(&[token, variable, ("KINORA_WEIGHTS_TOKEN_ORIGIN", &origin)]);
    assert_eq!(done.status.code(), Some(4), "{done:#?}");
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(!all.contains("marked-secret"), "{all}");
}
