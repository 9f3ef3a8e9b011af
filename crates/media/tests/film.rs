//! Films that somebody else made: what is taken, what is not, and what their stills show.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod support;

use std::path::{Path, PathBuf};

use kinora_media::{FilmFormat, MediaError, Mismatch, Recording, examine};

const ASKED: FilmFormat = FilmFormat {
    width: 320,
    height: 192,
    seconds: Some(2),
    seconds_max: 15,
    audio: Some(false),
};
const X264: &[&str] = &["-c:v", "libx264", "-pix_fmt", "yuv420p"];

/// A film made by ffmpeg.
fn film(folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let path = folder.join("film.mp4");
    let arguments = [&["-f", "lavfi", "-i", source][..], more, &["-y", "FILE"]].concat();
    support::run("ffmpeg", &arguments, &path);
    path
}

fn look(path: &Path, asked: &FilmFormat) -> Result<Recording, MediaError> {
    examine(path, asked, &mut || true)
}

#[test]
fn a_film_on_its_makers_grid_is_taken_and_shown_by_its_own_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path(), "testsrc2=s=320x176:r=16:d=2.0625", X264);
    let recording = look(&path, &ASKED).unwrap();
    assert_eq!((recording.info.width, recording.info.height), (320, 176));
    assert_eq!(recording.info.frames, 33);
    let grey = film(folder.path(), "color=gray:s=320x176:r=16:d=2.0625", X264);
    assert_ne!(
        look(&grey, &ASKED).unwrap().poster_webp,
        recording.poster_webp
    );
    let open = FilmFormat {
        seconds: None,
        ..ASKED
    };
    assert!(look(&path, &open).is_ok());
}

#[test]
fn a_film_of_another_size_length_or_sound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mismatch = |source: &str, more: &[&str], asked: &FilmFormat| {
        let path = film(folder.path(), source, &[more, X264].concat());
        match look(&path, asked) {
            Err(MediaError::NotAsAsked(mismatch)) => mismatch,
            other => panic!("{source}: {other:?}"),
        }
    };
    let wide = mismatch("testsrc2=s=352x192:r=16:d=2", &[], &ASKED);
    assert!(matches!(wide, Mismatch::Size { .. }), "{wide}");
    for source in ["testsrc2=s=320x192:r=16:d=1", "testsrc2=s=320x192:r=16:d=3"] {
        let length = mismatch(source, &[], &ASKED);
        assert!(matches!(length, Mismatch::Duration { .. }), "{length}");
    }
    let sound = ["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"];
    let loud = mismatch("testsrc2=s=320x192:r=16:d=2", &sound, &ASKED);
    assert!(
        matches!(loud, Mismatch::Audio { actual: true, .. }),
        "{loud}"
    );
    let asked = FilmFormat {
        audio: Some(true),
        ..ASKED
    };
    let silent = mismatch("testsrc2=s=320x192:r=16:d=2", &[], &asked);
    assert!(
        matches!(silent, Mismatch::Audio { actual: false, .. }),
        "{silent}"
    );
    let unasked = FilmFormat {
        audio: None,
        ..ASKED
    };
    let path = film(
        folder.path(),
        "testsrc2=s=320x192:r=16:d=2",
        &[&sound, X264].concat(),
    );
    assert!(look(&path, &unasked).unwrap().info.has_audio);
}

#[test]
fn pictures_that_cannot_be_decoded_here_are_taken_with_plain_stills() {
    let folder = tempfile::tempdir().unwrap();
    let full = ["-c:v", "libx264", "-pix_fmt", "yuv444p"];
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", &full);
    let recording = look(&path, &ASKED).unwrap();
    assert_eq!(recording.info.frames, 32);
    let other = film(folder.path(), "color=red:s=320x192:r=16:d=2", &full);
    assert_eq!(
        look(&other, &ASKED).unwrap().poster_webp,
        recording.poster_webp
    );
}

#[test]
fn what_is_no_film_is_refused_and_a_look_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.mp4");
    std::fs::write(&path, b"<html>not here</html>").unwrap();
    assert!(matches!(look(&path, &ASKED), Err(MediaError::Malformed(_))));
    let other = ["-c:v", "mpeg4"];
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", &other);
    assert!(matches!(look(&path, &ASKED), Err(MediaError::Malformed(_))));
    let twice = ["-map", "0:v", "-map", "0:v"];
    let twice = [&twice[..], X264].concat();
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", &twice);
    assert!(matches!(look(&path, &ASKED), Err(MediaError::Malformed(_))));
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", X264);
    let mut looks = 0;
    let stopped = examine(&path, &ASKED, &mut || {
        looks += 1;
        looks < 3
    });
    assert!(matches!(stopped, Err(MediaError::Stopped)));
    assert_eq!(looks, 3);
}
