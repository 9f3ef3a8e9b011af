//! Children that say what no child of ours would: each is ended, and costs the service neither memory nor
//! decoders. Shell scripts play them; the first five bytes of a message are its kind and length.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kinora_contract::Size;
use kinora_engine::{
    ClipPlan, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials, RgbPicture,
    SourceVideo, VideoPlayback,
};
use kinora_engine_host::{FilmOptions, HostOptions, HostedEngine, HostedFilms, OpenRequest};
use kinora_engine_storyboard::Storyboard;
use kinora_media::{
    FilmFormat, FilmOpener, MediaError, MismatchPolicy, ProbeInfo, UndecodablePolicy,
};

use crate::support::{clock, spec};

const SIZE: Size = Size::new(640, 480);
/// Says what the engine speaks, and that it is open.
const OPENED: &str =
    r#"printf 'h\046\000\000\000{"protocol": {"major": 1, "minor": 0}}o\000\000\000\000'"#;

/// Reads up to the first byte of a job: what comes before the job is refused.
const UNTIL_JOB: &str = r#"until [ "$(dd bs=1 count=1 2>/dev/null)" = j ]; do :; done"#;

/// Plays the source as number 0, requests its next frame, and ends the job.
const PLAY: &str = r"printf 's\004\000\000\000\000\000\000\000'";
const REQUEST: &str = r"printf 'n\004\000\000\000\000\000\000\000'";
const DONE: &str = r#"printf 'e\023\000\000\000{"outcome": "done"}'"#;

fn picture() -> RgbPicture {
    RgbPicture {
        size: SIZE,
        rgb: vec![7; SIZE.pixels() as usize * 3],
    }
}

fn sh(script: String) -> Box<dyn Fn() -> Command + Send + Sync> {
    Box::new(move || {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&script);
        command
    })
}

/// A source that counts what is asked of it.
#[derive(Debug, Default)]
struct Source {
    plays: AtomicU32,
    frames: Arc<AtomicU32>,
}

impl SourceVideo for Source {
    fn size(&self) -> Size {
        SIZE
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        100_000
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        self.plays.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Frames(self.frames.clone())))
    }
}

struct Frames(Arc<AtomicU32>);

impl VideoPlayback for Frames {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Some(vec![7; SIZE.pixels() as usize * 3]))
    }
}

#[derive(Default)]
struct Taken {
    bytes: usize,
}

impl ClipSink for Taken {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.bytes += rgb.len();
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.bytes += pcm.len() * 4;
        Ok(())
    }
}

/// What came of a job in a child that says `script`, and how many bytes of it were believed.
fn job(script: &str, source: &Arc<Source>) -> (Result<(), EngineError>, usize) {
    watched_job(script, source, &JobControl::default())
}

fn watched_job(
    script: &str,
    source: &Arc<Source>,
    control: &JobControl,
) -> (Result<(), EngineError>, usize) {
    let source: Arc<dyn SourceVideo> = source.clone();
    let materials = JobMaterials {
        source: Some(source),
        ..JobMaterials::default()
    };
    job_of(&engine(script), &materials, control)
}

/// An engine whose processes say `script` once they are open.
fn engine(script: &str) -> HostedEngine {
    let options = HostOptions {
        command: sh(format!("{OPENED}; {script}; exec sleep 1000")),
        open: OpenRequest::new("hostile", serde_json::Value::Null),
        promises: None,
        devices: Vec::new(),
        processes: 1,
        open_limit: Duration::from_secs(60),
        run_limit: Duration::MAX,
        memory_bytes_max: None,
        confinement: None,
        clock: clock(),
    };
    HostedEngine::new(Arc::new(Storyboard::default()), options)
}

fn job_of(
    engine: &HostedEngine,
    materials: &JobMaterials,
    control: &JobControl,
) -> (Result<(), EngineError>, usize) {
    let work = FrameJob {
        spec: &spec(SIZE, true),
        materials,
        clip: ClipPlan {
            size: SIZE,
            fps: 24,
            frames: 48,
            audio: true,
        },
        preset: None,
    };
    let mut taken = Taken::default();
    let ended = engine.generate(&work, &mut taken, control);
    (ended, taken.bytes)
}

