//! Seats of an engine as they are configured: every device works with the default settings, a device without a slot is
//! named, and warm processes are there before the first task. A program of Python's standard library plays the engine.

use std::path::Path;

use kinora_test_e2e::{Server, Setup, kinora, run, until};
use serde_json::json;

/// An engine that leaves signs in the folder of its first argument: `starts-DEVICE` at its start and `jobs-DEVICE` for
/// each job. The second argument is how many devices must work at the same time before a job ends. It does not open while
/// a file `broken` is there, and waits with that while a file `slow` is.
const ENGINE: &str = r#"
import json, os, pathlib, struct, sys, threading, time
source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
folder, together = pathlib.Path(sys.argv[1]), int(sys.argv[2])
device = os.environ["CUDA_VISIBLE_DEVICES"]
lock = threading.Lock()

def send(kind, body=b""):
    with lock:
        target.write(struct.pack("<cI", kind, len(body)) + body)
        target.flush()

def read():
    head = source.read(5)
    if len(head) < 5:
        os._exit(0)
    kind, length = struct.unpack("<cI", head)
    return kind, source.read(length)

def sign(name):
    with (folder / f"{name}-{device}").open("a") as file:
        file.write("x")

sign("starts")
if (folder / "broken").exists():
    sys.exit("no such device")
read()
features = {"text_to_video": True}
send(b"h", json.dumps({"protocol": {"major": 1, "minor": 0}, "features": features, "size_multiple": 2}).encode())
while (folder / "slow").exists():
    time.sleep(0.02)
send(b"o")
while True:
    kind, body = read()
    if kind != b"j":
        continue
    clip = json.loads(body)["clip"]
    sign("jobs")
    while len(list(folder.glob("jobs-*"))) < together:
        send(b"p", struct.pack("<d", 0.1))
        time.sleep(0.05)
    for _ in range(clip["frames"]):
        send(b"f", bytes(clip["width"] * clip["height"] * 3))
    send(b"p", struct.pack("<d", 1.0))
    send(b"e", json.dumps({"outcome": "done"}).encode())
"#;

/// The configuration of an engine with these devices, `together` of which must work at the same time, with `before` and
/// `more` around its first keys.
fn config(folder: &Path, devices: &[&str], together: usize, before: &str, more: &str) -> String {
    let command = json!(["python3", "-c", ENGINE, folder, together.to_string()]);
    let devices = json!(devices);
    format!(
        "{before}\n\
         [[engines]]\n\
         name = \"own\"\n\
         kind = \"process\"\n\
         command = {command}\n\
         devices = {devices}\n\
         {more}\n\
         [engines.describe]\n\
         size_multiple = 2\n\
         fps = 8\n\
         features = {{ text_to_video = true }}\n\
         [[models]]\n\
         id = \"own\"\n\
         engine = \"own\"\n\
         sizes = [\"256x256\"]\n\
         seconds = [2]\n"
    )
}

const EIGHT: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "GPU-7"];

/// How many signs of this kind there are.
fn signs(folder: &Path, kind: &str) -> usize {
    let files = std::fs::read_dir(folder).unwrap();
    let of_kind = files.filter_map(Result::ok).filter(|file| {
        let name = file.file_name();
        name.to_str().is_some_and(|name| name.starts_with(kind))
    });
    let lengths = of_kind.map(|file| file.metadata().unwrap().len());
    usize::try_from(lengths.sum::<u64>()).unwrap()
}

fn submit(server: &Server) -> String {
    let body = json!({"model": "own", "prompt": "Waves", "seconds": 2});
    server.client().submit(&body).id().to_owned()
}

fn is_ready(server: &Server) -> bool {
    server.anonymous().get("/readyz").status == 200
}

#[test]
fn eight_devices_work_at_the_same_time_without_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &EIGHT, 8, "", "");
    let server = Setup::default().config(&config).start();
    let tasks: Vec<String> = (0..8).map(|_| submit(&server)).collect();
    for task in &tasks {
        server.client().wait_completed(task);
    }
    assert_eq!(signs(folder.path(), "jobs-"), 8);
    server.assert_logged(&["worker.slots"], 0);
}

#[test]
fn devices_without_a_slot_are_named_at_the_start_and_by_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &EIGHT, 1, "[worker]\nslots = 2", "");
    let advice = "own has 8 seats (0, 1, 2, 3, 4, 5, 6, GPU-7) and worker.slots is 2: at any time 6 of them have no task";
    let server = Setup::default().config(&config).start();
    server.wait_for_log(&[advice]);
    let path = folder.path().join("kinora.toml");
    std::fs::write(&path, config).unwrap();
    let mut doctor = kinora();
    doctor.arg("doctor").arg("--config").arg(path);
    doctor.arg("--data").arg(folder.path().join("data"));
    let found = run(doctor).stdout;
    assert!(found.contains(advice), "{found}");
}

#[test]
fn warm_processes_open_before_the_first_task_and_readiness_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("slow"), "").unwrap();
    let config = config(folder.path(), &["0", "1"], 2, "", "warm = true");
    let server = Setup::default().config(&config).start();
    until("both processes", || {
        (signs(folder.path(), "starts-") == 2).then_some(())
    });
    assert!(!is_ready(&server));
    std::fs::remove_file(folder.path().join("slow")).unwrap();
    until("it is ready", || is_ready(&server).then_some(()));
    server.assert_logged(&["engine process is warm"], 2);
    let tasks = [submit(&server), submit(&server)];
    for task in &tasks {
        server.client().wait_completed(task);
    }
    assert_eq!(signs(folder.path(), "starts-"), 2);
}

#[test]
fn a_process_that_does_not_open_while_warming_up_costs_no_task_and_no_readiness() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("broken"), "").unwrap();
    let once = "[worker]\nattempts_max = 1";
    let config = config(folder.path(), &["0"], 1, once, "warm = true");
    let server = Setup::default().config(&config).start();
    server.wait_for_log(&["engine process did not open; a task will open it again"]);
    until("it is ready", || is_ready(&server).then_some(()));
    std::fs::remove_file(folder.path().join("broken")).unwrap();
    server.client().wait_completed(&submit(&server));
    assert_eq!(signs(folder.path(), "starts-"), 2);
}
