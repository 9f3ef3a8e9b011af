//! The probe against damaged, hostile and foreign files, and the comparison with a format.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::OnceLock;

use crate::support::{STEREO, frame, record};
use kinora_media::{
    ClipFormat, FormatMismatch, MediaError, ProbeInfo, RecorderOptions, check, probe,
};
use proptest::prelude::*;

const FORMAT: ClipFormat = ClipFormat {
    width: 160,
    height: 90,
    fps: 24,
    frames: 30,
    audio: Some(STEREO),
};

/// A small clip with sound, made once.
fn sample() -> &'static [u8] {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.mp4");
        record(&path, FORMAT, RecorderOptions::default(), &[], frame);
        std::fs::read(path).unwrap()
    })
}

fn probe_bytes(bytes: &[u8]) -> Result<ProbeInfo, MediaError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    probe(file.path())
}

/// The bytes before the media data: the only ones that the probe reads.
fn index_bytes() -> usize {
    let position = sample()
        .windows(4)
        .position(|kind| kind == b"mdat")
        .unwrap();
    position + 4
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_mutation_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = sample().to_vec();
        for (position, value) in changes {
            bytes[position.index(index_bytes())] = value;
        }
        if let Ok(info) = probe_bytes(&bytes) {
            prop_assert!(info.frames > 0 && info.fps.is_finite() && info.duration_seconds > 0.0);
        }
    }

    #[test]
    fn no_absurd_field_makes_it_panic(
        position in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![0, 1, 7, 0x7fff_ffff, 0x8000_0000, u32::MAX]),
    ) {
        let mut bytes = sample().to_vec();
        let position = position.index(index_bytes() - 4);
        bytes[position..position + 4].copy_from_slice(&u32::to_be_bytes(value));
        let _ = probe_bytes(&bytes);
    }

    #[test]
    fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(probe_bytes(&bytes).is_err());
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample();
    for length in (0..bytes.len())
        .step_by(97)
        .chain(bytes.len() - 40..bytes.len())
    {
        assert!(
            probe_bytes(&bytes[..length]).is_err(),
            "cut to {length} of {}",
            bytes.len()
        );
    }
    assert!(probe_bytes(bytes).is_ok());
}

#[test]
fn a_giant_index_is_refused_unread() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[0, 0, 0, 8]).unwrap();
    file.write_all(b"ftyp").unwrap();
    file.write_all(&0xf000_0000_u32.to_be_bytes()).unwrap();
    file.write_all(b"moov").unwrap();
    file.as_file().set_len(8 + 0xf000_0000).unwrap();
    assert!(matches!(
        probe(file.path()),
        Err(MediaError::Malformed("its index is too large"))
    ));
}

#[test]
fn samples_must_lie_in_the_media_data() {
    let mut bytes = sample().to_vec();
    let stco = bytes.windows(4).position(|kind| kind == b"stco").unwrap() + 12;
    bytes[stco..stco + 4].copy_from_slice(&64_u32.to_be_bytes());
    let outcome = probe_bytes(&bytes);
    assert!(matches!(
        outcome,
        Err(MediaError::Malformed("samples lie outside the media data"))
    ));
}

#[test]
fn ffmpeg_s_own_files_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, codec: &[&str]| {
        let path = folder.path().join(name);
        let source = ["-f", "lavfi", "-i", "testsrc=s=322x182:r=25:d=2"];
        let sound = ["-f", "lavfi", "-i", "sine=d=2"];
        let arguments = [&source[..], &sound, codec, &["-y", "FILE"]].concat();
        crate::support::run("ffmpeg", &arguments, &path);
        path
    };
    let x264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-shortest"];
    let fast_start = [&x264[..], &["-movflags", "faststart"]].concat();
    let fragmented = [&x264[..], &["-movflags", "frag_keyframe+empty_moov"]].concat();
    for (name, codec) in [("plain.mp4", &x264[..]), ("fast.mp4", &fast_start)] {
        let info = probe(&make(name, codec)).unwrap();
        let format = ClipFormat {
            width: 322,
            height: 182,
            fps: 25,
            frames: 50,
            audio: Some(STEREO),
        };
        assert_eq!(check(&info, &format), Ok(()));
    }
    assert!(probe(&make("fragmented.mp4", &fragmented)).is_err());
    assert!(probe(&make("old.mp4", &["-c:v", "mpeg4"])).is_err());
    assert!(probe(&make("clip.webm", &["-c:v", "libvpx", "-c:a", "libopus"])).is_err());
}

#[test]
fn appended_bytes_are_an_error_unless_they_are_a_box() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let append = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, sample()).unwrap();
        let mut file = File::options().write(true).open(path).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(bytes).unwrap();
    };
    append(&path, b"\0\0\0\x08free");
    assert!(probe(&path).is_ok());
    append(&path, b"garbage");
    assert!(probe(&path).is_err());
}

#[test]
fn check_names_each_difference() {
    let info = probe_bytes(sample()).unwrap();
    assert_eq!(check(&info, &FORMAT), Ok(()));
    let against = |format: ClipFormat| check(&info, &format).unwrap_err();
    assert!(matches!(
        against(ClipFormat {
            width: 162,
            ..FORMAT
        }),
        FormatMismatch::Size { .. }
    ));
    assert!(matches!(
        against(ClipFormat {
            height: 92,
            ..FORMAT
        }),
        FormatMismatch::Size { .. }
    ));
    assert!(matches!(
        against(ClipFormat {
            frames: 31,
            ..FORMAT
        }),
        FormatMismatch::Frames { .. }
    ));
    assert!(matches!(
        against(ClipFormat { fps: 25, ..FORMAT }),
        FormatMismatch::Fps { .. }
    ));
    assert!(matches!(
        against(ClipFormat {
            audio: None,
            ..FORMAT
        }),
        FormatMismatch::Audio { .. }
    ));
    for duration_seconds in [1.0, 1.5, f64::NAN] {
        let info = ProbeInfo {
            duration_seconds,
            ..info
        };
        assert!(matches!(
            check(&info, &FORMAT),
            Err(FormatMismatch::Duration { .. })
        ));
    }
    let info = ProbeInfo {
        file_bytes: 0,
        ..info
    };
    assert_eq!(check(&info, &FORMAT), Err(FormatMismatch::Empty));
}
