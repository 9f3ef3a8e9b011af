//! Films that somebody else made: what is taken, what is not, and what their stills show.

use std::path::{Path, PathBuf};

use kinora_media::{
    FilmFormat, FormatMismatch, MediaError, MismatchPolicy, Recording, UndecodablePolicy, examine,
};

const ASKED: FilmFormat = FilmFormat {
    width: 320,
    height: 192,
    seconds: Some(2),
    seconds_max: 15,
    audio: Some(false),
    undecodable: UndecodablePolicy::Refuse,
    mismatched: MismatchPolicy::Refuse,
};
const X264: &[&str] = &["-c:v", "libx264", "-pix_fmt", "yuv420p"];

/// A film made by ffmpeg.
fn film(folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let path = folder.join("film.mp4");
    let arguments = [&["-f", "lavfi", "-i", source][..], more, &["-y", "FILE"]].concat();
    crate::support::run("ffmpeg", &arguments, &path);
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
    assert!(matches!(wide, FormatMismatch::Size { .. }), "{wide}");
    for source in ["testsrc2=s=320x192:r=16:d=1", "testsrc2=s=320x192:r=16:d=3"] {
        let length = mismatch(source, &[], &ASKED);
        assert!(
            matches!(length, FormatMismatch::Duration { .. }),
            "{length}"
        );
    }
    let sound = ["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"];
    let loud = mismatch("testsrc2=s=320x192:r=16:d=2", &sound, &ASKED);
    assert!(
        matches!(loud, FormatMismatch::Audio { actual: true, .. }),
        "{loud}"
    );
    let asked = FilmFormat {
        audio: Some(true),
        ..ASKED
    };
    let silent = mismatch("testsrc2=s=320x192:r=16:d=2", &[], &asked);
    assert!(
        matches!(silent, FormatMismatch::Audio { actual: false, .. }),
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
fn a_film_that_does_not_match_is_kept_if_it_is_to_be_and_the_differences_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let keep = FilmFormat {
        audio: Some(true),
        mismatched: MismatchPolicy::Keep,
        ..ASKED
    };
    let path = film(folder.path(), "testsrc2=s=416x240:r=16:d=5", X264);
    let recording = look(&path, &keep).unwrap();
    assert_eq!((recording.info.width, recording.info.height), (416, 240));
    assert!(recording.first_frame_jpeg.is_some());
    let found = keep.mismatches(&recording.info);
    assert!(
        matches!(
            found[..],
            [
                FormatMismatch::Size {
                    actual_width: 416,
                    ..
                },
                FormatMismatch::Duration { .. },
                FormatMismatch::Audio { actual: false, .. },
            ]
        ),
        "{found:?}"
    );
    // More than an hour, at a frame every five minutes.
    let slow = film(folder.path(), "testsrc2=s=64x64:r=1/300:d=4200", X264);
    assert!(matches!(
        look(&slow, &keep),
        Err(MediaError::InvalidFormat(_))
    ));
}

#[test]
fn pictures_that_cannot_be_decoded_here_are_refused_or_kept_with_plain_stills() {
    let folder = tempfile::tempdir().unwrap();
    let keep = FilmFormat {
        undecodable: UndecodablePolicy::Keep,
        ..ASKED
    };
    let full = ["-c:v", "libx264", "-pix_fmt", "yuv444p"];
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", &full);
    assert!(matches!(look(&path, &ASKED), Err(MediaError::Decode(_))));
    let recording = look(&path, &keep).unwrap();
    assert_eq!(recording.info.frames, 32);
    let other = film(folder.path(), "color=red:s=320x192:r=16:d=2", &full);
    assert_eq!(
        look(&other, &keep).unwrap().poster_webp,
        recording.poster_webp
    );
}

/// Where the body of the first box of this kind begins.
fn body_of(bytes: &[u8], kind: &[u8; 4]) -> usize {
    bytes.windows(4).position(|bytes| bytes == kind).unwrap() + 4
}

#[test]
fn a_film_that_nobody_can_decode_is_refused_although_its_index_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path(), "testsrc2=s=320x192:r=16:d=2", X264);
    let sound = std::fs::read(&path).unwrap();
    let keep = FilmFormat {
        undecodable: UndecodablePolicy::Keep,
        ..ASKED
    };
    // Noise that is the same at every run (xorshift).
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    };
    for (kind, from, count) in [(b"avcC", 8, 22), (b"mdat", 400, 3_000)] {
        let mut bytes = sound.clone();
        let from = body_of(&bytes, kind) + from;
        bytes[from..from + count].fill_with(&mut byte);
        std::fs::write(&path, &bytes).unwrap();
        let refused = look(&path, &ASKED);
        assert!(
            matches!(
                refused,
                Err(MediaError::Decode(_) | MediaError::Malformed(_))
            ),
            "{refused:?}"
        );
        assert!(look(&path, &keep).is_ok());
    }
}

#[test]
fn an_index_that_says_two_things_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sound = ["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"];
    let path = film(
        folder.path(),
        "testsrc2=s=320x192:r=16:d=2",
        &[&sound, X264].concat(),
    );
    let whole = std::fs::read(&path).unwrap();
    let asked = FilmFormat {
        audio: Some(true),
        undecodable: UndecodablePolicy::Keep,
        ..ASKED
    };
    assert!(look(&path, &asked).is_ok());
    let be = u32::to_be_bytes;
    // Box, offset in its body, what is written there. The first of its kind is the picture's.
    for (what, kind, at, value) in [
        ("the movie has no time scale", b"mvhd", 12, be(0)),
        ("a track has no time scale", b"mdhd", 12, be(0)),
        ("another length", b"mdhd", 16, be(1 << 24)),
        ("shown at no size", b"tkhd", 76, be(0)),
        ("shown at a nonsense size", b"tkhd", 76, be(u32::MAX)),
        ("an edit of what is not there", b"elst", 12, be(1 << 30)),
        ("an edit that runs back", b"elst", 16, be(0xffff_0000)),
        ("a time that stands still", b"stts", 12, be(0)),
        ("a sync sample that is not there", b"stss", 8, be(9_999)),
        ("a chunk outside of the file", b"stco", 8, be(u32::MAX)),
        ("a sample larger than its chunk", b"stsz", 12, be(1 << 24)),
        ("a sample shown before all others", b"ctts", 12, be(1 << 30)),
    ] {
        let mut bytes = whole.clone();
        let at = body_of(&bytes, kind) + at;
        assert_ne!(bytes[at..at + 4], value, "{what}");
        bytes[at..at + 4].copy_from_slice(&value);
        std::fs::write(&path, &bytes).unwrap();
        let refused = look(&path, &asked);
        assert!(
            matches!(
                refused,
                Err(MediaError::Malformed(_) | MediaError::NotAsAsked(_))
            ),
            "{what}: {refused:?}"
        );
    }
    // The same in the track of sound, which is the last.
    let mut bytes = whole.clone();
    let last = bytes
        .windows(4)
        .rposition(|bytes| bytes == b"stts")
        .unwrap()
        + 4;
    bytes[last + 12..last + 16].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(look(&path, &asked), Err(MediaError::Malformed(_))));
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
