//! What a person at a terminal sees: a bar that moves, the picture of the video in the making as each kind of terminal takes
//! it, and what Ctrl-C says.

use std::process::Command;

use kinora_e2e::{Client, DataFolder, Host, kinora, media, run, until};
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

/// A terminal without a name, and no multiplexer.
fn terminal(ctrl_c_after: &str) -> Command {
    let mut python = bare("python3");
    python
        .args(["-c", TERMINAL, ctrl_c_after])
        .arg(kinora().get_program())
        .env("TERM", "xterm-256color");
    for name in ["TMUX", "TERM_PROGRAM", "KITTY_WINDOW_ID"] {
        python.env_remove(name);
    }
    python
}

/// A kind of terminal.
struct Kind {
    /// How it says what it is.
    variables: &'static [(&'static str, &'static str)],
    /// Flags where it says nothing.
    flags: &'static [&'static str],
    /// The end of a picture.
    picture: &'static str,
}

const KITTY: Kind = Kind {
    variables: &[("TERM", "xterm-kitty")],
    flags: &[],
    picture: r"\x1b_G[^;]*m=0;[^\x1b]*\x1b\\",
};
const ITERM: Kind = Kind {
    variables: &[("TERM_PROGRAM", "iTerm.app")],
    flags: &[],
    picture: r"\x1b\]1337;File=[^\x07]*\x07",
};
const SIXEL: Kind = Kind {
    variables: &[],
    flags: &["--preview", "sixel"],
    picture: r"\x1bPq[^\x1b]*\x1b\\",
};

/// Begins a long clip, presses Ctrl-C once its first picture has been drawn, and returns what the terminal got.
fn drawn(client: &Client, kind: &Kind) -> String {
    let mut terminal = terminal(kind.picture);
    terminal
        .args(["generate", "A ship crosses an ocean"])
        .args(["--model", "kinora-a1", "--seconds", "15"])
        .args(["--resolution", "480p"])
        .args(kind.flags)
        .envs(kind.variables.iter().copied())
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
    assert!(text.contains("is cancelled"), "{text:?}");
    let newest = &client.get("/v1/videos").ok()["data"][0];
    let id = newest["id"].as_str().unwrap();
    until("the cancel", || {
        client.video(id).is_finished().then_some(())
    });
    assert_eq!(client.video(id)["error"]["code"], "cancelled");
    text.to_owned()
}

/// The size of the PNG with this base64.
fn size_of(base64: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (folder.path().join("base64"), folder.path().join("p.png"));
    std::fs::write(&text, base64).unwrap();
    let mut decode = bare("bash");
    decode
        .args(["-c", "base64 -d \"$0\" > \"$1\""])
        .arg(&text)
        .arg(&path);
    run(decode).ok();
    media::picture_size(&path)
}

/// What stands between `start` and `end`, the first time.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

fn assert_a_preview((width, height): (u64, u64)) {
    assert!(
        width == 320 && (175..=185).contains(&height),
        "{width}x{height}"
    );
}

#[test]
fn a_terminal_shows_progress_and_the_picture_and_ctrl_c_cancels() {
    let server = narrow().painted().start();
    let client = server.client();

    let text = drawn(&client, &KITTY);
    // The first picture, as the terminal puts it together.
    let mut data = String::new();
    for piece in text.split("\u{1b}_G").skip(1) {
        let (keys, rest) = piece.split_once(';').unwrap();
        data.push_str(rest.split('\u{1b}').next().unwrap());
        if keys.contains("m=0") {
            break;
        }
    }
    assert_a_preview(size_of(&data));

    let text = drawn(&client, &ITERM);
    let picture = between(&text, "\u{1b}]1337;File=", "\u{7}");
    let (arguments, data) = picture.split_once(':').unwrap();
    assert!(arguments.contains("inline=1;"), "{arguments}");
    assert_a_preview(size_of(data));

    let text = drawn(&client, &SIXEL);
    let picture = between(&text, "\u{1b}Pq\"1;1;", "\u{1b}\\");
    let (size, pixels) = picture.split_once('#').unwrap();
    let (width, height) = size.split_once(';').unwrap();
    let (width, height) = (width.parse().unwrap(), height.parse().unwrap());
    assert_a_preview((width, height));
    // Bands of six rows; and the cursor goes as many rows of the terminal up, of 20 pixels each, as the picture takes.
    assert_eq!(
        pixels.matches('-').count() as u64,
        height.div_ceil(6),
        "{size}"
    );
    let up = format!("\u{1b}[{}A\u{1b}7\u{1b}Pq", height.div_ceil(20));
    assert!(text.contains(&up), "{size}");
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
