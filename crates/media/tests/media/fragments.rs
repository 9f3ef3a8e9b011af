//! Fragmented films: rewritten with one index, they are the same films to ffmpeg and to the reader; hostile ones are refused.

use std::path::{Path, PathBuf};

use kinora_media::{
    FilmFormat, MediaError, MismatchPolicy, UndecodablePolicy, defragment, examine, probe,
};

use crate::support::{
    decode_frames, decode_sound, decodes_cleanly, ffprobe, read_all, run, top_level_boxes,
};

/// Samples that an AAC encoder puts before the sound.
const PRIMING_MAX: usize = 1024;
/// The rewritten index is at most so much larger than the fragments.
const INDEX_BYTES_MAX: usize = 1 << 20;

/// A film by ffmpeg with these flags of its muxer: B pictures, a key frame every half second, and sound.
fn film(folder: &Path, flags: &str) -> PathBuf {
    let path = folder.join("film.mp4");
    let source = "testsrc2=s=320x192:r=16:d=2";
    let mut arguments = vec!["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=d=2"];
    arguments.extend([
        "-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "8", "-c:a", "aac",
    ]);
    arguments.extend(["-movflags", flags, "-y", "FILE"]);
    run("ffmpeg", &arguments, &path);
    path
}

fn asked() -> FilmFormat {
    FilmFormat {
        width: 320,
        height: 192,
        seconds: Some(2),
        seconds_max: 15,
        audio: Some(true),
        undecodable: UndecodablePolicy::Refuse,
        mismatched: MismatchPolicy::Refuse,
    }
}

#[test]
fn a_fragmented_film_becomes_the_same_film_with_one_index() {
    for flags in [
        "+frag_keyframe+empty_moov",
        "+frag_keyframe+empty_moov+default_base_moof",
        "+frag_keyframe+empty_moov+omit_tfhd_offset",
        "+frag_keyframe+empty_moov+separate_moof",
        "+frag_keyframe",
        "+frag_keyframe+delay_moov",
        "+cmaf",
        "+dash",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = film(folder.path(), flags);
        let boxes = top_level_boxes(&path);
        assert!(boxes.contains(&"moof".to_owned()), "{flags}: {boxes:?}");
        let before = (
            decode_frames(&path, "rgb24"),
            decode_sound(&path),
            ffprobe(&path),
        );
        assert!(defragment(&path).unwrap(), "{flags}");
        assert_eq!(top_level_boxes(&path), ["ftyp", "moov", "mdat"], "{flags}");
        decodes_cleanly(&path);
        assert!(
            decode_frames(&path, "rgb24") == before.0,
            "{flags}: pictures"
        );
        let sound = decode_sound(&path);
        let lengths = (before.1.len(), sound.len());
        // In fragments, ffmpeg plays the encoder's priming, which the edit list takes away.
        let priming = before.1.len().saturating_sub(sound.len());
        let is_same = priming <= PRIMING_MAX && before.1.ends_with(&sound);
        assert!(is_same, "{flags}: sound of {lengths:?}");
        let after = ffprobe(&path);
        for (stream, value) in [
            (0, "nb_read_frames"),
            (1, "nb_read_frames"),
            (0, "start_time"),
            (1, "start_time"),
        ] {
            if stream == 1 && priming > 0 {
                continue;
            }
            // In fragments, ffmpeg reads no edit list: by it, the pictures begin at once.
            if flags == "+cmaf" && value == "start_time" {
                assert_eq!(after["streams"][stream][value], "0.000000", "{flags}");
                continue;
            }
            let [before, after] = [&before.2, &after].map(|probe| &probe["streams"][stream][value]);
            assert_eq!(before, after, "{flags}: {value} of {stream}");
        }
        let info = examine(&path, &asked(), &mut || true).unwrap().info;
        assert_eq!((info.frames, info.has_audio), (32, true), "{flags}");
        assert!(
            (info.duration_seconds - 2.0).abs() < 0.07,
            "{flags}: {info:?}"
        );
        let (frames, error) = read_all(&path);
        assert!(frames.len() == 32 && error.is_none(), "{flags}: {error:?}");
        assert!(!defragment(&path).unwrap(), "{flags}: twice");
    }
}

