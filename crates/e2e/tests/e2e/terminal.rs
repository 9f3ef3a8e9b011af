//! What a person at a terminal sees: a bar that moves, the picture of the video in the making, and
//! what Ctrl-C says.

use kinora_e2e::{media, run, until};
use serde_json::Value;

use crate::cli::bare;
use crate::support::narrow;

/// Runs its arguments with a terminal for standard error, presses Ctrl-C once a picture and a percentage have been drawn, and
/// prints what was on both outputs.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, re, signal, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 1000, 800))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs)
os.close(theirs)
text, pressed = b"", False
while True:
    try:
        read = os.read(ours, 65536)
    except OSError:
        break
    if not read:
        break
    text += read
    whole = re.search(rb"\x1b_G[^;]*m=0;", text)
    if not pressed and whole and re.search(rb"[1-9] %", text):
        child.send_signal(signal.SIGINT)
        pressed = True
print(json.dumps({
    "stderr": text.decode("utf-8", "replace"),
    "stdout": child.stdout.read().decode(),
    "code": child.wait(),
}))
"#;

#[test]
fn a_terminal_shows_progress_and_the_picture_and_ctrl_c_cancels() {
    let server = narrow().painted().start();
    let client = server.client();
    let kinora = kinora_e2e::kinora();
    let mut python = bare("python3");
    python
        .args(["-c", TERMINAL])
        .arg(kinora.get_program())
        .args([
            "generate",
            "A ship crosses an ocean",
            "--model",
            "kinora-a1",
            "--seconds",
            "15",
        ])
        .args(["--resolution", "480p"])
        .env("TERM", "xterm-kitty")
        .env_remove("TMUX")
        .env("KINORA_URL", client.base_url())
        .env("KINORA_API_KEY", client.key());
    let seen: Value = serde_json::from_str(&run(python).ok()).unwrap();
    let (text, stdout) = (seen["stderr"].as_str().unwrap(), &seen["stdout"]);
    assert_eq!(
        (&seen["code"], stdout),
        (&130.into(), &"".into()),
        "{text:?}"
    );
    assert!(text.contains("[#") || text.contains("[-"), "{text:?}");
    assert!(text.contains("is cancelled"), "{text:?}");
    let id = client.get("/v1/videos").ok()["data"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until("the cancel", || {
        client.video(&id).is_finished().then_some(())
    });
    assert_eq!(client.video(&id)["error"]["code"], "cancelled");

    // The first picture, as the terminal puts it together.
    let mut data = String::new();
    for piece in text.split("\u{1b}_G").skip(1) {
        let (keys, rest) = piece.split_once(';').unwrap();
        data.push_str(rest.split('\u{1b}').next().unwrap());
        if keys.contains("m=0") {
            break;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (
        folder.path().join("base64"),
        folder.path().join("preview.png"),
    );
    std::fs::write(&text, data).unwrap();
    let mut decode = bare("bash");
    decode
        .args(["-c", "base64 -d \"$0\" > \"$1\""])
        .arg(&text)
        .arg(&path);
    run(decode).ok();
    let (width, height) = media::picture_size(&path);
    assert!(
        width == 320 && (175..=185).contains(&height),
        "{width}x{height}"
    );
}
