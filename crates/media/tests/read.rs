//! Stored videos read back: what was pushed, as ffmpeg sees it, and never a panic.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kinora_media::{MediaError, RecorderOptions, VideoReader, probe};
use support::{STEREO, clip, decode_frames, frame, psnr, record};

/// Everything that the reader gives, or the error that ended it.
fn read_all(path: &Path) -> (Vec<Vec<u8>>, Option<MediaError>) {
    let mut frames = Vec::new();
    let mut reader = match VideoReader::open(path) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(reader.next_frame().is_err(), "a failed reader went on");
                return (frames, Some(error));
            }
        }
        assert!(frames.len() <= reader.info().frames as usize);
    }
}

fn read_clean(path: &Path) -> Vec<Vec<u8>> {
    let (frames, error) = read_all(path);
    assert!(error.is_none(), "after {}: {error:?}", frames.len());
    frames
}

/// ffmpeg's I420 frames converted by the definition (Rec. ITU-T BT.709-6), chroma repeated.
fn ffmpeg_frames(path: &Path, width: usize, height: usize) -> Vec<Vec<u8>> {
    let planes = decode_frames(path, "yuv420p");
    let pixels = width * height;
    let convert = |picture: &[u8]| {
        let mut rgb = Vec::with_capacity(pixels * 3);
        for pixel in 0..pixels {
            let (x, y) = (pixel % width / 2, pixel / width / 2);
            let chroma = pixels + y * (width / 2) + x;
            let luma = (f64::from(picture[pixel]) - 16.0) / 219.0;
            let blue = (f64::from(picture[chroma]) - 128.0) / 224.0;
            let red = (f64::from(picture[chroma + pixels / 4]) - 128.0) / 224.0;
            let green = -(0.0722 * 1.8556 * blue + 0.2126 * 1.5748 * red) / 0.7152;
            rgb.extend(
                [luma + 1.5748 * red, luma + green, luma + 1.8556 * blue]
                    .map(|value| (value * 255.0).round() as u8),
            );
        }
        rgb
    };
    planes.chunks_exact(pixels * 3 / 2).map(convert).collect()
}

#[test]
fn every_frame_comes_back_as_it_was_pushed_and_as_ffmpeg_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let clips = [
        (854, 480, 101, 24),
        (480, 854, 81, 24),
        (1280, 720, 97, 24),
        (640, 360, 90, 18),
        (322, 182, 120, 24),
        (176, 144, 1, 24),
        (16, 16, 3, 24),
    ];
    for (width, height, frames, qp) in clips {
        let audio = (width > height).then_some(STEREO);
        let format = clip(width, height, 24, frames, audio);
        let options = RecorderOptions {
            qp,
            ..RecorderOptions::default()
        };
        let recording = record(&path, format, options, &[], frame);
        let mut reader = VideoReader::open(&path).unwrap();
        assert_eq!(*reader.info(), recording.info);
        let judged = ffmpeg_frames(&path, width as usize, height as usize);
        assert_eq!(judged.len(), frames as usize);
        let (mut worst, mut sum, mut agreed) = (f64::INFINITY, 0.0, f64::INFINITY);
        for (index, judged) in (0..frames).zip(&judged) {
            let rgb = reader.next_frame().unwrap().unwrap();
            let against_pushed = psnr(&rgb, &frame(&format, index));
            let against_ffmpeg = psnr(&rgb, judged);
            // At postage stamp sizes the halved chroma alone costs more.
            let wanted = if width < 320 { 20.0 } else { 35.0 };
            assert!(against_pushed > wanted, "{index}: {against_pushed:.1} dB");
            assert!(against_ffmpeg > 50.0, "{index}: {against_ffmpeg:.1} dB");
            worst = against_pushed.min(worst);
            sum += against_pushed;
            agreed = against_ffmpeg.min(agreed);
        }
        assert!(reader.next_frame().unwrap().is_none());
        assert!(reader.next_frame().unwrap().is_none());
        let mean = sum / f64::from(frames);
        println!(
            "{width}x{height} x{frames} qp {qp}: worst {worst:.1}, mean {mean:.1} dB; \
             against ffmpeg at least {agreed:.1} dB"
        );
    }
}

