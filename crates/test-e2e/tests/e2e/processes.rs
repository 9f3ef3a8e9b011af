//! Engines that are commands: the examples of the Python package make and edit videos over HTTP, a process that is ended
//! takes all that it started with it, and `kinora engine check` says what a command breaks.

use std::process::{Command, Output};

use kinora_test_e2e::{Client, Server, Setup, Video, kinora, until, workspace};
use serde_json::{Value, json};

use crate::support::assert_plays;

/// The Python with numpy, and the command of an engine in a file of `python/`.
pub(crate) fn python_command(engine: &str) -> Vec<String> {
    let python = workspace().join(".venv/bin/python");
    assert!(
        python.exists(),
        "{} is missing; ./test installs it",
        python.display()
    );
    let engine = workspace().join("python").join(engine);
    let words = [
        python.as_path(),
        "-m".as_ref(),
        "kinora_engine".as_ref(),
        engine.as_path(),
    ];
    words.map(|word| word.to_str().unwrap().to_owned()).to_vec()
}

pub(crate) fn package() -> String {
    let sources = workspace().join("python/src");
    sources.to_str().unwrap().to_owned()
}

/// Serves `waves` and `tint` by the examples, each in a process of its own, with these settings of the first.
fn examples(settings: &str) -> Setup {
    examples_with("size_multiple = 32\n", settings)
}

/// The same, with a promise about the sizes of the first.
fn examples_with(sizes: &str, settings: &str) -> Setup {
    let [waves, tint] = ["waves.py:Waves", "tint.py:Tint"]
        .map(|engine| json!(python_command(&format!("examples/{engine}"))));
    let package = package();
    Setup::default().config(&format!(
        "[[engines]]\n\
         name = \"waves\"\n\
         kind = \"process\"\n\
         command = {waves}\n\
         environment = {{ PYTHONPATH = {package:?} }}\n\
         settings = {{ {settings} }}\n\
         [engines.describe]\n\
         {sizes}\
         frames = {{ step = 4, offset = 1 }}\n\
         fps = 8\n\
         features = {{ text_to_video = true, audio_output = true, draft = true, auto_duration = true }}\n\
         [[engines]]\n\
         name = \"tint\"\n\
         kind = \"process\"\n\
         command = {tint}\n\
         environment = {{ PYTHONPATH = {package:?} }}\n\
         [engines.describe]\n\
         size_multiple = 2\n\
         fps = 8\n\
         features = {{ edit = true }}\n\
         [[models]]\n\
         id = \"waves\"\n\
         engine = \"waves\"\n\
         sizes = [\"278x256\"]\n\
         seconds = [2]\n\
         [[models]]\n\
         id = \"any\"\n\
         engine = \"waves\"\n\
         sizes = [\"278x256\"]\n\
         [[models]]\n\
         id = \"tint\"\n\
         engine = \"tint\"\n\
         sizes = [\"278x256\"]\n\
         seconds = [2]\n"
    ))
}

