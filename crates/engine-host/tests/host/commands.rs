//! What the engine protocol gives the author of a command: phases, a longer time for a cancel, devices, unknown messages,
//! and the memory of all that a command started. Programs of Python's standard library play the commands; every wait ends
//! with its event, or after a limit that only a failing test reaches.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kinora_contract::limits::ENGINE_MESSAGES_MAX;
use kinora_contract::{Clock, FailureCode, ManualClock, ModelPreset, Size, SteadyMs, UnixMs};
use kinora_engine::{
    ClipPlan, ClipSink, Engine, EngineCapabilities, EngineError, Features, FrameJob, JobControl,
    JobMaterials, RenderGrid,
};
use kinora_engine_host::{HostOptions, HostedEngine, OpenRequest};
use kinora_engine_storyboard::Storyboard;

use crate::support::{clock, spec};

const SIZE: Size = Size::new(16, 16);
/// Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The other end of the protocol. `opened` is the body of `o`; each test adds what it does.
const PRELUDE: &str = r#"
import json, os, pathlib, struct, sys, time
source, target = sys.stdin.buffer, sys.stdout.buffer
folder = pathlib.Path(sys.argv[1])

def send(kind, body=b""):
    target.write(struct.pack("<cI", kind, len(body)) + body)
    target.flush()

def read():
    head = source.read(5)
    if len(head) < 5:
        sys.exit()
    kind, length = struct.unpack("<cI", head)
    return kind, source.read(length)

def wait_for(kind):
    while True:
        found, body = read()
        if found == kind:
            return body

def wait_until(what):
    for _ in range(6000):
        if what():
            return
        time.sleep(0.02)
    sys.exit("waited in vain")

def hello(**more):
    global opened
    opened = json.loads(wait_for(b"o"))
    body = {"protocol": {"major": 1, "minor": 0}, **more}
    send(b"h", json.dumps(body).encode())

def end(outcome="done"):
    send(b"e", json.dumps({"outcome": outcome}).encode())
"#;

/// An engine whose command runs `script`, with a folder for its signs.
struct Program {
    folder: tempfile::TempDir,
    engine: HostedEngine,
}

#[derive(Default)]
struct Options {
    devices: Vec<String>,
    memory_bytes_max: Option<u64>,
    run_limit: Option<Duration>,
    clock: Option<Arc<dyn Clock>>,
    promises: Option<EngineCapabilities>,
}

fn program(script: &str, options: Options) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{PRELUDE}\n{script}");
    let path = folder.path().to_owned();
    let options = HostOptions {
        command: Box::new(move || {
            let mut command = Command::new("python3");
            command.args(["-c", &script]).arg(&path);
            command
        }),
        open: OpenRequest::new("program", serde_json::Value::Null),
        promises: options.promises,
        devices: options.devices,
        processes: 1,
        open_limit: Duration::from_secs(120),
        memory_bytes_max: options.memory_bytes_max,
        run_limit: options.run_limit.unwrap_or(Duration::MAX),
        confinement: None,
        clock: options.clock.unwrap_or_else(clock),
    };
    Program {
        folder,
        engine: HostedEngine::new(Arc::new(Storyboard::default()), options),
    }
}

impl Program {
    fn run(&self) -> Result<(), EngineError> {
        self.run_with(&JobControl::default())
    }

    fn run_with(&self, control: &JobControl) -> Result<(), EngineError> {
        self.run_job(None, control)
    }

    fn run_job(
        &self,
        preset: Option<&ModelPreset>,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        let work = FrameJob {
            spec: &spec(SIZE, false),
            materials: &JobMaterials::default(),
            clip: ClipPlan {
                size: SIZE,
                fps: 24,
                frames: 48,
                audio: false,
            },
            preset,
        };
        self.engine.generate(&work, &mut Nothing, control)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }
}

/// Takes everything and keeps nothing.
struct Nothing;

impl ClipSink for Nothing {
    fn frame(&mut self, _: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }

