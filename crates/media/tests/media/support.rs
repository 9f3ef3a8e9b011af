//! Synthetic clips and an independent judge: Debian's ffmpeg and ffprobe.
//! The judge is required: a missing ffmpeg fails a test, it never skips one.

use std::path::Path;
use std::process::Command;

use kinora_media::{
    AudioFormat, ClipFormat, MediaError, Recorder, RecorderOptions, Recording, VideoReader,
};
use sha2::{Digest, Sha256};

/// Stereo sound at the only sample rate.
pub(crate) const STEREO: AudioFormat = AudioFormat {
    sample_rate_hz: 48_000,
    channels: 2,
};

/// `[height][width][3] u8`: a moving gradient with a soft moving texture and a bright disc.
pub(crate) fn frame(format: &ClipFormat, index: u32) -> Vec<u8> {
    let (width, height) = (format.width.cast_signed(), format.height.cast_signed());
    let shift = index.cast_signed() * 3;
    let (disc_x, disc_y) = (width / 4 + shift, height / 2);
    let radius = height / 6;
    let across: Vec<f32> = (0..width)
        .map(|x| ((x + shift) as f32 * 0.05).sin())
        .collect();
    let byte = |value: i32| value.clamp(0, 255) as u8;
    let mut rgb = vec![0; format.frame_bytes()];
    for (y, row) in (0..).zip(rgb.chunks_exact_mut(3 * format.width as usize)) {
        let down = ((y - shift) as f32 * 0.04).cos();
        for ((x, pixel), across) in (0..).zip(row.as_chunks_mut().0).zip(&across) {
            let wave = across * down;
            let base = 60 + 120 * x / width + (wave * 24.0) as i32;
            let inside = (x - disc_x).pow(2) + (y - disc_y).pow(2) < radius * radius;
            *pixel = if inside {
                [230, 180, 60]
            } else {
                let green = 200 - 100 * y / height;
                [byte(base), byte(green), byte(140 + (wave * 30.0) as i32)]
            };
        }
    }
    rgb
}

/// Records `frame` for every index, and interleaved `pcm` if the format has sound.
pub(crate) fn record(
    path: &Path,
    format: ClipFormat,
    options: RecorderOptions,
    pcm: &[f32],
    frame: impl Fn(&ClipFormat, u32) -> Vec<u8>,
) -> Recording {
    let mut recorder = Recorder::create(path, format, options).unwrap();
    if format.audio.is_some() {
        recorder.push_audio(pcm).unwrap();
    }
    for index in 0..format.frames {
        recorder.push_frame(&frame(&format, index)).unwrap();
    }
    let (recording, written) = recorder.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    let sha256 = Sha256::digest(&bytes);
    let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written.sha256, sha256);
    recording
}

/// Everything that the reader gives, and the error that ended it.
pub(crate) fn read_all(path: &Path) -> (Vec<Vec<u8>>, Option<MediaError>) {
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

/// Runs one of the two programs and returns its standard output; anything on standard error,
/// or a failure, fails the test.
pub(crate) fn run(program: &str, arguments: &[&str], path: &Path) -> Vec<u8> {
    let arguments = arguments.iter().map(|argument| match *argument {
        "FILE" => path.as_os_str(),
        other => other.as_ref(),
    });
    let output = Command::new(program)
        .args(["-v", "error"])
        .args(arguments)
        .output();
    let output = output.unwrap_or_else(|cause| {
        panic!("{program} cannot be run ({cause}); these tests need it: apt-get install ffmpeg")
    });
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{program}: {complaints}"
    );
    output.stdout
}

/// What ffprobe says about the file.
pub(crate) fn ffprobe(path: &Path) -> serde_json::Value {
    let arguments = [
        "-count_frames",
        "-show_streams",
        "-show_format",
        "-of",
        "json",
        "FILE",
    ];
    serde_json::from_slice(&run("ffprobe", &arguments, path)).unwrap()
}

/// Decodes everything and expects no complaint.
pub(crate) fn decodes_cleanly(path: &Path) {
    run(
        "ffmpeg",
        &["-xerror", "-i", "FILE", "-f", "null", "-"],
        path,
    );
}

/// All frames in a pixel format of ffmpeg, one after the other.
pub(crate) fn decode_frames(path: &Path, pixel_format: &str) -> Vec<u8> {
    let flags = "scale=flags=accurate_rnd+full_chroma_int";
    let arguments = [
        "-i",
        "FILE",
        "-vf",
        flags,
        // Each frame once, also where the first one is late.
        "-fps_mode",
        "passthrough",
        "-f",
        "rawvideo",
        "-pix_fmt",
        pixel_format,
        "-",
    ];
    run("ffmpeg", &arguments, path)
}

/// The sound track mixed to one channel.
pub(crate) fn decode_sound(path: &Path) -> Vec<f32> {
    let bytes = run(
        "ffmpeg",
        &["-i", "FILE", "-vn", "-ac", "1", "-f", "f32le", "-"],
        path,
    );
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|sample| f32::from_le_bytes(*sample))
        .collect()
}

/// The kinds of the file's top-level boxes in order.
pub(crate) fn top_level_boxes(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let (mut kinds, mut position) = (Vec::new(), 0);
    while position < bytes.len() {
        let size = u32::from_be_bytes(bytes[position..position + 4].try_into().unwrap());
        kinds.push(String::from_utf8_lossy(&bytes[position + 4..position + 8]).into_owned());
        position += size as usize;
    }
    kinds
}

/// A format, spelled short.
pub(crate) fn clip(
    width: u32,
    height: u32,
    fps: u32,
    frames: u32,
    audio: Option<AudioFormat>,
) -> ClipFormat {
    ClipFormat {
        width,
        height,
        fps,
        frames,
        audio,
    }
}

/// Two seconds of stereo with a click of 1 ms in the middle of silence.
pub(crate) fn click() -> Vec<f32> {
    let mut pcm = vec![0.0; 2 * 96_000];
    for sample in 0..48 {
        let value = 0.9 * (sample as f32 / 48.0 * std::f32::consts::PI).sin();
        pcm[2 * (48_000 - 24 + sample)] = value;
        pcm[2 * (48_000 - 24 + sample) + 1] = value;
    }
    pcm
}

/// Peak signal-to-noise ratio of 8-bit values in dB; infinite for equal ones.
pub(crate) fn psnr(left: &[u8], right: &[u8]) -> f64 {
    assert_eq!(left.len(), right.len());
    let squares: u64 = left
        .iter()
        .zip(right)
        .map(|(left, right)| u64::from(left.abs_diff(*right)).pow(2))
        .sum();
    10.0 * (255.0 * 255.0 * left.len() as f64 / squares as f64).log10()
}