#[test]
fn a_film_that_begins_late_begins_at_once_and_sound_that_begins_later_than_the_pictures_still_does()
{
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path(), "+frag_keyframe+empty_moov+default_base_moof");
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<_> = all(&bytes, b"tfdt").collect();
    // Pictures and sound in turn; 16 ticks are a frame of 1/16 s at their own time scales.
    for (index, place) in places.into_iter().enumerate() {
        assert_eq!(bytes[place + 4], 1, "its times are wide");
        let time = &mut bytes[place + 8..place + 16];
        let ticks = u64::from_be_bytes((&*time).try_into().unwrap());
        let later = [16_384 * 100, 44_100 * 101][index % 2];
        time.copy_from_slice(&u64::to_be_bytes(ticks + later));
    }
    std::fs::write(&path, bytes).unwrap();
    assert!(defragment(&path).unwrap());
    let probe = ffprobe(&path);
    let start = |stream: usize| {
        let start = probe["streams"][stream]["start_time"].as_str().unwrap();
        start.parse::<f64>().unwrap()
    };
    assert!(start(0).abs() < 0.2, "{}", start(0));
    assert!(
        (start(1) - start(0) - 1.0).abs() < 0.2,
        "{} {}",
        start(0),
        start(1)
    );
}

#[test]
fn other_files_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let whole = film(folder.path(), "+faststart");
    let page = folder.path().join("page.mp4");
    std::fs::write(&page, b"<html>not here</html>").unwrap();
    let empty = folder.path().join("empty.mp4");
    std::fs::write(&empty, b"").unwrap();
    for path in [whole, page, empty] {
        let before = std::fs::read(&path).unwrap();
        assert!(!defragment(&path).unwrap());
        assert!(std::fs::read(&path).unwrap() == before);
    }
}

/// Where boxes of this kind have their kind.
fn all<'a>(bytes: &'a [u8], kind: &'a [u8; 4]) -> impl Iterator<Item = usize> + use<'a> {
    let places = bytes.windows(4).enumerate();
    places
        .filter(move |(_, one)| *one == kind)
        .map(|(at, _)| at)
}

fn fragmented() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path(), "+frag_keyframe+empty_moov+default_base_moof");
    std::fs::read(path).unwrap()
}

/// What comes of a file with these bytes: its length afterwards, or the error. An error leaves it as it was.
fn attempt(bytes: &[u8]) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    std::fs::write(&path, bytes).unwrap();
    let rewritten = defragment(&path);
    let after = std::fs::read(&path).unwrap();
    match rewritten {
        Ok(true) => {
            assert!(after.len() <= bytes.len() + INDEX_BYTES_MAX);
            // Whatever it is: it is read without a panic.
            let _ = probe(&path);
            Ok(after.len())
        }
        Ok(false) => Ok(after.len()),
        Err(error) => {
            assert!(after == bytes, "changed in spite of {error}");
            assert!(matches!(error, MediaError::Malformed(_)), "{error:?}");
            Err(error.to_string())
        }
    }
}

