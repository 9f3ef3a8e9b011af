//! Labels of origin, judged by ExifTool and ffmpeg: in recorded files, and in films that were made elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_media::{
    DigitalSource, FilmFormat, MediaError, MismatchPolicy, ParentVideo, Provenance, Recorder,
    RecorderOptions, Recording, UndecodablePolicy, examine, label,
};
use serde_json::Value;

use crate::support::{clip, decodes_cleanly, ffprobe, frame, run, top_level_boxes};

/// Texts that end an attribute, an element, a packet, or what XML can hold.
const HOSTILE: &str = "m\"/><x:y z='&amp;'>\n</rdf:RDF><?xpacket end='w'?>\u{0}\u{fffe}ü漢🎬]]>";

fn provenance() -> Provenance {
    Provenance {
        source: DigitalSource::CompositeWithTrainedAlgorithmicMedia,
        tool: "Kinora 1.2".to_owned(),
        created: "2026-11-22T03:45:01Z".to_owned(),
        model: HOSTILE.to_owned(),
        engine: "house/7".to_owned(),
        id: "video_1".to_owned(),
        derived_from: Some(ParentVideo::Edited("video_0".to_owned())),
    }
}

/// Asserts that ExifTool finds the label in the file and has nothing to complain of.
fn is_labelled(path: &Path) {
    let mut command = Command::new("exiftool");
    command.args(["-json", "-n", "-G1", "-struct", "-a", "-validate"]);
    let output = command
        .args(["-XMP:all", "-Warning", "-Error"])
        .arg(path)
        .output();
    let output = output.unwrap_or_else(|cause| {
        panic!("exiftool cannot be run ({cause}): apt-get install libimage-exiftool-perl")
    });
    let mut found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = found[0].take();
    assert!(
        found["ExifTool:Warning"].is_null() && found["ExifTool:Error"].is_null(),
        "{found:#}"
    );
    let source =
        "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia";
    let model = HOSTILE.replace(['\0', '\u{fffe}'], "\u{fffd}");
    for (name, expected) in [
        ("XMP-iptcExt:DigitalSourceType", source),
        ("XMP-iptcExt:AISystemUsed", &model),
        ("XMP-iptcExt:AISystemVersionUsed", "house/7"),
        ("XMP-xmp:CreatorTool", "Kinora 1.2"),
        ("XMP-xmp:CreateDate", "2026:11:22 03:45:01Z"),
        ("XMP-dc:Identifier", "video_1"),
        ("XMP-xmpMM:DocumentID", "xmp.did:video_1"),
        ("XMP-kinora:Model", &model),
    ] {
        assert_eq!(found[name], expected, "{name}: {found:#}");
    }
    let source = &found["XMP-xmpMM:DerivedFrom"]["DocumentID"];
    assert_eq!(source, "xmp.did:video_0", "{found:#}");
}

fn are_labelled(folder: &Path, recording: &Recording) {
    let (first, last) = (&recording.first_frame_jpeg, &recording.last_frame_jpeg);
    for (name, bytes, codec) in [
        ("poster.webp", &recording.poster_webp, "webp"),
        ("sheet.jpg", &recording.spritesheet_jpeg, "mjpeg"),
        ("first.jpg", first.as_ref().unwrap(), "mjpeg"),
        ("last.jpg", last.as_ref().unwrap(), "mjpeg"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        is_labelled(&path);
        assert_eq!(ffprobe(&path)["streams"][0]["codec_name"], codec);
    }
}

#[test]
fn a_recorded_file_and_its_stills_say_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let format = clip(322, 194, 24, 30, None);
    let record = |name: &str, provenance: Option<Provenance>| {
        let path = folder.path().join(name);
        let mut recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
        if let Some(provenance) = provenance {
            recorder = recorder.with_provenance(provenance);
        }
        for index in 0..format.frames {
            recorder.push_frame(&frame(&format, index)).unwrap();
        }
        let (recording, written) = recorder.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            (written.bytes, recording.info.file_bytes),
            (bytes.len() as u64, written.bytes)
        );
        (path, recording, bytes)
    };
    let (path, recording, labelled) = record("labelled.mp4", Some(provenance()));
    assert_eq!(top_level_boxes(&path), ["ftyp", "moov", "mdat", "uuid"]);
    decodes_cleanly(&path);
    is_labelled(&path);
    are_labelled(folder.path(), &recording);
    let (_, _, plain) = record("plain.mp4", None);
    assert!(labelled.starts_with(&plain));
}

const ASKED: FilmFormat = FilmFormat {
    width: 320,
    height: 192,
    seconds: Some(2),
    seconds_max: 15,
    audio: Some(false),
    undecodable: UndecodablePolicy::Refuse,
    mismatched: MismatchPolicy::Refuse,
};

