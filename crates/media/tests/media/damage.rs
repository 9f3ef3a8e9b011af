//! The reader against damaged, lying and cut files: an error or frames, never more than stated,
//! and never a panic.

use std::cell::Cell;
use std::io::Write;
use std::sync::OnceLock;

use crate::support::{clip, frame, read_all, record};
use kinora_media::{MediaError, RecorderOptions, VideoReader, probe};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A small clip of two closed runs without sound, made once.
fn sample() -> &'static [u8] {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.mp4");
        let format = clip(160, 90, 12, 30, None);
        record(&path, format, RecorderOptions::default(), &[], frame);
        std::fs::read(path).unwrap()
    })
}

fn read_bytes(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<MediaError>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read_all(file.path())
}

fn position(bytes: &[u8], kind: &[u8; 4]) -> usize {
    bytes.windows(4).position(|bytes| bytes == kind).unwrap()
}

/// What came of a damaged file: frames as large and at most as many as stated, and no panic, not
/// even a caught one.
fn check_damaged(bytes: &[u8], what: &str) -> bool {
    let (frames, error) = read_bytes(bytes);
    assert!(frames.len() <= 30, "{what}");
    let panicked = |error: &MediaError| error.to_string().contains("panicked");
    assert!(!error.as_ref().is_some_and(panicked), "{what}");
    assert!(
        frames.iter().all(|rgb| rgb.len() == 160 * 90 * 3),
        "{what}: a frame has another size"
    );
    assert!(
        error.is_some() || frames.len() == 30,
        "{what}: {} frames and no error",
        frames.len()
    );
    error.is_none()
}

/// What happens to a file at one place.
#[derive(Debug, Clone)]
enum Change {
    Flip(u8),
    Byte(u8),
    Field(u32),
    /// So many bytes from elsewhere.
    Copy(Index, usize),
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let fields = vec![0, 1, 7, 1 << 20, 0x7fff_ffff, 0x8000_0000, u32::MAX];
        prop_oneof![
            (0..8_u8).prop_map(Self::Flip),
            any::<u8>().prop_map(Self::Byte),
            prop::sample::select(fields).prop_map(Self::Field),
            (any::<Index>(), 1..64_usize).prop_map(|(from, bytes)| Self::Copy(from, bytes)),
        ]
    }

    fn apply(&self, bytes: &mut [u8], place: usize) {
        let rest = bytes.len() - place;
        match self {
            Self::Flip(bit) => bytes[place] ^= 1 << bit,
            Self::Byte(value) => bytes[place] = *value,
            Self::Field(value) => {
                let count = rest.min(4);
                bytes[place..place + count].copy_from_slice(&value.to_be_bytes()[..count]);
            }
            Self::Copy(from, count) => {
                let count = rest.min(*count);
                let from = from.index(bytes.len() - count);
                bytes.copy_within(from..from + count, place);
            }
        }
    }
}

/// The same cases every time; `PROPTEST_CASES=5000` makes a longer round.
#[test]
fn mutated_files_give_errors_or_frames_but_never_more() {
    let media = position(sample(), b"mdat") + 4;
    let avcc = position(sample(), b"avcC");
    // Everything, the index, the parameter sets, the pictures.
    let ranges = [
        (0, sample().len()),
        (0, media),
        (avcc, avcc + 60),
        (media, sample().len()),
    ];
    for (from, to) in ranges {
        let config = Config {
            failure_persistence: None,
            ..Config::default()
        };
        let (cases, rng) = (
            config.cases,
            TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        );
        let whole = Cell::new(0);
        let changes = prop::collection::vec((any::<Index>(), Change::any()), 1..6);
        let outcome = TestRunner::new_with_rng(config, rng).run(&changes, |changes| {
            let mut bytes = sample().to_vec();
            for (place, change) in &changes {
                change.apply(&mut bytes, from + place.index(to - from));
            }
            let read = check_damaged(&bytes, &format!("{from}..{to}"));
            whole.set(whole.get() + u32::from(read));
            Ok(())
        });
        assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        let whole = whole.get();
        println!("{from}..{to}: {whole} of {cases} mutated files are read to their end");
    }
}

#[test]
fn no_absurd_field_of_the_index_is_believed() {
    let media = position(sample(), b"mdat") + 4;
    for place in 0..media - 3 {
        for value in [0, 0x7fff_ffff, u32::MAX] {
            let mut bytes = sample().to_vec();
            bytes[place..place + 4].copy_from_slice(&u32::to_be_bytes(value));
            check_damaged(&bytes, &format!("{value:#x} at {place}"));
        }
    }
}

/// A sample's size in the index set to another.
fn with_sample_size(sample_index: usize, size: u32) -> Vec<u8> {
    let mut bytes = sample().to_vec();
    let place = position(&bytes, b"stsz") + 4 + 12 + sample_index * 4;
    bytes[place..place + 4].copy_from_slice(&size.to_be_bytes());
    bytes
}

#[test]
fn empty_samples_and_samples_without_a_picture_are_errors() {
    // Up to 4 bytes, a sample is a length and nothing behind it.
    for size in 0..=5 {
        let (frames, error) = read_bytes(&with_sample_size(15, size));
        assert_eq!(frames.len(), 15, "{size} bytes");
        assert!(matches!(error, Some(MediaError::Malformed(_))), "{error:?}");
    }
}

#[test]
fn billions_of_stated_samples_are_refused_before_anything_is_allocated() {
    let mut bytes = sample().to_vec();
    let (stsz, stts) = (position(&bytes, b"stsz"), position(&bytes, b"stts"));
    let stsc = position(&bytes, b"stsc");
    // All of one byte, in one chunk of four billion: a table of a few bytes could say it.
    bytes[stsz + 8..stsz + 12].copy_from_slice(&1_u32.to_be_bytes());
    for place in [stsz + 12, stts + 12, stsc + 16] {
        bytes[place..place + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    }
    let (frames, error) = read_bytes(&bytes);
    assert!(frames.is_empty());
    assert!(matches!(error, Some(MediaError::Malformed(_))), "{error:?}");
}

#[test]
fn truncated_files_are_errors() {
    let bytes = sample();
    for length in (0..bytes.len()).step_by(173) {
        let (frames, error) = read_bytes(&bytes[..length]);
        assert!(frames.is_empty() && error.is_some(), "cut to {length}");
    }
}

#[test]
fn a_file_cut_while_it_is_read_is_an_error() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(sample()).unwrap();
    let mut reader = VideoReader::open(file.path()).unwrap();
    assert!(reader.next_frame().unwrap().is_some());
    let media = position(sample(), b"mdat") as u64;
    file.as_file().set_len(media + 64).unwrap();
    let error = loop {
        match reader.next_frame() {
            Ok(frame) => assert!(frame.is_some(), "the end came without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, MediaError::Io(_)));
    assert!(reader.next_frame().is_err());
}

#[test]
fn pictures_of_another_size_than_stated_are_refused_unread() {
    let mut bytes = sample().to_vec();
    // `stsd` is followed by its version, its count and the entry's size and kind.
    let width = position(&bytes, b"stsd") + 4 + 16 + 24;
    assert_eq!(bytes[width..width + 2], 160_u16.to_be_bytes());
    bytes[width + 1] -= 2;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    assert_eq!(probe(file.path()).unwrap().width, 158);
    assert!(matches!(
        VideoReader::open(file.path()),
        Err(MediaError::Malformed(
            "its pictures differ from their index"
        ))
    ));
}