/// The most memory that this process has had resident so far, in MiB.
fn memory_peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.unwrap().split_whitespace().next().unwrap();
    kib.parse::<u64>().unwrap() / 1024
}

fn crashed(ended: Result<(), EngineError>) -> String {
    match ended {
        Err(EngineError::Crashed { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_of_256_mib_is_not_read_whatever_its_kind() {
    let before = memory_peak_mib();
    for kind in ["f", "a", "v", "e", "p"] {
        // 0x10000000 in little endian.
        let head = r"\000\000\000\020";
        let flood = format!("printf '{kind}{head}'; head -c 268435456 /dev/zero");
        let (ended, taken) = job(&flood, &Arc::default());
        crashed(ended);
        assert_eq!(taken, 0, "{kind}");
    }
    let grown = memory_peak_mib() - before;
    assert!(grown < 128, "{grown} MiB");
}

/// A script that sends these messages 200 times, each with a number from 0 on.
fn numbered(kinds: &str) -> String {
    let send = |kind: char| {
        let head = r"\004\000\000\000";
        format!(r#"printf '{kind}{head}'; printf "\\$(printf %03o $n)\000\000\000""#)
    };
    let sends: Vec<String> = kinds.chars().map(send).collect();
    let sends = sends.join("; ");
    format!("n=0; while [ $n -lt 200 ]; do {sends}; n=$((n+1)); done")
}

#[test]
fn a_source_is_played_a_few_times_and_not_without_end() {
    for (kinds, plays) in [("s", 4), ("sc", 16)] {
        let source = Arc::<Source>::default();
        let cause = crashed(job(&numbered(kinds), &source).0);
        assert!(cause.contains("plays its source too many times"), "{cause}");
        assert_eq!(source.plays.load(Ordering::Relaxed), plays, "{kinds}");
    }
}

#[test]
fn sound_and_previews_are_progress_and_being_alive_is_not() {
    const TIMES: u64 = 1_000;
    for (message, is_progress) in [
        (r"a\004\000\000\000\000\000\000\000", true),
        // One pixel.
        (
            r"v\013\000\000\000\001\000\000\000\001\000\000\000\000\000\000",
            true,
        ),
        (r"k\000\000\000\000", false),
    ] {
        let control = JobControl::default();
        let script = format!(
            "{UNTIL_JOB}; n=0; while [ $n -lt {TIMES} ]; do printf '{message}'; n=$((n+1)); done; exit 1"
        );
        let cause = crashed(watched_job(&script, &Arc::default(), &control).0);
        // The start of the process is progress, too, but not as often.
        let reports = control.progress.reports();
        assert_eq!(
            reports >= TIMES,
            is_progress,
            "{message}: {reports}, {cause}"
        );
    }
}

#[test]
fn frames_that_nobody_takes_are_not_made() {
    let source = Arc::<Source>::default();
    let asks = format!("{PLAY}; n=0; while [ $n -lt 5000 ]; do {REQUEST}; n=$((n+1)); done");
    let cause = crashed(job(&asks, &source).0);
    assert!(cause.contains("without taking them"), "{cause}");
    let frames = source.frames.load(Ordering::Relaxed);
    assert!(frames < 10, "{frames}");
}

#[test]
fn a_frame_may_be_requested_before_the_materials_are_read() {
    let source = Arc::<Source>::default();
    let playing: Arc<dyn SourceVideo> = source.clone();
    let materials = JobMaterials {
        images: vec![picture(); 4],
        source: Some(playing),
        ..JobMaterials::default()
    };
    let bytes = 5 * picture().rgb.len();
    let script = format!(r#"{UNTIL_JOB}; {PLAY}; {REQUEST}; head -c {bytes} >/dev/null; {DONE}"#);
    let ended = job_of(&engine(&script), &materials, &JobControl::default()).0;
    ended.unwrap();
    assert_eq!(source.frames.load(Ordering::Relaxed), 1);
}

#[test]
fn a_process_that_leaves_its_orders_unread_gets_no_more_of_them() {
    let materials = JobMaterials {
        images: vec![picture()],
        ..JobMaterials::default()
    };
    // A second job in the same process would crash.
    let engine = engine(&format!("{UNTIL_JOB}; {DONE}; sleep 5; exit 1"));
    for _ in 0..2 {
        job_of(&engine, &materials, &JobControl::default())
            .0
            .unwrap();
    }
}

fn films(script: &str, silence_max: Duration) -> HostedFilms {
    HostedFilms::new(FilmOptions {
        command: sh(script.to_owned()),
        silence_max,
        examine_max: Duration::from_secs(60),
        clock: clock(),
    })
}

const ASKED: FilmFormat = FilmFormat {
    width: 320,
    height: 192,
    seconds: Some(2),
    seconds_max: 15,
    audio: None,
    undecodable: UndecodablePolicy::Refuse,
    mismatched: MismatchPolicy::Refuse,
};

fn film() -> &'static Path {
    Path::new("/nowhere/film.mp4")
}

fn examined(script: &str, silence_max: Duration) -> MediaError {
    let examined = films(script, silence_max).examine(film(), &ASKED, &mut || true);
    examined.unwrap_err()
}

/// Nobody is silent for so long but those who hang.
const PATIENT: Duration = Duration::from_secs(60);

#[test]
fn a_film_process_that_dies_hangs_or_lies_is_given_up() {
    // The last is a poster of 64 MiB.
    for (lost, silence_max) in [
        ("exit 3", PATIENT),
        ("exec sleep 1000", Duration::from_millis(300)),
        (
            r"printf 'p\000\000\000\004'; head -c 67108864 /dev/zero; exec sleep 1000",
            PATIENT,
        ),
    ] {
        let error = examined(lost, silence_max);
        assert!(matches!(error, MediaError::Lost(_)), "{lost}: {error}");
    }
    // A poster that is none, and an end before any message.
    for lie in [
        r"printf 'p\004\000\000\000<svg'; exec sleep 1000",
        r"printf 'd\000\000\000\000'; exec sleep 1000",
    ] {
        let error = examined(lie, PATIENT);
        assert!(matches!(error, MediaError::Refused(_)), "{lie}: {error}");
    }
}

#[test]
fn a_look_at_a_film_can_be_ended() {
    let lives = r"while :; do printf 'a\000\000\000\000'; sleep 0.01; done";
    let mut looks = 0;
    let mut go_on = || {
        looks += 1;
        looks < 3
    };
    let stopped = films(lives, PATIENT).examine(film(), &ASKED, &mut go_on);
    assert!(matches!(stopped, Err(MediaError::Stopped)));
    assert_eq!(looks, 3);
}

#[test]
fn a_frame_of_another_size_than_the_index_says_is_not_shown() {
    let info = ProbeInfo {
        duration_seconds: 2.0,
        fps: 24.0,
        frames: 48,
        width: 4,
        height: 1,
        has_audio: false,
        file_bytes: 1_000,
    };
    let whole = r"printf 'f\014\000\000\000abcdefghijkl'";
    for wrong in [
        // It ends early, silently or by its word; a short frame; a long one.
        "exit 0",
        r"printf 'd\000\000\000\000'",
        r"printf 'f\013\000\000\000abcdefghijk'",
        r"printf 'f\015\000\000\000abcdefghijklm'",
    ] {
        let films = films(&format!("{whole}; {wrong}; exec sleep 1000"), PATIENT);
        let mut playing = films.play(film(), &info).unwrap();
        assert_eq!(playing.next_frame().unwrap().unwrap(), b"abcdefghijkl");
        assert!(playing.next_frame().is_err(), "{wrong}");
    }
}
