//! What a person at a terminal sees: a bar that moves, and what Ctrl-C says.

use std::process::Command;

use kinora_test_e2e::{DataFolder, Host, kinora, media, run, until};
use serde_json::Value;

use crate::cli::bare;
use crate::support::narrow;
use crate::weights::Configured;

/// Runs its arguments, after the first, with a terminal for standard error, and prints what was on both outputs. Presses
/// Ctrl-C once a percentage has been drawn and what the first argument matches, unless that is empty.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, re, signal, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 1000, 800))
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs)
os.close(theirs)
text, waits = b"", bool(sys.argv[1])
while True:
    try:
        read = os.read(ours, 65536)
    except OSError:
        break
    if not read:
        break
    text += read
    if waits and re.search(sys.argv[1].encode(), text) and re.search(rb"[1-9] %", text):
        child.send_signal(signal.SIGINT)
        waits = False
print(json.dumps({
    "stderr": text.decode("utf-8", "replace"),
    "stdout": child.stdout.read().decode(),
    "code": child.wait(),
}))
"#;

/// A terminal.
fn terminal(ctrl_c_after: &str) -> Command {
    let mut python = bare("python3");
    python
        .args(["-c", TERMINAL, ctrl_c_after])
        .arg(kinora().get_program())
        .env("TERM", "xterm-256color");
    python
}

#[test]
fn a_terminal_shows_progress_in_one_line_and_ctrl_c_cancels() {
    let server = narrow().start();
    let client = server.client();
    let mut terminal = terminal("%");
    terminal
        .args(["generate", "A ship crosses an ocean"])
        .args(["--model", "kinora-a1", "--seconds", "15"])
        .args(["--resolution", "480p"])
        .env("KINORA_URL", client.base_url())
        .env("KINORA_API_KEY", client.key());
    let seen: Value = serde_json::from_str(&run(terminal).ok()).unwrap();
    let (text, stdout) = (seen["stderr"].as_str().unwrap(), &seen["stdout"]);
    assert_eq!(
        (&seen["code"], stdout),
        (&130.into(), &"".into()),
        "{text:?}"
    );
    assert!(text.contains("[#") || text.contains("[-"), "{text:?}");
    // All that it writes besides text: it clears the line.
    let plain = text.replace("\r\u{1b}[K", "");
    assert!(!plain.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("is cancelled"), "{text:?}");
    let newest = &client.get("/v1/videos").ok()["data"][0];
    let id = newest["id"].as_str().unwrap();
    until("the cancel", || {
        client.video(id).is_finished().then_some(())
    });
    assert_eq!(client.video(id)["error"]["code"], "cancelled");
}

#[test]
fn a_terminal_shows_the_progress_of_a_server_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = terminal("");
    terminal
        .args(["generate", "--local", "A paper boat", "-o", "out.mp4"])
        .args(["--model", "kinora-a1", "--seconds", "10", "--size"])
        .arg("480x480")
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        // Some seconds of work, and no work for this machine.
        .env("LONG_CLIP_FRAME_MS", "12")
        .env("PLAIN_CLIPS", "1");
    let seen: Value = serde_json::from_str(&run(terminal).ok()).unwrap();
    let text = seen["stderr"].as_str().unwrap();
    let ended = (&seen["code"], &seen["stdout"]);
    assert_eq!(ended, (&0.into(), &"out.mp4\n".into()), "{text:?}");
    assert!(text.contains("[#"), "{text:?}");
    assert!(
        !text.contains("\"message\""),
        "the server's log is not for the terminal: {text:?}"
    );
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["out.mp4"], "nothing else is left");
    media::assert_decodes(&folder.path().join("out.mp4"));
}

#[test]
fn a_terminal_shows_the_progress_of_a_download_and_ctrl_c_keeps_its_bytes() {
    let data = DataFolder::default();
    let publisher = Host::start();
    let config = Configured::new(&data, &publisher)
        .file("one", "drip-one", "")
        .write();
    let mut terminal = terminal("of 25 MB");
    terminal
        .args(["models", "pull", "one", "--config"])
        .arg(&config);
    let seen: Value = serde_json::from_str(&run(terminal).ok()).unwrap();
    let text = seen["stderr"].as_str().unwrap();
    assert_eq!(
        (&seen["code"], &seen["stdout"]),
        (&130.into(), &"".into()),
        "{text:?}"
    );
    assert!(text.contains("[-") || text.contains("[#"), "{text:?}");
    assert!(text.contains("Run the same command again"), "{text:?}");
    let part = data.beside("weights/.drip-one.part");
    assert!(std::fs::metadata(part).unwrap().len() > 0);
}
