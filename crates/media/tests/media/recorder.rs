//! The recorder as a contract: same input same bytes, bounded sizes, nothing left behind, and
//! refusals that say why.

use crate::support::{STEREO, click, clip, decodes_cleanly, frame, record};
use kinora_media::{AudioFormat, ClipFormat, MediaError, Recorder, RecorderOptions};

#[test]
fn sound_may_come_in_any_chunks_before_or_after_the_frames() {
    let folder = tempfile::tempdir().unwrap();
    let format = clip(320, 180, 24, 48, Some(STEREO));
    let mut too_long = click();
    too_long.extend([0.5; 2000]);
    let mut files = Vec::new();
    for chunk in [2, 1_534, too_long.len()] {
        let path = folder.path().join("clip.mp4");
        let mut recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
        let mut chunks = too_long.chunks(chunk);
        for index in 0..format.frames {
            recorder.push_frame(&frame(&format, index)).unwrap();
            if index % 2 == 0
                && let Some(chunk) = chunks.next()
            {
                recorder.push_audio(chunk).unwrap();
            }
        }
        chunks.for_each(|chunk| recorder.push_audio(chunk).unwrap());
        recorder.finish().unwrap();
        files.push(std::fs::read(path).unwrap());
    }
    assert!(files[0] == files[1] && files[1] == files[2]);
}

#[test]
fn a_preview_is_a_small_webp_of_any_shape_and_nothing_else_is_one() {
    // The frame's header in a lossy WebP (RFC 9649, 2.5): two sides of 14 bits.
    let sides = |webp: &[u8]| {
        assert_eq!((&webp[..4], &webp[8..16]), (&b"RIFF"[..], &b"WEBPVP8 "[..]));
        let side = |at: usize| u16::from_le_bytes([webp[at], webp[at + 1]]) & 0x3fff;
        (side(26), side(28))
    };
    for (width, height, shown) in [
        (1, 1, (1, 1)),
        (60, 34, (60, 34)),
        (1920, 1080, (320, 180)),
        (333, 999, (107, 320)),
        (100_000, 1, (320, 1)),
    ] {
        let rgb = vec![120; width * height * 3];
        let webp = kinora_media::preview(width as u32, height as u32, &rgb).unwrap();
        assert_eq!(sides(&webp), shown);
    }
    for (width, height, bytes) in [
        (0, 0, 0),
        (0, 9, 0),
        (2, 2, 11),
        (2, 2, 13),
        (u32::MAX, u32::MAX, 3),
    ] {
        let refused = kinora_media::preview(width, height, &vec![0; bytes]);
        assert!(matches!(refused, Err(MediaError::Picture(_))));
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let format = clip(480, 270, 24, 150, Some(STEREO));
    let results = [1, 3].map(|encoder_threads| {
        let path = folder.path().join(format!("{encoder_threads}.mp4"));
        let options = RecorderOptions {
            encoder_threads,
            ..RecorderOptions::default()
        };
        let recording = record(&path, format, options, &click(), frame);
        decodes_cleanly(&path);
        (
            std::fs::read(path).unwrap(),
            recording.poster_webp,
            recording.spritesheet_jpeg,
            recording.first_frame_jpeg,
            recording.last_frame_jpeg,
        )
    });
    assert!(results[0] == results[1]);
}

#[test]
fn noise_cannot_balloon_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let format = clip(640, 360, 24, 72, None);
    let info = record(
        &path,
        format,
        RecorderOptions::default(),
        &[],
        |format, index| {
            let mut state = index.wrapping_mul(2_654_435_761) | 1;
            let mut rgb = frame(format, index);
            for value in &mut rgb {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *value = value.saturating_add((state >> 27) as u8);
            }
            rgb
        },
    )
    .info;
    decodes_cleanly(&path);
    let bits = info.file_bytes as f64 * 8.0;
    let bits_per_pixel = bits / f64::from(format.width * format.height * format.frames);
    assert!(
        (0.1..0.33).contains(&bits_per_pixel),
        "{bits_per_pixel} bits per pixel"
    );
}

#[test]
fn a_dropped_recorder_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let format = clip(320, 180, 24, 100, Some(STEREO));
    let path = folder.path().join("clip.mp4");
    for frames in [0, 1, 60] {
        let mut recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
        for index in 0..frames {
            recorder.push_frame(&frame(&format, index)).unwrap();
        }
        drop(recorder);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn wrong_lengths_and_counts_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let format = clip(320, 180, 24, 2, None);
    let path = folder.path().join("clip.mp4");
    let create = || Recorder::create(&path, format, RecorderOptions::default()).unwrap();
    let rgb = frame(&format, 0);

    let mut recorder = create();
    for wrong in [&rgb[1..], &[rgb.as_slice(), &[0]].concat(), &[]] {
        let error = recorder.push_frame(wrong).unwrap_err();
        assert!(matches!(
            error,
            MediaError::FrameLength {
                expected: 172_800,
                ..
            }
        ));
    }
    assert!(matches!(
        recorder.push_audio(&[0.0; 2]),
        Err(MediaError::InvalidAudio(_))
    ));
    recorder.push_frame(&rgb).unwrap();
    let error = recorder.finish().unwrap_err();
    assert!(matches!(
        error,
        MediaError::FrameCount {
            expected: 2,
            actual: 1
        }
    ));
    assert!(!path.exists());

    let mut recorder = create();
    recorder.push_frame(&rgb).unwrap();
    recorder.push_frame(&rgb).unwrap();
    let error = recorder.push_frame(&rgb).unwrap_err();
    assert!(matches!(
        error,
        MediaError::FrameCount {
            expected: 2,
            actual: 3
        }
    ));
    assert_eq!(recorder.finish().unwrap().0.info.frames, 2);
}

#[test]
fn unusable_formats_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let good = clip(320, 180, 24, 2, Some(STEREO));
    let wrong = [
        ClipFormat { width: 321, ..good },
        ClipFormat { height: 14, ..good },
        ClipFormat {
            width: 4096,
            height: 4096,
            ..good
        },
        ClipFormat { fps: 0, ..good },
        ClipFormat { fps: 121, ..good },
        ClipFormat { frames: 0, ..good },
        ClipFormat {
            audio: Some(AudioFormat {
                sample_rate_hz: 44_100,
                channels: 2,
            }),
            ..good
        },
        ClipFormat {
            audio: Some(AudioFormat {
                sample_rate_hz: 48_000,
                channels: 6,
            }),
            ..good
        },
    ];
    for format in wrong {
        let path = folder.path().join("clip.mp4");
        let outcome = Recorder::create(&path, format, RecorderOptions::default());
        assert!(
            matches!(outcome, Err(MediaError::InvalidFormat(_))),
            "{format:?}"
        );
    }
}
