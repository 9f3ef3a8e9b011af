//! Child processes of the real binary: what an engine could reach if it were hostile, and what becomes of
//! films that were made to break a decoder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kinora_engine_host::{FilmOptions, HostedFilms};
use kinora_media::{
    ClipFormat, FilmFormat, FilmOpener, InProcessFilms, MediaError, MismatchPolicy, Recorder,
    RecorderOptions, UndecodablePolicy,
};
use kinora_test_e2e::{DataFolder, Setup, kinora, run, until};

use super::scale;
use crate::support::quick;

#[test]
fn an_engines_process_has_no_secrets_no_rights_and_no_way_out() {
    let server = Setup::default()
        .config(
            "[[engines]]\n\
             name = \"boxed\"\n\
             kind = \"storyboard\"\n\
             [[models]]\n\
             card = \"kinora-a1\"\n\
             id = \"kinora-a1\"\n\
             engine = \"boxed\"\n",
        )
        .set("STUDIO_KEY", "sk-secret-upstream")
        .set("AWS_SECRET_ACCESS_KEY", "secret-of-a-cloud")
        .set("OMP_NUM_THREADS", "2")
        .start();
    let client = server.client();
    client.wait_completed(client.submit(&quick("kinora-a1")).id());
    let engine = until("an engine's process", || server.children().first().copied());
    let about = |what: &str| {
        let bytes = std::fs::read(format!("/proc/{engine}/{what}")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let environment = about("environ");
    assert!(!environment.contains("secret"), "{environment}");
    assert!(environment.contains("OMP_NUM_THREADS=2"), "{environment}");
    let status = about("status");
    let has = |line: &str| status.lines().any(|one| one == line);
    // Root's children may read their input whoever owns its folder, and nothing else.
    let rights = ["0", "4"].map(|last| format!("CapEff:\t000000000000000{last}"));
    assert!(rights.iter().any(|rights| has(rights)), "{status}");
    assert!(has("NoNewPrivs:\t1"), "{status}");
    assert!(has("Seccomp:\t2"), "{status}");
    let limits = about("limits");
    let limit = |name: &str| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max core file size"), "0");
    assert_eq!(limit("Max open files"), "1024");
    server.assert_logged(&["\"name\":\"storyboard\"", "child processes are"], 1);
}

#[test]
fn doctor_says_whether_processes_can_be_locked_in() {
    let mut command = kinora();
    let data = DataFolder::default();
    command.arg("doctor").arg("--data").arg(data.path());
    let report = run(command);
    let row = report.stdout.lines().find(|line| line.contains("sandbox"));
    let row = row.unwrap_or_else(|| panic!("{report:#?}"));
    assert!(row.contains("sandboxed") || row.contains("lacks"), "{row}");
}

fn hosted_films() -> HostedFilms {
    HostedFilms::new(FilmOptions {
        command: Box::new(|| {
            let mut command: Command = kinora();
            command.arg("film-host");
            command
        }),
        silence_max: Duration::from_mins(1),
        examine_max: Duration::from_mins(10),
        clock: crate::support::clock(),
    })
}

/// A film of moving stripes.
fn film(folder: &Path, (width, height): (u32, u32), frames: u32) -> PathBuf {
    let path = folder.join("film.mp4");
    let format = ClipFormat {
        width,
        height,
        fps: 24,
        frames,
        audio: None,
    };
    let mut recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
    for index in 0..frames {
        let pixels = 0..width * height;
        let rgb: Vec<u8> = pixels
            .flat_map(|pixel| [((pixel % width + index * 5) / 16 * 40) as u8, 90, 160])
            .collect();
        recorder.push_frame(&rgb).unwrap();
    }
    recorder.finish().unwrap();
    path
}

fn asked((width, height): (u32, u32), seconds: u32) -> FilmFormat {
    FilmFormat {
        width,
        height,
        seconds: Some(seconds),
        seconds_max: 15,
        audio: None,
        undecodable: UndecodablePolicy::Refuse,
        mismatched: MismatchPolicy::Refuse,
    }
}

/// Frames of a film and seconds that they took.
fn played(films: &dyn FilmOpener, path: &Path) -> (Vec<Vec<u8>>, f64) {
    let info = films.look(path).unwrap();
    let start = Instant::now();
    let mut film = films.play(path, &info).unwrap();
    let frames = std::iter::from_fn(|| film.next_frame().unwrap()).collect();
    (frames, start.elapsed().as_secs_f64())
}

#[test]
fn a_film_read_in_a_process_of_its_own_is_the_same_film() {
    let folder = tempfile::tempdir().unwrap();
    let size = (scale(640, 1_280) as u32, scale(360, 720) as u32);
    let seconds = scale(2, 15) as u32;
    let path = film(folder.path(), size, seconds * 24);
    let films = hosted_films();
    let start = Instant::now();
    assert_eq!(
        films.look(&path).unwrap(),
        InProcessFilms.look(&path).unwrap()
    );
    println!(
        "a process for one film: {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    let (here, here_took) = played(&InProcessFilms, &path);
    let (there, there_took) = played(&films, &path);
    assert!(here == there && here.len() as u32 == seconds * 24);
    let rate = |took: f64| here.len() as f64 / took;
    println!(
        "{size:?}: {:.0} frames/s in this process, {:.0} from another",
        rate(here_took),
        rate(there_took)
    );
    let examine =
        |films: &dyn FilmOpener| films.examine(&path, &asked(size, seconds), &mut || true);
    let (ours, theirs) = (examine(&InProcessFilms).unwrap(), examine(&films).unwrap());
    assert!(ours.first_frame_jpeg.is_some() && ours.last_frame_jpeg.is_some());
    assert_eq!(ours, theirs);
}

#[test]
fn films_made_to_break_a_decoder_break_a_process_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let size = (160, 96);
    let whole = std::fs::read(film(folder.path(), size, 48)).unwrap();
    let path = folder.path().join("hostile.mp4");
    let films = hosted_films();
    // Damage that is the same at every run (xorshift).
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as usize
    };
    let mut refused = 0;
    let attempts = scale(12, 2_000);
    for _ in 0..attempts {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 40 {
            let at = next() % bytes.len();
            bytes[at] = next() as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        match films.examine(&path, &asked(size, 2), &mut || true) {
            Ok(_) => {}
            Err(MediaError::Refused(_) | MediaError::Lost(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    println!("{refused} of {attempts} damaged films were refused");
    assert!(refused > attempts / 4);
}