#[test]
fn colours_survive_to_a_few_levels() {
    const PATCHES: [[u8; 3]; 6] = [
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
        [128, 128, 128],
        [255, 255, 255],
        [128, 64, 200],
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let patches = clip(384, 64, 24, 12, None);
    record(
        &path,
        patches,
        RecorderOptions::default(),
        &[],
        |format, _| {
            let patch = |x: u32| PATCHES[x as usize / 64];
            (0..format.height)
                .flat_map(|_| (0..format.width).flat_map(patch))
                .collect()
        },
    );
    for rgb in read_clean(&path) {
        for (patch, wanted) in PATCHES.iter().enumerate() {
            let centre = (32 * 384 + patch * 64 + 32) * 3;
            let got = &rgb[centre..centre + 3];
            let far = wanted.iter().zip(got).any(|(w, g)| w.abs_diff(*g) > 3);
            assert!(!far, "{wanted:?} came back as {got:?}");
        }
    }
}

/// A clip made by ffmpeg; its frames are numbered pictures.
fn foreign(folder: &Path, source: &str, codec: &[&str]) -> PathBuf {
    let path = folder.join("foreign.mp4");
    let arguments = [&["-f", "lavfi", "-i", source][..], codec, &["-y", "FILE"]].concat();
    support::run("ffmpeg", &arguments, &path);
    path
}

#[test]
fn b_pictures_of_x264_come_in_presentation_order() {
    let folder = tempfile::tempdir().unwrap();
    let x264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p"];
    let variants: [&[&str]; 5] = [
        &["-preset", "veryfast"],
        &["-preset", "medium", "-bf", "3", "-b_strategy", "0"],
        &["-preset", "slower", "-bf", "8", "-g", "24"],
        &["-profile:v", "main", "-x264-params", "open-gop=1:keyint=20"],
        &["-profile:v", "baseline"],
    ];
    for variant in variants {
        let codec = [&x264[..], variant].concat();
        let path = foreign(folder.path(), "testsrc2=s=322x182:r=25:d=4", &codec);
        let (frames, error) = read_all(&path);
        assert!(error.is_none(), "{variant:?}: {error:?}");
        let judged = ffmpeg_frames(&path, 322, 182);
        assert_eq!(frames.len(), 100);
        for (index, (rgb, judged)) in frames.iter().zip(&judged).enumerate() {
            let agreed = psnr(rgb, judged);
            assert!(agreed > 50.0, "{variant:?} frame {index}: {agreed:.1} dB");
        }
    }
}

#[test]
fn foreign_colour_tags_are_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let x264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-qp", "10"];
    let tagged = |space, range, filter| {
        let tags = ["-colorspace", space, "-color_primaries", "bt709"];
        let rest = ["-color_trc", "bt709", "-color_range", range, "-vf", filter];
        [&x264[..], &tags, &rest].concat()
    };
    let codecs = [
        tagged("smpte170m", "tv", "scale=out_color_matrix=bt601"),
        tagged("bt709", "tv", "scale=out_color_matrix=bt709"),
        tagged("bt709", "pc", "scale=out_color_matrix=bt709:out_range=full"),
    ];
    for codec in &codecs {
        let path = foreign(folder.path(), "color=c=0xC83C14:s=64x64:d=0.2", codec);
        for rgb in read_clean(&path) {
            let got = &rgb[(32 * 64 + 32) * 3..][..3];
            let far = [0xC8, 0x3C, 0x14]
                .iter()
                .zip(got)
                .any(|(w, g)| g.abs_diff(*w) > 3);
            assert!(!far, "{codec:?}: {got:?}");
        }
    }
}

#[test]
fn what_cannot_be_shown_rightly_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |codec: &[&str]| {
        let path = foreign(folder.path(), "testsrc=s=320x180:r=25:d=1", codec);
        let (frames, error) = read_all(&path);
        assert!(
            frames.is_empty() && error.is_some(),
            "{codec:?}: {}",
            frames.len()
        );
    };
    refused(&["-c:v", "libx264", "-pix_fmt", "yuv444p"]);
    refused(&["-c:v", "libx264", "-pix_fmt", "yuv420p10le"]);
    refused(&["-c:v", "libx264", "-pix_fmt", "yuv420p", "-flags", "+ildct"]);
    refused(&["-c:v", "mpeg4"]);
}

/// A small clip without sound, made once.
fn sample() -> &'static [u8] {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.mp4");
        let format = clip(160, 90, 24, 60, None);
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
    assert!(frames.len() <= 60, "{what}");
    let panicked = |error: &MediaError| error.to_string().contains("panicked");
    assert!(!error.as_ref().is_some_and(panicked), "{what}");
    assert!(
        frames.iter().all(|rgb| rgb.len() == 160 * 90 * 3),
        "{what}: a frame has another size"
    );
    assert!(
        error.is_some() || frames.len() == 60,
        "{what}: {} frames and no error",
        frames.len()
    );
    error.is_none()
}

#[test]
fn mutated_files_give_errors_or_frames_but_never_more() {
    let media = position(sample(), b"mdat") + 4;
    let avcc = position(sample(), b"avcC");
    // Everything, the index, the parameter sets, the pictures.
    let ranges = [
        (0, sample().len(), 200),
        (0, media, 300),
        (avcc, avcc + 60, 300),
        (media, sample().len(), 400),
    ];
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (from, to, cases) in ranges {
        let mut whole = 0;
        for case in 0..cases {
            let mut bytes = sample().to_vec();
            for _ in 0..=next(4) {
                let place = from + next(to - from);
                match next(3) {
                    0 => bytes[place] ^= 1 << next(8),
                    1 => bytes[place] = next(256) as u8,
                    _ => bytes[place] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                }
            }
            whole += usize::from(check_damaged(
                &bytes,
                &format!("case {case} of {from}..{to}"),
            ));
        }
        println!("{from}..{to}: {whole} of {cases} mutated files are read to their end");
    }
}

#[test]
fn truncated_files_are_errors() {
    let bytes = sample();
    for length in (0..bytes.len()).step_by(331) {
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

#[test]
fn a_reader_can_be_handed_to_another_thread() {
    fn sendable<T: Send + 'static>() {}
    sendable::<VideoReader>();
}