/// A film made by ffmpeg, without the word that ffmpeg writes about it.
fn film(folder: &Path) -> (PathBuf, Vec<u8>) {
    let (path, mut bytes) = film_with(folder, &[]);
    let kind = bytes.windows(4).position(|four| four == b"udta").unwrap();
    let size = u32::from_be_bytes(bytes[kind - 4..kind].try_into().unwrap());
    bytes[kind..kind + 4].copy_from_slice(b"free");
    bytes[kind + 4..kind - 4 + size as usize].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

/// A film made by ffmpeg with these options.
fn film_with(folder: &Path, options: &[&str]) -> (PathBuf, Vec<u8>) {
    let path = folder.join("film.mp4");
    let source = ["-f", "lavfi", "-i", "testsrc2=s=320x192:r=16:d=2"];
    let coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-y"];
    run(
        "ffmpeg",
        &[&source[..], &coded, options, &["FILE"]].concat(),
        &path,
    );
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

fn labelled(path: &Path) -> Result<(Recording, bool), MediaError> {
    let mut recording = examine(path, &ASKED, &mut || true)?;
    let is_labelled = label(path, &mut recording, &provenance())?;
    assert_eq!(recording.info.file_bytes, path.metadata()?.len());
    Ok((recording, is_labelled))
}

fn uuid_box(uuid: [u8; 16], body: &[u8]) -> Vec<u8> {
    let size = 24 + body.len() as u32;
    [&size.to_be_bytes()[..], b"uuid", &uuid, body].concat()
}

#[test]
fn a_film_made_elsewhere_is_labelled_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (path, before) = film(folder.path());
    let (recording, is_done) = labelled(&path).unwrap();
    assert!(is_done);
    assert!(std::fs::read(&path).unwrap().starts_with(&before));
    decodes_cleanly(&path);
    is_labelled(&path);
    are_labelled(folder.path(), &recording);
    // Its maker's label gives way to the second one: there are not two.
    assert!(labelled(&path).unwrap().1);
    assert_eq!(top_level_boxes(&path)[4..], ["free", "uuid"]);
    decodes_cleanly(&path);
    is_labelled(&path);
}

#[test]
fn the_words_of_a_film_s_maker_are_not_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("a marked graph");
    for flags in [
        "+use_metadata_tags",
        "+faststart+use_metadata_tags",
        "+faststart",
    ] {
        let more = [
            "-metadata",
            "prompt=a marked graph",
            "-metadata",
            "comment=a marked graph",
        ];
        let options = [&["-movflags", flags][..], &more].concat();
        let (path, before) = film_with(folder.path(), &options);
        assert!(words(&before), "{flags}");
        assert!(labelled(&path).unwrap().1);
        let after = std::fs::read(&path).unwrap();
        assert!(!words(&after), "{flags}");
        assert!(after.len() > before.len());
        decodes_cleanly(&path);
        is_labelled(&path);
    }
}

#[test]
fn a_film_whose_last_box_has_no_end_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut bytes) = film(folder.path());
    // "free" to the end of the file.
    bytes.extend(*b"\0\0\0\0free and more");
    std::fs::write(&path, &bytes).unwrap();
    assert!(labelled(&path).unwrap().1);
    let kinds = top_level_boxes(&path);
    assert_eq!(kinds[kinds.len() - 2..], ["free", "uuid"]);
    decodes_cleanly(&path);
    is_labelled(&path);
}

#[test]
fn a_film_that_is_signed_or_full_stays_as_it_is() {
    const C2PA: [u8; 16] = [
        0xd8, 0xfe, 0xc3, 0xd6, 0x1b, 0x0e, 0x48, 0x3c, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7e, 0xc4,
        0x81,
    ];
    let folder = tempfile::tempdir().unwrap();
    let (path, film) = film(folder.path());
    let boxes = top_level_boxes(&path).len();
    let full = b"\0\0\0\x08free".repeat(64 - boxes);
    for more in [uuid_box(C2PA, b"signed"), full] {
        let bytes = [&film[..], &more].concat();
        std::fs::write(&path, &bytes).unwrap();
        let (recording, is_done) = labelled(&path).unwrap();
        assert!(!is_done);
        assert!(std::fs::read(&path).unwrap() == bytes);
        are_labelled(folder.path(), &recording);
    }
    // Another box with an identifier is none of ours, nor is one that is too short for one, nor is a track outside of
    // the index, which may be as long as the file.
    let others = [
        uuid_box([7; 16], b"other"),
        b"\0\0\0\x0cuuidabcd".to_vec(),
        b"\0\0\0\x18trak\0\0\0\x10metano words".to_vec(),
    ]
    .concat();
    let bytes = [&film[..], &others].concat();
    std::fs::write(&path, &bytes).unwrap();
    assert!(labelled(&path).unwrap().1);
    assert!(std::fs::read(&path).unwrap().starts_with(&bytes));
}
