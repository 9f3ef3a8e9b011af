//! The command line as operators meet it: where keys are handed over, what a hint leads to, which
//! addresses are taken, and whose the files are.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use kinora_test_e2e::{DataFolder, Finished, Setup, keys, kinora, run};

use crate::support::quick;

fn command(arguments: &[&str], data: &DataFolder) -> Finished {
    let mut command = kinora();
    command.args(arguments).arg("--data").arg(data.path());
    run(command)
}

/// Another program, with none of our variables: `kinora` would take them for settings.
pub(crate) fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KINORA_") {
            command.env_remove(name);
        }
    }
    command
}

#[test]
fn key_commands_never_make_a_store() {
    for exists in [false, true] {
        let data = DataFolder::default();
        if exists {
            fs::create_dir(data.path()).unwrap();
        }
        for arguments in [
            &["list"][..],
            &["create", "--name", "x"],
            &["rotate", "x"],
            &["revoke", "key_x"],
        ] {
            let done = keys(&data, arguments);
            let says = |what: &str| done.stderr.contains(what);
            assert!(
                !done.status.success() && done.stdout.is_empty(),
                "{done:#?}"
            );
            assert!(
                says("no store") && says("--data") && says(" serve "),
                "{done:#?}"
            );
        }
        assert_eq!(data.path().exists(), exists);
        assert!(data.files("").is_empty());
    }
}

#[test]
fn the_hint_of_a_first_start_leads_to_its_own_store() {
    let server = Setup::default().config("[worker]\nslots = 1\n").start();
    let printed = server.greeting();
    let hint = printed.lines().find(|line| line.contains("keys create"));
    let hint = hint.unwrap_or_else(|| panic!("no hint in {printed}"));
    assert!(
        hint.contains(" --data ") && hint.contains(" --config "),
        "{hint}"
    );
    let mut shell = bare("sh");
    shell.args(["-c", hint]).current_dir("/");
    let key = run(shell).ok();
    server.client_with(key.trim()).get("/v1/videos").ok();
}

/// Runs its arguments with a terminal for standard output until they have printed a hint, and
/// prints what they printed.
const TERMINAL: &str = r#"
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdout=theirs)
os.close(theirs)
text = b""
while b"keys create" not in text:
    text += os.read(ours, 4096)
child.terminate()
child.wait()
sys.stdout.buffer.write(text)
"#;

#[test]
fn a_terminal_shows_the_first_key_and_no_file_holds_it() {
    let data = DataFolder::default();
    let serve = Setup::on(&data).command();
    let mut python = bare("python3");
    python
        .args(["-c", TERMINAL])
        .arg(serve.get_program())
        .args(serve.get_args());
    let done = run(python);
    assert!(done.status.success(), "{done:#?}");
    let (_, rest) = done.stdout.split_once("export KINORA_KEY=").unwrap();
    let key = rest.lines().next().unwrap().trim();
    assert!(key.starts_with("kinora_") && key.len() == 43, "{key}");
    assert!(!done.stderr.contains(key), "the key is in the log");
    for file in data.files("") {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(key.len()).any(|part| part == key.as_bytes());
        assert!(!found, "{} holds the key", file.display());
    }
    let listed = keys(&data, &["list"]).ok();
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn all_files_are_their_owner_s_alone_also_in_a_folder_that_was_open() {
    let data = DataFolder::default();
    fs::create_dir(data.path()).unwrap();
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).unwrap();
    let server = Setup::on(&data).start();
    server.wait_for_log(&["data folder was open to other users", "755"]);
    let video = server.client().submit(&quick("kinora-b1"));
    server.client().wait_completed(video.id());
    let files = data.files("");
    let is_there = |name: &str| files.iter().any(|path| path.ends_with(name));
    for name in ["kinora.db", "kinora.db-wal"] {
        assert!(is_there(name), "{name} is not in {files:?}");
    }
    assert!(!data.files_of_tasks().is_empty());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in &files {
        assert_eq!(mode(file) & 0o177, 0, "{}", file.display());
        for folder in file.ancestors().skip(1) {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
            if folder == data.path() {
                break;
            }
        }
    }
}

#[test]
fn an_address_may_be_a_name_and_clients_are_told_it() {
    let server = Setup::default().listening_on("localhost:0").start();
    let base_url = format!("http://localhost:{}", server.address().port());
    assert!(server.address().ip().is_loopback());
    let printed = server.greeting();
    assert!(
        printed.contains(&format!("curl {base_url}/v1/videos")),
        "{printed}"
    );
    assert_eq!(server.logged(&["result addresses say localhost"]), 0);
}

#[test]
fn all_addresses_without_a_base_url_are_warned_of() {
    let everywhere = || Setup::default().listening_on("0.0.0.0:0");
    let server = everywhere().start();
    server.assert_logged(&["WARN", "result addresses say localhost", "--base-url"], 1);
    let named = everywhere().set("KINORA_BASE_URL", "https://video.example.com");
    assert_eq!(named.start().logged(&["result addresses say localhost"]), 0);
}

#[test]
fn serve_and_doctor_judge_the_same_flags() {
    let data = DataFolder::default();
    for (flags, named) in [
        (&["--base-url", "https://example.com/?a=b"][..], "query"),
        (&["--base-url", "https://me:pw@example.com"], "user name"),
        (&["--base-url", "example.com"], "base_url"),
        (&["--listen", "no-such-host.invalid:1"], "no-such-host"),
        (&["--listen", ":8080"], "no host"),
    ] {
        for name in ["serve", "doctor"] {
            let done = command(&[&[name], flags].concat(), &data);
            let said = done.stdout.contains(named) || done.stderr.contains(named);
            assert!(
                !done.status.success() && said,
                "{name} {flags:?}: {done:#?}"
            );
        }
    }
    let good = [
        "doctor",
        "--listen",
        "localhost:0",
        "--base-url",
        "https://example.com",
    ];
    let rows = command(&good, &data).ok();
    for row in [
        "user",
        "data folder",
        "backups",
        "open files",
        "sandbox",
        "begin with https://example.com",
    ] {
        assert!(rows.contains(row), "{row} is not in {rows}");
    }
    assert!(!data.path().exists(), "doctor made the folder");
}

#[test]
fn the_licences_of_what_is_bundled_are_printed() {
    let mut command = kinora();
    command.arg("licences");
    let printed = run(command).ok();
    for name in [
        "Fraunhofer",
        "OpenH264",
        "SQLite",
        "libwebp",
        "Noto",
        "tokio",
        "MPL-2.0",
    ] {
        assert!(printed.contains(name), "{name}");
    }
}