fn body(more: Value) -> Value {
    let mut body =
        json!({"model": "waves", "prompt": "Waves at dawn", "seed": 3, "generate_audio": true});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

#[test]
fn commands_make_a_video_with_sound_and_edit_it() {
    let server = examples("waves = 4").start();
    let client = server.client();
    let made = client.wait_completed(client.submit(&body(json!({}))).id());
    // On the engine's grid it was 288x256 with 17 frames.
    assert_eq!(made["size"], "278x256");
    assert_plays(&client, &made);
    let edit = json!({
        "model": "tint", "prompt": "All in green", "edit_task_id": made.id(), "edit_strength": 0.8,
    });
    let edited = client.wait_completed(client.submit(&edit).id());
    assert_eq!(edited["size"], "278x256");
    assert_plays(&client, &edited);
    // Both processes wait for the next task.
    assert_eq!(server.children().len(), 2);
}

#[test]
fn a_command_decides_the_length_of_its_clip() {
    let server = examples("waves = 4").start();
    let client = server.client();
    // A second for each word.
    let auto = json!({"model": "any", "seconds": "auto", "prompt": "Three short waves"});
    let made = client.wait_completed(client.submit(&body(auto)).id());
    assert_eq!((&made["frames"], &made["fps"]), (&json!(24), &json!(8.0)));
    assert_plays(&client, &made);
    // A card with one length leaves the engine no choice.
    let refused = client.submit_json(&body(json!({"seconds": "auto"})));
    refused.refused_for(400, "unsupported_value", Some("seconds"));
}

fn cancel(client: &Client, task: &Video) {
    client.post(&format!("/v1/videos/{}/cancel", task.id()));
}

#[test]
fn a_cancel_reaches_a_command_which_then_takes_the_next_task() {
    // So many waves that a frame takes long.
    let server = examples("waves = 4000").start();
    let client = server.client();
    let running = client.submit(&body(json!({})));
    client.wait_for(running.id(), "in_progress");
    // Before, a cancel would end the process: nothing interrupts loading.
    server.wait_for_log(&["engine opened"]);
    let process = until("the engine's process", || {
        server.children().first().copied()
    });
    cancel(&client, &running);
    client.wait_for(running.id(), "failed");
    server.wait_for_log(&["run stopped", running.id()]);
    let next = client.submit(&body(json!({"seed": 4})));
    client.wait_for(next.id(), "in_progress");
    assert_eq!(server.children(), [process]);
    cancel(&client, &next);
}

/// An engine that starts processes of its own: one of its group, one of a session of its own, and one that has lost its parent,
/// and its environment too. It works for ever, unless the prompt says otherwise.
const WITH_CHILDREN: &str = r#"
import subprocess, time
from kinora_engine import Description, Engine, Features

SLEEP = ["sh", "-c", "echo the child is $$ >&2; exec sleep 100000"]

class WithChildren(Engine):
    def describe(self, settings):
        return Description(features=Features(text_to_video=True), size_multiple=2)

    def generate(self, job):
        subprocess.Popen(SLEEP)
        subprocess.Popen(SLEEP, start_new_session=True)
        subprocess.run(["setsid", "--fork", "env", "-i", *SLEEP], check=True)
        while job.prompt == "for ever":
            try:
                time.sleep(1)
            except BaseException:
                pass
        for _ in range(job.clip.frames):
            yield job.rgb(bytes(job.clip.width * job.clip.height * 3))
"#;

/// A service with that engine, a task with this prompt, and the three processes that the engine has started.
fn with_children(prompt: &str) -> (Server, Video, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("with_children.py");
    std::fs::write(&file, WITH_CHILDREN).unwrap();
    let engine = format!("{}:WithChildren", file.display());
    let command = json!(["python3", "-m", "kinora_engine", engine]);
    let server = Setup::default()
        .set("KINORA_LOG_LEVEL", "info,kinora_engine_host=debug")
        .config(&format!(
            "[[engines]]\n\
             name = \"own\"\n\
             kind = \"process\"\n\
             command = {command}\n\
             environment = {{ PYTHONPATH = {:?} }}\n\
             describe = {{ size_multiple = 2, fps = 8, features = {{ text_to_video = true }} }}\n\
             [[models]]\n\
             id = \"own\"\n\
             engine = \"own\"\n\
             sizes = [\"256x256\"]\n",
            package()
        ))
        .start();
    let client = server.client();
    let task = client.submit(&json!({"model": "own", "prompt": prompt, "seconds": 2}));
    let children = until("the children", || {
        let log = server.log();
        let after = log.split("the child is ").skip(1);
        let number = |after: &str| {
            after
                .split(|one: char| !one.is_ascii_digit())
                .next()
                .map(str::to_owned)
        };
        let children: Vec<String> = after.filter_map(number).collect();
        (children.len() == 3).then_some(children)
    });
    assert!(children.iter().all(|child| lives(child)), "{children:?}");
    (server, task, children)
}

/// Whether a process has not ended. A zombie has: the first process of a container may leave it.
fn lives(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

fn wait_for_end(children: &[String]) {
    until("the children to end", || {
        (!children.iter().any(|child| lives(child))).then_some(())
    });
}

#[test]
fn a_command_that_ignores_a_cancel_is_ended_with_all_that_it_started() {
    let (server, task, children) = with_children("for ever");
    let client = server.client();
    cancel(&client, &task);
    client.wait_for(task.id(), "failed");
    wait_for_end(&children);
}

#[test]
fn a_killed_command_takes_all_that_it_started_but_what_hides_its_mark() {
    let (server, _, children) = with_children("for ever");
    server.kill_child(server.children()[0]);
    until("all but one to end", || {
        let living = children.iter().filter(|child| lives(child)).count();
        (living <= 1).then_some(())
    });
    // With its parent and its mark gone, nothing tells whose the last one is.
    for child in &children {
        std::process::Command::new("kill")
            .args(["-9", child])
            .output()
            .unwrap();
    }
}

#[test]
fn the_stop_of_a_service_ends_what_an_idle_command_started() {
    let (server, task, children) = with_children("once");
    server.client().wait_completed(task.id());
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    wait_for_end(&children);
}

fn check(engine: &[String]) -> Output {
    let mut command: Command = kinora();
    command.args(["engine", "check", "--"]).args(engine);
    command.env("PYTHONPATH", package());
    command.output().unwrap()
}

#[test]
fn the_check_passes_what_keeps_to_the_protocol_and_names_what_does_not() {
    // The variable of a Python that is started by the check does not pass: so the command says it.
    let with_package = |engine: Vec<String>| {
        let path = format!("PYTHONPATH={}", package());
        let mut words = vec!["env".to_owned(), path];
        words.extend(engine);
        words
    };
    for example in ["examples/waves.py:Waves", "examples/tint.py:Tint"] {
        let checked = check(&with_package(python_command(example)));
        let told = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{told}{checked:?}");
        assert!(told.contains("keeps to the protocol"), "{told}");
        assert!(told.contains("a fresh process"), "{told}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("random.py");
    std::fs::write(&file, OF_NO_SEED).unwrap();
    let mut command = python_command("examples");
    command.pop();
    command.push(format!("{}:OfNoSeed", file.display()));
    let checked = check(&with_package(command));
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{told}");
    assert!(told.contains("BROKEN    text: the seed"), "{told}");
    assert!(
        told.contains("the same spec gives the same frames"),
        "{told}"
    );
    let none = check(&["/nonexistent/engine".to_owned()]);
    let told = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        !none.status.success() && told.contains("could not be started"),
        "{told}"
    );
}

/// The block of this language in the page of the Python package that contains `part`.
fn block_of_readme(language: &str, part: &str) -> String {
    let page = std::fs::read_to_string(workspace().join("python/README.md")).unwrap();
    let opening = format!("\n```{language}\n");
    let mut blocks = page.split(&opening).skip(1);
    let block = blocks.find(|block| block.split("\n```").next().unwrap().contains(part));
    let (block, _) = block.unwrap().split_once("\n```").unwrap();
    format!("{block}\n")
}

#[test]
fn the_first_engine_of_the_page_passes_the_check_and_makes_a_clip_as_it_is_configured_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fade.py");
    std::fs::write(&file, block_of_readme("python", "class Fade")).unwrap();
    let mut command = vec![
        "env".to_owned(),
        format!("PYTHONPATH={}", package()),
        "python3".to_owned(),
        "-m".to_owned(),
        "kinora_engine".to_owned(),
    ];
    command.push(format!("{}:Fade", file.display()));
    let checked = check(&command);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{told}{checked:?}");

    let table = block_of_readme("toml", "name = \"fade\"");
    let lines = table
        .lines()
        .map(|line| match line.starts_with("command = ") {
            true => format!("command = {}", json!(command)),
            false => line.to_owned(),
        });
    let table = lines.collect::<Vec<_>>().join("\n") + "\n";
    let server = Setup::default().config(&table).start();
    let client = server.client();
    let body =
        json!({"model": "fade", "prompt": "Slowly brighter", "size": "480x480", "seconds": 2});
    let made = client.wait_completed(client.submit(&body).id());
    // It takes any rate.
    assert_eq!((&made["frames"], &made["fps"]), (&json!(48), &json!(24.0)));
    assert_plays(&client, &made);
}

#[test]
fn engines_without_the_package_pass_the_check() {
    let examples = workspace().join("python/examples/without-sdk");
    for (program, try_out, file, features) in [
        (
            "node",
            &["--version"][..],
            "bars.mjs",
            &["text", "a first frame", "sound", "an edit"][..],
        ),
        (
            "perl",
            &["-MJSON::PP", "-MDigest::MD5", "-e1"],
            "bars.pl",
            &["text"],
        ),
    ] {
        let tried = Command::new(program).args(try_out).output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            eprintln!("SKIPPED {file}: {program} is not installed, or lacks modules");
            continue;
        }
        let file = examples.join(file);
        let checked = check(&[program.to_owned(), file.display().to_string()]);
        let told = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{told}{checked:?}");
        for feature in features {
            let line = format!("  ok        {feature}: what it sends\n");
            assert!(told.contains(&line), "{told}");
        }
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines < 60, "{} has {lines} lines", file.display());
    }
}

/// An engine whose frames are others each time.
const OF_NO_SEED: &str = r#"
import os
from kinora_engine import Description, Engine, Features

class OfNoSeed(Engine):
    def describe(self, settings):
        return Description(features=Features(text_to_video=True), size_multiple=2)

    def generate(self, job):
        pixels = job.clip.width * job.clip.height
        for number in range(job.frames):
            yield job.rgb(os.urandom(3) * pixels)
            job.progress((number + 1) / job.frames)
"#;

#[test]
fn a_command_that_cannot_do_what_the_configuration_promises_makes_nothing() {
    let server = examples_with("size_multiple = 1\n", "").start();
    let client = server.client();
    let failed = client.wait_for(client.submit(&body(json!({}))).id(), "failed");
    assert_eq!(failed["error"]["code"], "generation_failed");
    server.wait_for_log(&["describe.size_multiple is 1", "multiples of 2"]);
}