    fn audio(&mut self, _: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

#[test]
fn within_a_declared_phase_being_alive_is_progress() {
    const TIMES: u64 = 1_000;
    let phase = |limit: u32| {
        format!(
            r#"send(b"g", json.dumps({{"name": "loading", "limit_seconds": {limit}}}).encode())"#
        )
    };
    let progress = r#"send(b"p", struct.pack("<d", 0.1))"#;
    for (before, is_progress) in [
        (String::new(), false),
        (phase(3_600), true),
        // Its time is over at once.
        (phase(0), false),
        // Progress ends it.
        (format!("{}; {progress}", phase(3_600)), false),
        // A second one has a limit of its own.
        (format!("{}; {}", phase(0), phase(3_600)), true),
    ] {
        let script = format!(
            "hello()\nsend(b'o')\nwait_for(b'j')\n{before}\nfor _ in range({TIMES}): send(b'k')\nend()"
        );
        let control = JobControl::default();
        program(&script, Options::default())
            .run_with(&control)
            .unwrap();
        // The start of the process is progress, too, but not as often.
        let reports = control.progress.reports();
        assert_eq!(reports >= TIMES, is_progress, "{before}: {reports}");
    }
}

/// A clock that runs only while it is looked at, and makes a file at a time of it.
#[derive(Debug)]
struct Looked {
    looks: AtomicU64,
    /// 0: no file is due.
    due_at_ms: AtomicU64,
    file: std::path::PathBuf,
}

impl Looked {
    const STEP_MS: u64 = 100;
}

impl Clock for Looked {
    fn now_ms(&self) -> UnixMs {
        0
    }

    fn steady_ms(&self) -> SteadyMs {
        let now_ms = self.looks.fetch_add(1, Ordering::SeqCst) * Self::STEP_MS;
        let due_at_ms = self.due_at_ms.load(Ordering::SeqCst);
        if due_at_ms > 0 && now_ms >= due_at_ms {
            fs::write(&self.file, "").unwrap();
        }
        now_ms
    }
}

/// Cancels a job whose command obeys 3 s later by the host's clock; returns how many processes it and the next job take.
fn processes_of_a_slow_cancel(hello: &str) -> usize {
    let signs = tempfile::tempdir().unwrap();
    let clock = Arc::new(Looked {
        looks: AtomicU64::new(0),
        due_at_ms: AtomicU64::new(0),
        file: signs.path().join("obey"),
    });
    let script = format!(
        r#"
with open(folder / "processes", "a") as file: file.write("one\n")
hello({hello})
send(b"o")
wait_for(b"j")
if not (folder / "begun").exists():
    (folder / "begun").touch()
    send(b"p", struct.pack("<d", 0.1))
    wait_for(b"c")
    wait_until(pathlib.Path({:?}).exists)
    end("cancelled")
    wait_for(b"j")
end()
wait_for(b"j")
"#,
        clock.file
    );
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::default()
    };
    let program = program(&script, options);
    let control = JobControl::default();
    control.cancel.cancel_at_progress();
    thread::scope(|scope| {
        let first = scope.spawn(|| program.run_with(&control));
        while !control.cancel.is_cancelled() {
            thread::yield_now();
        }
        let now_ms = clock.looks.load(Ordering::SeqCst) * Looked::STEP_MS;
        clock.due_at_ms.store(now_ms + 3_000, Ordering::SeqCst);
        let ended = first.join().unwrap();
        assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    });
    program.run().unwrap();
    program.file("processes").lines().count()
}

#[test]
fn an_engine_that_asks_for_more_time_to_obey_a_cancel_gets_it() {
    assert_eq!(processes_of_a_slow_cancel("yield_seconds=30"), 1);
    // By default it has 1.5 s, and is killed.
    assert_eq!(processes_of_a_slow_cancel(""), 2);
}

#[test]
fn every_device_has_a_process_of_its_own() {
    let devices = ["0,1", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"].map(str::to_owned);
    let script = r#"
hello()
send(b"o")
wait_for(b"j")
told = os.environ["CUDA_VISIBLE_DEVICES"]
assert told == opened["device"]
# Numbers are those of nvidia-smi.
assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
(folder / f"on {told}").write_text(str(os.getpid()))
# Both jobs run at the same time.
wait_until(lambda: len(list(folder.glob("on *"))) == 2)
end()
wait_for(b"j")
"#;
    let options = Options {
        devices: devices.to_vec(),
        ..Options::default()
    };
    let program = program(script, options);
    thread::scope(|scope| {
        let jobs = [(); 2].map(|()| scope.spawn(|| program.run()));
        for job in jobs {
            job.join().unwrap().unwrap();
        }
    });
    let [one, other] = devices.map(|device| program.file(&format!("on {device}")));
    assert_ne!(one, other);
}

/// Opens at once, or dies at its first start at this device, and then does jobs.
const OPENS: &str = r#"
device = os.environ["CUDA_VISIBLE_DEVICES"]
with (folder / f"starts {device}").open("a") as starts:
    starts.write("x")
if device == "broken" and (folder / "starts broken").read_text() == "x":
    sys.exit("no such device")
hello()
send(b"o")
while True:
    wait_for(b"j")
    end()
"#;

fn on_devices(devices: &[&str], script: &str) -> Program {
    let options = Options {
        devices: devices.iter().map(ToString::to_string).collect(),
        ..Options::default()
    };
    program(script, options)
}

#[test]
fn warming_up_opens_a_process_at_every_seat_and_jobs_find_them() {
    let program = on_devices(&["0", "1", "2"], OPENS);
    program.engine.warm_up(&JobControl::default());
    let starts = || ["0", "1", "2"].map(|device| program.file(&format!("starts {device}")));
    assert_eq!(starts(), ["x", "x", "x"]);
    program.engine.warm_up(&JobControl::default());
    thread::scope(|scope| {
        let jobs = [(); 3].map(|()| scope.spawn(|| program.run()));
        for job in jobs {
            job.join().unwrap().unwrap();
        }
    });
    assert_eq!(starts(), ["x", "x", "x"]);
}

#[test]
fn a_process_that_does_not_open_while_warming_up_is_started_again_by_a_job() {
    let program = on_devices(&["broken"], OPENS);
    program.engine.warm_up(&JobControl::default());
    assert_eq!(program.file("starts broken"), "x");
    program.run().unwrap();
    assert_eq!(program.file("starts broken"), "xx");
}

#[test]
fn a_cancel_ends_the_warming_up() {
    let script = r#"
hello()
(folder / "opening").touch()
time.sleep(1000)
"#;
    let program = on_devices(&["0"], script);
    let control = JobControl::default();
    thread::scope(|scope| {
        let warming = scope.spawn(|| program.engine.warm_up(&control));
        while !program.path().join("opening").exists() {
            thread::yield_now();
        }
        control.cancel.cancel();
        warming.join().unwrap();
    });
}

#[test]
fn messages_of_unknown_kinds_are_skipped_wherever_they_come() {
    let script = r#"
def unknown():
    send(b"Z", b"a later version" * 1000)
    send(b"y")

unknown()
hello(colour="red")
unknown()
send(b"o")
wait_for(b"j")
unknown()
send(b"p", struct.pack("<d", 0.5))
unknown()
end()
unknown()
wait_for(b"j")
end()
wait_for(b"j")
"#;
    let program = program(script, Options::default());
    let control = JobControl::default();
    program.run_with(&control).unwrap();
    assert!((control.progress.fraction() - 0.5).abs() < 1e-6);
    program.run().unwrap();
}

#[test]
fn a_job_carries_the_preset_of_its_model_and_the_next_one_does_not() {
    let script = r#"
hello()
send(b"o")
while True:
    job = json.loads(wait_for(b"j"))
    with (folder / "presets").open("a") as presets:
        presets.write(json.dumps(job.get("preset", "absent")) + "\n")
    end()
"#;
    let program = program(script, Options::default());
    let preset = serde_json::json!({"steps": 4, "loras": [{"name": "anime", "weight": 0.8}]});
    let preset = preset.as_object();
    for preset in [preset, None, preset] {
        program.run_job(preset, &JobControl::default()).unwrap();
    }
    let line = r#"{"loras": [{"name": "anime", "weight": 0.8}], "steps": 4}"#;
    assert_eq!(
        program.file("presets"),
        format!("{line}\n\"absent\"\n{line}\n")
    );
}

#[test]
fn an_engine_that_takes_no_presets_does_not_open_for_models_that_have_some() {
    let opened = |presets: bool, hello: &str| {
        let script = format!("hello({hello})\nsend(b'o')\nwait_for(b'j')\nend()");
        let options = Options {
            promises: Some(EngineCapabilities {
                features: Features::default(),
                grid: RenderGrid::ANY,
                fps: 0,
                presets,
            }),
            ..Options::default()
        };
        program(&script, options).run()
    };
    opened(true, "presets=True").unwrap();
    opened(false, "").unwrap();
    let Err(EngineError::CodedFailure { code, cause }) = opened(true, "") else {
        panic!("it opened");
    };
    assert_eq!(code, FailureCode::GenerationFailed);
    assert!(
        cause.contains("the configuration promises presets"),
        "{cause}"
    );
}

#[test]
fn the_memory_of_a_child_counts_in_any_session() {
    // The command itself takes a few MiB; it ends the job well if nobody ends it first.
    for is_new_session in ["False", "True"] {
        assert_takes_too_much(&format!(
            r#"
import subprocess
hello()
send(b"o")
wait_for(b"j")
holds = "import pathlib, sys, time; held = b'x' * (400 << 20); pathlib.Path(sys.argv[1]).touch(); time.sleep(1000)"
nothing = subprocess.DEVNULL
child = [sys.executable, "-c", holds, str(folder / "held")]
subprocess.Popen(child, stdin=nothing, stdout=nothing, start_new_session={is_new_session})
wait_until((folder / "held").exists)
time.sleep(60)
end()
wait_for(b"j")
"#
        ));
    }
}

/// Starts a process that has lost its parent, in a session of its own, and says in a file which one.
const ORPHAN: &str = r#"
import subprocess
hello()
send(b"o")
wait_for(b"j")
sleep = ["setsid", "--fork", "sh", "-c", "echo $$ > orphan.new; mv orphan.new orphan; exec sleep 100000"]
subprocess.run(sleep, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wait_until((folder / "orphan").exists)
"#;

#[test]
fn what_lost_its_parent_ends_with_its_command() {
    for (last, is_over) in [("sys.exit(3)", true), ("end()\nwait_for(b'j')", false)] {
        let program = program(&format!("{ORPHAN}{last}"), Options::default());
        assert_eq!(program.run().is_err(), is_over);
        let orphan = program.file("orphan");
        drop(program.engine);
        let stat = || fs::read_to_string(format!("/proc/{}/stat", orphan.trim()));
        let has_ended = || {
            let state = stat().unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        // What was killed takes a moment to end on a busy machine.
        let patience = Instant::now();
        while !has_ended() && patience.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert!(has_ended(), "{last}: {:?}", stat());
    }
}

#[test]
fn a_flood_of_messages_ends_its_process() {
    for message in [
        r#"b"p", struct.pack("<d", 0.5)"#,
        r#"b"k""#,
        r#"b"y", b"unknown""#,
    ] {
        for start in ["send(b'o')\nwait_for(b'j')\n", ""] {
            let script = format!("hello()\n{start}while True: send({message})");
            // By this clock no time passes, so that only the count ends the flood.
            let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
            let options = Options {
                clock: Some(clock),
                ..Options::default()
            };
            let control = JobControl::default();
            let ended = program(&script, options).run_with(&control);
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("too many messages"), "{message}: {error}");
            assert!(control.progress.reports() <= ENGINE_MESSAGES_MAX + 100);
        }
    }
}

#[test]
fn progress_for_ever_ends_with_the_time_of_a_run() {
    let signs = tempfile::tempdir().unwrap();
    let script = r#"
hello()
send(b"o")
wait_for(b"j")
while True:
    send(b"p", struct.pack("<d", 0.5))
    time.sleep(0.01)
"#;
    let options = Options {
        run_limit: Some(Duration::from_secs(60)),
        clock: Some(Arc::new(Looked {
            looks: AtomicU64::new(0),
            due_at_ms: AtomicU64::new(0),
            file: signs.path().join("none"),
        })),
        ..Options::default()
    };
    let ended = program(script, options).run();
    let Err(EngineError::CodedFailure { code, cause }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(code, FailureCode::GenerationTimeout);
    assert!(cause.contains("host.run_seconds"), "{cause}");
}

/// Asserts that the program is ended for its memory, of which it may take 200 MiB.
fn assert_takes_too_much(script: &str) {
    let options = Options {
        memory_bytes_max: Some(200 << 20),
        ..Options::default()
    };
    let ended = program(script, options).run();
    let Err(EngineError::Crashed { code, cause }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(code, FailureCode::OutOfMemory);
    assert!(cause.contains("of 209715200 allowed"), "{cause}");
}

#[test]
fn memory_counts_while_an_engine_opens() {
    // It opens and ends the job well if nobody ends it first.
    assert_takes_too_much(
        r#"
held = b'x' * (400 << 20)
time.sleep(60)
hello()
send(b"o")
wait_for(b"j")
end()
wait_for(b"j")
"#,
    );
}
