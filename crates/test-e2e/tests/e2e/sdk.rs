//! The official OpenAI SDKs, unmodified, and a client generated from our document, against the
//! service. What they do is written in their own languages under `python/` and `node/`; here they get
//! a service and keys.

use std::path::Path;
use std::process::Command;

use kinora_test_e2e::{keys, run, workspace};

use crate::support::shared;

/// Runs a script against the shared service, in projects of its own.
fn script(mut command: Command, name: &str) {
    let project = format!("sdk-{name}");
    let key = |kind: &str, more: &[&str]| {
        let name = format!("{project}-{kind}");
        let create = ["create", "--name", &name];
        let printed = keys(shared().data(), &[&create, more].concat()).ok();
        printed.trim().to_owned()
    };
    let narrow = format!("{project}-narrow");
    command
        .env("KINORA_BASE_URL", format!("{}/v1", shared().base_url()))
        .env("KINORA_API_KEY", key("own", &["--project", &project]))
        .env(
            "KINORA_READ_KEY",
            key("read", &["--project", &project, "--scopes", "videos:read"]),
        )
        .env(
            "KINORA_NARROW_KEY",
            key("narrow", &["--project", &narrow, "--unfinished-max", "1"]),
        )
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL");
    let done = run(command);
    assert!(done.status.success(), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.ends_with("all passed\n"), "{}", done.stdout);
}

fn assert_installed(path: &Path) {
    assert!(
        path.exists(),
        "{} is missing: ./test installs it",
        path.display()
    );
}

#[test]
fn the_python_sdk_works_unmodified() {
    let python = workspace().join(".venv/bin/python");
    assert_installed(&python);
    let mut command = Command::new(python);
    command
        .arg("-u")
        .arg(workspace().join("crates/test-e2e/python/sdk.py"));
    script(command, "python");
}

#[test]
fn the_node_sdk_works_unmodified() {
    let folder = workspace().join("crates/test-e2e/node");
    assert_installed(&folder.join("node_modules/openai/package.json"));
    let version = Command::new("node").arg("--version").output();
    assert!(version.is_ok(), "node is missing: ./test installs it");
    let mut command = Command::new("node");
    command.arg(folder.join("sdk.mjs"));
    script(command, "node");
}

/// The document is precise enough for a compiler, and what it says holds.
#[test]
fn a_client_generated_from_the_document_compiles_and_runs_a_task() {
    let modules = workspace().join("crates/test-e2e/node/node_modules");
    let tool = |path: &str| {
        let path = modules.join(path);
        assert_installed(&path);
        let mut command = Command::new("node");
        command.arg(path);
        command
    };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let client = workspace().join("crates/test-e2e/node/typed.mts");
    std::fs::copy(client, folder.path().join("typed.mts")).unwrap();
    let document = shared().anonymous().get("/openapi.json").body;
    std::fs::write(folder.path().join("openapi.json"), document).unwrap();
    let step = |mut command: Command, arguments: &[&str]| {
        command.args(arguments).current_dir(folder.path());
        let done = run(command);
        assert!(done.status.success(), "{}\n{}", done.stdout, done.stderr);
    };
    let generate = tool("openapi-typescript/bin/cli.js");
    step(generate, &["openapi.json", "--output", "typed.d.ts"]);
    let options = ["--strict", "--target", "es2022", "--module", "nodenext"];
    let compile = [&options[..], &["--lib", "es2022,dom", "typed.mts"]].concat();
    step(tool("typescript/bin/tsc"), &compile);
    let mut command = Command::new("node");
    command.arg(folder.path().join("typed.mjs"));
    script(command, "typed");
}