#[test]
fn fragments_that_cannot_be_used_are_refused_with_the_reason() {
    let whole = fragmented();
    let be = u32::to_be_bytes;
    let renamed = |from: &[u8; 4], to: &[u8; 4]| {
        let mut bytes = whole.clone();
        let places: Vec<_> = all(&bytes, from).collect();
        places
            .iter()
            .for_each(|at| bytes[*at..*at + 4].copy_from_slice(to));
        bytes
    };
    let changed = |kind: &[u8; 4], at: usize, value: [u8; 4]| {
        let mut bytes = whole.clone();
        let at = all(&bytes, kind).next().unwrap() + 4 + at;
        bytes[at..at + 4].copy_from_slice(&value);
        bytes
    };
    // The first run of the pictures: flags, number of samples, offset of its data.
    let first_run = all(&whole, b"trun").next().unwrap() + 4;
    let mut twice = whole.clone();
    let second = all(&whole, b"trun").nth(2).unwrap() + 4;
    let (first_moof, second_moof) = {
        let mut moofs = all(&whole, b"moof");
        (moofs.next().unwrap(), moofs.next().unwrap())
    };
    let offset = u32::from_be_bytes(whole[first_run + 8..first_run + 12].try_into().unwrap());
    let back = offset.wrapping_sub((second_moof - first_moof) as u32);
    twice[second + 8..second + 12].copy_from_slice(&be(back));
    // Four billion samples of the default size, which take no bytes of the index.
    let mut billions = changed(b"trun", 0, be(1));
    billions[first_run + 4..first_run + 8].copy_from_slice(&be(u32::MAX));
    for (bytes, reason) in [
        (renamed(b"trun", b"free"), "no samples (no 'trun' boxes)"),
        (renamed(b"mvex", b"free"), "its index announces none"),
        (
            changed(b"tfhd", 4, be(77)),
            "a fragment belongs to no track",
        ),
        (
            changed(b"trun", 8, be(1 << 30)),
            "samples lie outside the media data",
        ),
        (
            changed(b"trun", 8, be(0)),
            "samples lie outside the media data",
        ),
        (twice, "its samples overlap in the file"),
        (billions, "too many samples"),
        (changed(b"mvhd", 12, be(0)), "no time scale"),
        (changed(b"tfdt", 4, be(1 << 30)), "overlap in time"),
        (changed(b"trun", 4, be(1 << 20)), "a box is too short"),
    ] {
        let refused = attempt(&bytes).unwrap_err();
        assert!(refused.contains(reason), "{refused}, not {reason}");
    }
}

#[test]
fn no_absurd_field_of_an_index_is_believed() {
    let whole = fragmented();
    let mdat = all(&whole, b"mdat").next().unwrap();
    for place in 0..mdat {
        for value in [0, 1, 0x7fff_ffff, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[place..place + 4].copy_from_slice(&u32::to_be_bytes(value));
            // An error of reading would fail here, as would a panic.
            let _ = attempt(&bytes);
        }
    }
}

#[test]
fn cut_files_are_refused_or_left() {
    let whole = fragmented();
    for length in (0..whole.len()).step_by(997) {
        let _ = attempt(&whole[..length]);
    }
}

#[test]
fn what_makes_a_file_useless_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        assert!(!defragment(&path).unwrap());
        examine(&path, &asked(), &mut || true)
            .unwrap_err()
            .to_string()
    };
    for (bytes, reason) in [
        (&b""[..], "the file is empty"),
        (b"{\"error\": \"no such video\"}", "it is JSON"),
        (b"<html>not here</html>", "it is HTML or XML"),
        (b"GIF89a and more", "it is a GIF"),
        (b"\x1a\x45\xdf\xa3 and more", "it is WebM or Matroska"),
        (&fragmented_without_beginning(), "without its beginning"),
    ] {
        assert!(said(bytes).contains(reason), "{}", said(bytes));
    }
    let source = "testsrc2=s=320x192:r=16:d=2";
    for (more, reason) in [
        (
            &["-f", "lavfi", "-i", source, "-c:v", "mpeg4"][..],
            "MPEG-4 part 2",
        ),
        (
            &["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"],
            "no picture track",
        ),
    ] {
        let arguments = [more, &["-y", "FILE"]].concat();
        run("ffmpeg", &arguments, &path);
        let said = said(&std::fs::read(&path).unwrap());
        assert!(said.contains(reason), "{said}");
    }
}

fn fragmented_without_beginning() -> Vec<u8> {
    let whole = fragmented();
    let moof = all(&whole, b"moof").next().unwrap();
    whole[moof - 4..].to_vec()
}
