//! What operators see: `kinora top` on a terminal and elsewhere, and `GET /v1/operations`.

use std::process::Command;

use kinora_test_e2e::{DataFolder, Setup, keys, kinora, run, until};
use serde_json::Value;

use crate::cli::bare;
use crate::support::{busy, quick};

const COLUMNS: usize = 60;

/// Runs its arguments on a terminal of their own, 60 columns wide, waits for a whole frame with a running task, and presses
/// the key whose code is first: Ctrl-C drops what the terminal has not passed on yet. Prints what was drawn, and whether the
/// terminal is as it was.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, re, select, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
before = termios.tcgetattr(theirs)
def own():
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
child = subprocess.Popen(sys.argv[2:], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, preexec_fn=own)
text, pressed, taken = b"", False, None
while True:
    if select.select([ours], [], [], 0.2)[0]:
        text += os.read(ours, 65536)
    elif child.poll() is not None:
        break
    if not pressed and b"WORKER" in text and re.search(rb"\d %.*\x1b\[J", text, re.S):
        taken = termios.tcgetattr(theirs)[3] != before[3]
        os.write(ours, bytes([int(sys.argv[1])]))
        pressed = True
print(json.dumps({
    "text": text.decode("utf-8", "replace"),
    "stderr": child.stderr.read().decode(),
    "code": child.wait(),
    "taken": taken,
    "restored": termios.tcgetattr(theirs) == before,
}))
"#;

fn top(data: &DataFolder, flags: &[&str]) -> Command {
    let mut command = kinora();
    command.arg("top").args(flags);
    command.arg("--data").arg(data.path());
    command
}

/// What `kinora top` draws until this key is pressed.
fn drawn(data: &DataFolder, key: u8) -> String {
    let command = top(data, &[]);
    let mut python = bare("python3");
    python.args(["-c", TERMINAL, &key.to_string()]);
    python.arg(command.get_program()).args(command.get_args());
    python.env("TERM", "xterm-256color");
    let seen: Value = serde_json::from_str(&run(python).ok()).unwrap();
    let text = seen["text"].as_str().unwrap().to_owned();
    assert_eq!(
        (&seen["code"], &seen["stderr"]),
        (&0.into(), &"".into()),
        "{text}"
    );
    assert_eq!(
        (&seen["taken"], &seen["restored"]),
        (&true.into(), &true.into())
    );
    text
}

#[test]
fn a_terminal_is_drawn_on_until_q_or_ctrl_c_and_is_then_as_it_was() {
    let (server, _) = busy();
    server.client().submit(&quick("kinora-b1"));
    let _worker = until("the announcement of the worker", || {
        let shown: Value =
            serde_json::from_str(&run(top(server.data(), &["--json"])).ok()).unwrap();
        shown["workers"].get(0).cloned()
    });
    for key in [b'q', 3] {
        let text = drawn(server.data(), key);
        let (enter, leave) = ("\u{1b}[?1049h\u{1b}[?25l", "\u{1b}[?25h\u{1b}[?1049l");
        assert!(text.contains(enter) && text.ends_with(leave), "{text:?}");
        let screen = text.split("\u{1b}[H").nth(1).unwrap();
        let screen = screen.split("\u{1b}[J").next().unwrap();
        // The terminal's driver adds returns.
        let lines: Vec<&str> = screen.split('\n').collect();
        assert!(lines.len() <= 20, "{screen:?}");
        for line in lines {
            let line = line.trim_end_matches('\r').trim_end_matches("\u{1b}[K");
            assert!(
                !line.contains('\u{1b}') && line.chars().count() < COLUMNS,
                "{line:?}"
            );
        }
        assert!(text.contains("1 waiting, 1 running"), "{text:?}");
    }
}

#[test]
fn elsewhere_one_reading_is_printed() {
    let (server, running) = busy();
    let waiting = server.client().submit(&quick("kinora-b1"));
    let shown = until("the announcement of the worker", || {
        let shown = run(top(server.data(), &["--json"])).ok();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        (!shown["workers"][0].is_null()).then_some(shown)
    });
    assert_eq!(shown["queue"][0]["running"], 1);
    let queued = &shown["queue"][1];
    assert_eq!(
        (&queued["model"], &queued["waiting"]),
        (&"kinora-b1".into(), &1.into())
    );
    assert!(queued["oldest_waiting_seconds"].is_u64(), "{shown:#}");
    assert_eq!(shown["running"][0]["id"], running.id());
    let worker = &shown["workers"][0];
    assert_eq!(shown["running"][0]["worker"], worker["id"]);
    assert_eq!(
        (&worker["running"], &worker["slots"]),
        (&1.into(), &1.into())
    );
    let plain = run(top(server.data(), &[])).ok();
    for part in [
        "1 waiting, 1 running",
        running.id(),
        "kinora-b1",
        "storyboard/",
    ] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    server
        .client()
        .delete(&format!("/v1/videos/{}", waiting.id()))
        .ok();
    server
        .client()
        .delete(&format!("/v1/videos/{}", running.id()))
        .ok();
    let later = run(top(server.data(), &["--once"])).ok();
    assert!(later.contains("0 waiting, 0 running"), "{later}");
    let nowhere = run(top(&DataFolder::default(), &[]));
    assert!(
        !nowhere.status.success() && nowhere.stderr.contains("no store"),
        "{nowhere:#?}"
    );
}

#[test]
fn only_operators_see_the_whole_service() {
    let server = Setup::default().start();
    let create = |flags: &[&str]| {
        let printed = keys(server.data(), &[&["create"], flags].concat()).ok();
        server.client_with(printed.trim())
    };
    let operator = create(&["--name", "ops", "--project", "ops", "--operator"]);
    let other = server.client();
    other.get("/v1/operations").refused(403, "scope_missing");
    let video = other.submit(&quick("kinora-b1"));
    other.wait_completed(video.id());
    let shown = operator.get("/v1/operations").ok();
    assert_eq!(
        (&shown["object"], &shown["running"]),
        (&"operations".into(), &Value::Array(vec![]))
    );
    assert!(shown["last_minute"]["completed"].as_u64().is_some());
    assert!(
        shown["workers"][0]["models"][0]["engine"].is_string(),
        "{shown:#?}"
    );
    let text = shown.to_string();
    assert!(!text.contains("paper boat"), "a prompt is shown: {text}");
    let scopes = |shown: Value| shown["scopes"].clone();
    let all = ["videos:write", "videos:read", "operations:read"];
    assert_eq!(
        scopes(operator.get("/v1/models").ok()),
        Value::from(all.to_vec())
    );
    assert_eq!(
        scopes(other.get("/v1/models").ok()),
        Value::from(all[..2].to_vec())
    );
    // It is a key like any other besides.
    operator
        .get(&format!("/v1/videos/{}", video.id()))
        .refused(404, "video_not_found");
}
