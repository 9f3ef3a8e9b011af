//! What a file really is, as FFmpeg sees it: a second opinion that shares no code with us.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What `ffprobe` says of a file.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its one video stream.
    pub video: Value,
    /// Its sound stream, if any.
    pub audio: Option<Value>,
    /// The container.
    pub format: Value,
}

/// Files that one start of the decoder takes.
const DECODED_AT_ONCE: usize = 16;

fn output(program: &str, arguments: &[&str], path: &Path) -> (String, String) {
    let output = Command::new(program)
        .args(arguments)
        .arg(path)
        .output()
        .unwrap_or_else(|error| {
            panic!("{program} is needed and could not be run ({error}); ./test installs it")
        });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed: {err}"
    );
    (out, err)
}

/// Looks into a video file. Every frame is counted by decoding it; panics when the decoder complains of anything.
pub fn probe(path: &Path) -> Probe {
    let show = [
        "-v",
        "error",
        "-count_frames",
        "-show_streams",
        "-show_format",
        "-of",
        "json",
    ];
    let (out, err) = output("ffprobe", &show, path);
    assert_eq!(err, "", "ffprobe complains of {}", path.display());
    let found: Value = serde_json::from_str(&out).unwrap();
    let streams = found["streams"].as_array().unwrap();
    let of = |kind: &str| -> Vec<Value> {
        let same = |stream: &&Value| stream["codec_type"] == kind;
        streams.iter().filter(same).cloned().collect()
    };
    let (mut video, mut audio) = (of("video"), of("audio"));
    assert!(
        video.len() == 1 && audio.len() <= 1 && streams.len() <= 2,
        "{found:#}"
    );
    Probe {
        video: video.remove(0),
        audio: audio.pop(),
        format: found["format"].clone(),
    }
}

/// Decodes all of a file; panics when the decoder complains of anything. Returns the number of frames.
pub fn assert_decodes(path: &Path) -> u64 {
    let progress = decoded(&[path]);
    let mut counts = progress
        .lines()
        .filter_map(|line| line.strip_prefix("frame="));
    counts.next_back().unwrap().trim().parse().unwrap()
}

/// The same of many files, in few starts of the decoder, each of which takes longer than a short video.
pub fn assert_all_decode(paths: &[&Path]) {
    for some in paths.chunks(DECODED_AT_ONCE) {
        decoded(some);
    }
}

/// What FFmpeg says of its progress while it decodes all of these files.
fn decoded(paths: &[&Path]) -> String {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-xerror"]);
    for path in paths {
        command.arg("-i").arg(path);
    }
    command.args(["-progress", "-"]);
    for number in 0..paths.len() {
        // Each frame as it is.
        let to = ["-fps_mode", "passthrough", "-f", "null", "-"];
        command.arg("-map").arg(number.to_string()).args(to);
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("ffmpeg is needed ({error}); ./test installs it"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{paths:?}: {complaints}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What ExifTool reads of a file's XMP, by group and name: `XMP-xmp:CreatorTool`.
pub fn xmp(path: &Path) -> Value {
    let asked = [
        "-json", "-n", "-G1", "-struct", "-XMP:all", "-Warning", "-Error",
    ];
    let (out, _) = output("exiftool", &asked, path);
    let mut found: Value = serde_json::from_str(&out).unwrap();
    let found = found[0].take();
    for complaint in ["ExifTool:Warning", "ExifTool:Error"] {
        assert!(found[complaint].is_null(), "{found:#}");
    }
    found
}

/// The bytes of an MP4 that do not tell of its origin: the boxes before those of metadata.
pub fn without_provenance(mp4: &[u8]) -> &[u8] {
    let boxes = boxes(mp4);
    let told = boxes
        .iter()
        .take_while(|(kind, _)| kind != "uuid" && kind != "free");
    &mp4[..told.map(|(_, size)| size).sum()]
}

/// The types of the boxes at the top of an MP4, in order.
pub fn top_boxes(mp4: &[u8]) -> Vec<String> {
    boxes(mp4).into_iter().map(|(kind, _)| kind).collect()
}

/// The types and sizes of the boxes at the top of an MP4 (ISO/IEC 14496-12, section 4.2), in order.
fn boxes(mp4: &[u8]) -> Vec<(String, usize)> {
    let mut types = Vec::new();
    let mut rest = mp4;
    while !rest.is_empty() {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        let size = match word(0) {
            0 => rest.len(),
            1 => (u64::from(word(8)) << 32 | u64::from(word(12))) as usize,
            size => size as usize,
        };
        types.push((String::from_utf8_lossy(&rest[4..8]).into_owned(), size));
        assert!(
            size >= 8 && size <= rest.len(),
            "a box of {size} bytes: {types:?}"
        );
        rest = &rest[size..];
    }
    types
}

/// Width and height of a picture file.
pub fn picture_size(path: &Path) -> (u64, u64) {
    let show = ["-v", "error", "-show_streams", "-of", "json"];
    let (out, _) = output("ffprobe", &show, path);
    let found: Value = serde_json::from_str(&out).unwrap();
    let stream = &found["streams"][0];
    (
        stream["width"].as_u64().unwrap(),
        stream["height"].as_u64().unwrap(),
    )
}
