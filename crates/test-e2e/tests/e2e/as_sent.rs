//! References as people send them: what is whole is used, whatever headers say, and what is not is
//! called by its name.

use kinora_test_e2e::compare::{COVER, Frame, given};
use kinora_test_e2e::{Host, studio};
use serde_json::json;

use crate::support::{Download, fetching, quick};

/// Code points of a PNG (`cICP`): Display P3, and BT.2020 with PQ.
const P3: &[u8] = b"\0\0\0\x04cICP\x0c\x0d\0\x01\x6e\x03\xe3\xef";
const PQ: &[u8] = b"\0\0\0\x04cICP\x09\x10\0\x01\x4d\x23\x23\xfe";

/// `png` with a chunk behind its header.
fn with_chunk(png: &[u8], chunk: &[u8]) -> Vec<u8> {
    [&png[..33], chunk, &png[33..]].concat()
}

fn one_colour(colour: &str) -> Vec<u8> {
    let source = format!("color=c={colour}:s=854x480:d=1:r=1,format=gbrp");
    let options = ["-c:v", "png", "-pix_fmt", "rgb24", "-frames:v", "1"];
    studio::film("colour.png", &source, &options)
}

/// As speech services write it that do not know the length beforehand.
fn streamed_wav() -> Vec<u8> {
    let mut file = studio::tone("tone.wav", 440, 2.0);
    let size_at = file.windows(4).position(|four| four == b"data").unwrap() + 4;
    for at in [4, size_at] {
        file[at..at + 4].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    }
    file
}

#[test]
fn what_is_whole_is_used_whatever_its_headers_say() {
    let host = Host::start();
    let client = fetching().newcomer();
    let picture = |name: &str| studio::picture(name, (640, 480), "teal");
    let mut jpeg = picture("a.jpg");
    assert!(jpeg.ends_with(b"\xff\xd9"));
    jpeg.truncate(jpeg.len() - 2);
    let mp3 = [&[0; 417], &studio::tone("b.mp3", 440, 2.0)[..]].concat();
    let mut body = quick("kinora-a1");
    body["seconds"] = json!(6);
    body["reference_images"] = json!([
        host.serve("no-end.jpg", jpeg),
        host.serve("hdr.png", with_chunk(&picture("b.png"), PQ)),
        host.serve_as("aws-chunked", "stored.png", picture("c.png")),
        host.serve_as("gzip", "untrue.webp", picture("d.webp")),
    ]);
    body["reference_audios"] = json!([
        host.serve("streamed.wav", streamed_wav()),
        host.serve("zeros.mp3", mp3),
        host.serve("recorded.webm", studio::tone("c.webm", 440, 2.0)),
    ]);
    let video = client.submit(&body);
    let video = client.wait_completed(video.id());
    let warnings = video["warnings"].as_array().unwrap();
    let code = "colour_profile_ignored";
    let told: Vec<_> = warnings.iter().filter(|one| one["code"] == code).collect();
    assert_eq!(told.len(), 1, "{warnings:#?}");
    let message = told[0]["message"].as_str().unwrap();
    assert!(message.ends_with("Of: reference_images[1]."), "{message}");
}

#[test]
fn a_first_frame_with_a_colour_profile_has_its_colours() {
    let host = Host::start();
    let client = fetching().newcomer();
    let mut body = quick("kinora-b1");
    let stored = with_chunk(&one_colour("0xc8783c"), P3);
    body["first_frame"] = json!(host.serve("p3.png", stored));
    let video = client.submit(&body);
    let video = client.wait_completed(video.id());
    let file = Download::of(&client, &video.content());
    let first = Frame::all_of(&file.path(), COVER).remove(0);
    // The same colour in sRGB, by the definitions of both.
    let psnr_db = first.psnr_db(&given(&one_colour("0xd5732a"), "srgb.png"));
    assert!(psnr_db > 30.0, "{psnr_db:.1} dB");
}

#[test]
fn a_failed_task_says_what_the_file_is() {
    let host = Host::start();
    let client = fetching().newcomer();
    let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec();
    let denied = b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>".to_vec();
    let junk = vec![0x81; 900];
    let cases = [
        (
            host.serve("a", heic),
            "unsupported_image",
            "the file is HEIC; send JPEG, PNG, WebP or GIF.",
        ),
        (
            host.serve("b", Vec::new()),
            "unsupported_image",
            "the file is empty.",
        ),
        (
            host.serve("c", denied),
            "unsupported_image",
            "the server sent an XML error (access denied): has a signed address expired?",
        ),
        (
            host.serve("d", studio::tone("d.flac", 440, 2.0)),
            "unsupported_image",
            "the file is sound (FLAC); send JPEG, PNG, WebP or GIF.",
        ),
        (
            host.serve_as("br", "e", junk),
            "reference_unreachable",
            "the server sent the file compressed by br.",
        ),
    ];
    for (url, code, says) in cases {
        let mut body = quick("kinora-b1");
        body["first_frame"] = json!(url);
        let video = client.submit(&body);
        let failed = client.wait_for(video.id(), "failed");
        assert_eq!(failed["error"]["code"], code, "{failed:#?}");
        let message = format!("first_frame: {says}");
        assert_eq!(failed["error"]["message"], message);
    }
}
