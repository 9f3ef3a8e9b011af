//! A refusal says what the file is and what to send instead, in words of ours alone.

use std::collections::BTreeMap;

use kinora_contract::FileKind;
use kinora_media_decode::{DecodeError, UploadRefusal};

use crate::samples::{ffmpeg, image, jpeg, picture, sound, wav, with_file};

/// Stands in texts of strangers.
const SECRET: &str = "hunter2";

fn says<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> String {
    result.unwrap_err().failure().message
}

fn padded(head: &[u8]) -> Vec<u8> {
    let mut file = head.to_vec();
    file.resize(2_000, 0x80);
    file
}

fn made(arguments: &str) -> Vec<u8> {
    ffmpeg("testsrc=s=300x300:r=10:d=1", arguments)
}

/// A file, what is said of it as an image, and as a sound.
type Row = (Vec<u8>, &'static str, &'static str);

/// The text of a stranger.
fn text(text: &str) -> Vec<u8> {
    text.replace("SECRET", SECRET).into_bytes()
}

fn tone(arguments: &str) -> Vec<u8> {
    ffmpeg("aevalsrc=0.5*sin(2*PI*440*t):s=8000:d=2", arguments)
}

/// Pictures of other formats.
fn pictures() -> Vec<Row> {
    vec![
        (
            padded(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
            "the file is HEIC; send",
            "a picture (HEIC)",
        ),
        (
            padded(b"\0\0\0\x1cftypavif\0\0\0\0avifmif1"),
            "the file is AVIF; send",
            "a picture (AVIF)",
        ),
        (
            padded(b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic"),
            "HEIC or AVIF",
            "a picture (HEIC or",
        ),
        (
            made("-frames:v 1 -c:v bmp -f image2pipe"),
            "the file is BMP",
            "a picture (BMP)",
        ),
        (
            made("-frames:v 1 -c:v tiff -f image2pipe"),
            "is TIFF",
            "a picture (TIFF",
        ),
        (
            made("-frames:v 1 -c:v jpeg2000 -f image2pipe"),
            "JPEG 2000",
            "a picture (JPEG 2000)",
        ),
        (
            padded(b"\xff\x0a"),
            "the file is JPEG XL",
            "a picture (JPEG XL)",
        ),
        (
            padded(b"\0\0\x01\0\x01\0"),
            "the file is ICO",
            "a picture (ICO)",
        ),
        (padded(b"8BPS\0\x01"), "the file is PSD", "a picture (PSD)"),
    ]
}

/// What servers send instead of a file, archives and texts.
fn documents() -> Vec<Row> {
    vec![
        (
            text("<?xml version=\"1.0\"?>\n<svg xmlns=\"SECRET\">"),
            "the file is SVG; send JPEG",
            "the file is a picture (SVG); send WAV",
        ),
        (
            padded(b"%PDF-1.7"),
            "the file is a PDF; send JPEG",
            "the file is a PDF; send WAV",
        ),
        (
            padded(b"PK\x03\x04"),
            "is a ZIP archive",
            "is a ZIP archive",
        ),
        (
            padded(b"\x1f\x8b\x08"),
            "is a gzip archive",
            "is a gzip archive",
        ),
        (
            text("\n<!DOCTYPE html><title>SECRET"),
            "an HTML page: is hot-",
            "an HTML page: is hot-",
        ),
        (
            text("<!-- SECRET --><html>"),
            "an HTML page",
            "an HTML page",
        ),
        (
            text("{\"error\": \"SECRET\"}"),
            "the server sent JSON",
            "the server sent JSON",
        ),
        (
            text("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>SECRET"),
            "an XML error (access denied)",
            "an XML error (access denied)",
        ),
        (
            text("<Error><Code>NoSuchKey</Code>SECRET"),
            "an XML error instead",
            "an XML error",
        ),
        (text("<rss>SECRET"), "the file is XML", "the file is XML"),
        (
            text("version https://git-lfs.github.com/spec/v1\noid sha256:SECRET"),
            "a Git LFS pointer",
            "a Git LFS pointer",
        ),
        (
            text("data:image/png;base64,SECRET"),
            "is base64 text",
            "is base64 text",
        ),
        (
            text("\u{feff}Not found: SECRET \u{1f30a}"),
            "the file is text",
            "the file is text",
        ),
    ]
}

/// What moves, and sounds of other formats.
fn films() -> Vec<Row> {
    vec![
        (Vec::new(), "the file is empty.", "the file is empty."),
        (
            made("-c:v libvpx -f webm"),
            "video (WebM or Matroska); send JPEG",
            "without sound",
        ),
        (
            made("-c:v libx264 -f matroska"),
            "video (WebM or Matroska)",
            "without sound",
        ),
        (
            made("-c:v libx264 -f mp4"),
            "a video (MP4); send JPEG",
            "a video (MP4) without sound",
        ),
        (
            made("-c:v libx264 -f mov"),
            "a video (MOV)",
            "a video (MOV) without sound",
        ),
        (made("-f avi"), "a video (AVI)", "a video (AVI)"),
        (made("-f mpegts"), "a video (MPEG-TS)", "a video (MPEG-TS)"),
        (
            tone("-f asf"),
            "the file is sound (WMA or WMV)",
            "the file is WMA or WMV; send WAV",
        ),
        (
            tone("-f aiff"),
            "sound (AIFF)",
            "the file is AIFF; send WAV",
        ),
        (
            padded(b"#!AMR\n"),
            "sound (AMR)",
            "the file is AMR; send WAV",
        ),
        (
            tone("-ar 44100 -f mp2"),
            "sound (MP2)",
            "the file is MP2; send WAV",
        ),
        (
            padded(b"MThd\0\0\0\x06"),
            "sound (MIDI)",
            "the file is MIDI; send WAV",
        ),
        (
            tone("-f s16le"),
            "of no known kind; send JPEG",
            "such as samples without a header",
        ),
    ]
}

/// Formats of ours in the wrong place, and damaged ones.
fn ours() -> Vec<Row> {
    vec![
        (
            wav(16_000, 32_000),
            "the file is sound (WAV); send JPEG",
            "",
        ),
        (tone("-f flac"), "the file is sound (FLAC)", ""),
        (
            tone("-c:a libmp3lame -ar 44100 -f mp3"),
            "the file is sound (MP3)",
            "",
        ),
        (tone("-f ogg"), "the file is sound (Ogg)", ""),
        (tone("-f ipod"), "the file is sound (M4A)", ""),
        (tone("-f adts"), "the file is sound (AAC)", ""),
        (
            picture(300, 300).png(),
            "",
            "the file is a picture (PNG); send WAV",
        ),
        (picture(300, 300).webp(), "", "the file is a picture (WebP)"),
        (
            jpeg(&picture(300, 300), jpeg_encoder::ColorType::Rgb, false),
            "",
            "the file is a picture (JPEG)",
        ),
        (
            padded(b"\x89PNG\r\n\x1a\n"),
            "the PNG is damaged or",
            "a picture (PNG)",
        ),
        (
            picture(300, 300).png()[..500].to_vec(),
            "the end of the file is",
            "a picture (PNG)",
        ),
        (
            padded(b"fLaC"),
            "the file is sound (FLAC)",
            "the FLAC is damaged or",
        ),
        (
            padded(&wav(16_000, 0)[..36]),
            "sound (WAV)",
            "the WAV is damaged or",
        ),
        (
            padded(b"\x01\x02\x03"),
            "of no known kind",
            "of no known kind",
        ),
    ]
}

#[test]
fn a_refusal_says_what_the_file_is() {
    let mut kinds = BTreeMap::new();
    let rows = [pictures(), documents(), films(), ours()].concat();
    for (index, (file, as_image, as_sound)) in rows.into_iter().enumerate() {
        let check = |said: String, expected: &str| {
            assert!(
                said.contains(expected),
                "{index}: {said:?} without {expected:?}"
            );
            assert!(!said.contains(SECRET), "{index}: {said}");
            assert!(
                said.ends_with('.') || said.ends_with('?'),
                "{index}: {said}"
            );
            assert!(said.starts_with("the "), "{index}: {said}");
            said
        };
        if as_image.is_empty() {
            assert!(image(&file).is_ok(), "{index}");
        } else {
            kinds.insert(check(says(image(&file)), as_image), index);
        }
        if as_sound.is_empty() {
            assert!(sound(&file).is_ok(), "{index}");
        } else {
            kinds.insert(check(says(sound(&file)), as_sound), index);
        }
    }
    assert!(kinds.len() > 50, "{kinds:#?}");
}

#[test]
fn a_file_without_a_purpose_is_judged_as_what_it_is() {
    let judge = |bytes: &[u8]| {
        let judged = with_file(bytes, kinora_media_decode::judge_upload);
        judged
            .map(|judged| (judged.kind, judged.media_type))
            .map_err(|refusal| match refusal {
                UploadRefusal::Neither(message) => message,
                UploadRefusal::Decode(error) => error.failure().message,
            })
    };
    let picture = jpeg(&picture(300, 300), jpeg_encoder::ColorType::Rgb, false);
    assert_eq!(judge(&picture), Ok((FileKind::Image, "image/jpeg")));
    assert_eq!(
        judge(&wav(8_000, 16_000)),
        Ok((FileKind::Audio, "audio/wav"))
    );
    for (bytes, says) in [
        (
            padded(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
            "the file is HEIC; send JPEG",
        ),
        (text("<svg></svg>"), "the file is SVG; send JPEG"),
        (padded(b"FORM\0\0\0\0AIFF"), "the file is AIFF; send WAV"),
        (
            padded(b"%PDF-1.7"),
            "the file is a PDF; send JPEG, PNG, WebP or GIF, or send WAV",
        ),
        (
            text("{\"error\": \"SECRET\"}"),
            "the file is text; send JPEG",
        ),
        (vec![1, 2, 3], "the file is of no known kind; send JPEG"),
        (Vec::new(), "the file is empty."),
    ] {
        let refused = judge(&bytes).unwrap_err();
        assert!(refused.starts_with(says), "{refused}");
    }
}
