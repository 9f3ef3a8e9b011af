//! What result files say of their origin, read by a tool of others: the kind of source, the program, the task, and
//! the video that an edit or a final starts from; and what an operator's mark shows to everybody.

use kinora_test_e2e::compare::{COVER, Frame};
use kinora_test_e2e::media::{probe, top_boxes, without_provenance, xmp};
use kinora_test_e2e::{Client, Setup, Video};
use serde_json::{Value, json};

use crate::support::{Download, assert_plays, quick, shared, square};

const ALGORITHM: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia";

fn made(client: &Client, body: &Value) -> Video {
    client.wait_completed(client.submit(body).id())
}

/// Asserts that all files of `video` say the same, and returns it.
fn told(client: &Client, video: &Video) -> Value {
    assert_plays(client, video);
    let variants = [
        "video",
        "thumbnail",
        "spritesheet",
        "first_frame",
        "last_frame",
    ];
    let mut told = variants.map(|variant| {
        let path = format!("/v1/videos/{}/content?variant={variant}", video.id());
        let mut told = xmp(&Download::of(client, &path).path());
        told["SourceFile"] = Value::Null;
        told
    });
    assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    told[0].take()
}

#[test]
fn every_file_says_what_made_it_when_and_for_which_task() {
    let client = shared().newcomer();
    let video = made(&client, &square("kinora-a1"));
    let told = told(&client, &video);
    for (name, expected) in [
        ("XMP-iptcExt:DigitalSourceType", ALGORITHM),
        (
            "XMP-xmp:CreatorTool",
            concat!("Kinora ", env!("CARGO_PKG_VERSION")),
        ),
        ("XMP-dc:Identifier", video.id()),
        ("XMP-kinora:Model", "kinora-a1"),
        ("XMP-kinora:Engine", video.text("engine")),
    ] {
        assert_eq!(told[name], expected, "{name}: {told:#}");
    }
    let document = format!("xmp.did:{}", video.id());
    assert_eq!(told["XMP-xmpMM:DocumentID"], *document);
    assert!(told["XMP-xmpMM:DerivedFrom"].is_null(), "{told:#}");
    // ExifTool writes dates with colons, here that of the task's start: "2026:11:22 03:45:01Z".
    let created = told["XMP-xmp:CreateDate"].as_str().unwrap();
    assert_eq!(created.len(), "2026:11:22 03:45:01Z".len(), "{created}");
    let second = video["started_at"].as_u64().unwrap() % 60;
    assert!(created.ends_with(&format!("{second:02}Z")), "{created}");
    // Whoever gets a link need not get the words.
    let everything = told.to_string();
    assert!(!everything.contains("paper boat"), "{everything}");
}

#[test]
fn finals_and_edits_name_the_video_that_they_start_from() {
    let client = shared().newcomer();
    let mut body = square("kinora-a1");
    body["draft"] = json!(true);
    let draft = made(&client, &body);
    let final_of = json!({"model": "kinora-a1", "draft_task_id": draft.id()});
    let edit =
        json!({"model": "kinora-b1", "prompt": "The same in snow", "edit_task_id": draft.id()});
    for body in [final_of, edit] {
        let told = told(&client, &made(&client, &body));
        let source = &told["XMP-xmpMM:DerivedFrom"]["DocumentID"];
        assert_eq!(*source, format!("xmp.did:{}", draft.id()), "{told:#}");
        assert_eq!(told["XMP-iptcExt:DigitalSourceType"], ALGORITHM);
    }
}

#[test]
fn the_same_request_gives_the_same_bytes_but_for_the_last_box() {
    let client = shared().newcomer();
    let files = [(); 2].map(|()| {
        let video = made(&client, &quick("kinora-a1"));
        Download::of(&client, &video.content())
    });
    let [one, other] = files.each_ref().map(|file| {
        assert_eq!(top_boxes(&file.bytes), ["ftyp", "moov", "mdat", "uuid"]);
        assert_eq!(probe(&file.path()).video["codec_name"], "h264");
        without_provenance(&file.bytes)
    });
    assert!(one == other);
    assert!(files[0].bytes != files[1].bytes);
}

/// The greatest distance between two frames, of their green, in the part that is `wanted` by column and row, as shares of
/// the frame.
fn distance(one: &Frame, other: &Frame, wanted: impl Fn(f64, f64) -> bool) -> u8 {
    let (width, height) = one.size;
    let is_wanted = |index: usize| {
        let (x, y) = (index % width, index / width);
        wanted(x as f64 / width as f64, y as f64 / height as f64)
    };
    let pairs = one.rgb.chunks_exact(3).zip(other.rgb.chunks_exact(3));
    let part = pairs.enumerate().filter(|(index, _)| is_wanted(*index));
    let distances = part.map(|(_, (one, other))| one[1].abs_diff(other[1]));
    distances.max().unwrap_or(0)
}

/// The frames of a quick clip, its poster and its last frame.
fn pictures(client: &Client) -> Vec<Frame> {
    let video = made(client, &quick("kinora-a1"));
    let path = format!("/v1/videos/{}/content", video.id());
    let mut frames = Frame::all_of(&Download::of(client, &path).path(), COVER);
    assert_eq!(frames.len(), 48);
    for variant in ["thumbnail", "last_frame"] {
        let still = Download::of(client, &format!("{path}?variant={variant}"));
        frames.extend(Frame::all_of(&still.path(), COVER));
    }
    frames
}

#[test]
fn an_operator_s_mark_is_in_the_upper_right_corner_of_every_frame_and_nowhere_else() {
    let marked = Setup::default()
        .set("KINORA_MEDIA_MARK", "Made with AI")
        .start();
    let plain = pictures(&shared().newcomer());
    for (client, has_mark) in [(marked.newcomer(), true), (shared().newcomer(), false)] {
        for (frame, plain) in pictures(&client).iter().zip(&plain) {
            let is_corner = |x: f64, y: f64| x > 0.6 && y < 0.2;
            let corner = distance(frame, plain, is_corner);
            let rest = distance(frame, plain, |x, y| !is_corner(x, y));
            assert_eq!(corner > 90, has_mark, "{corner}");
            assert!(rest < 12, "{rest}");
        }
    }
}
