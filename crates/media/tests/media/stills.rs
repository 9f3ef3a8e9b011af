//! The first and the last frame of a clip, judged by ffmpeg: they are what was pushed, or what a film
//! shows, and a film that cannot be decoded has none.

use std::path::Path;

use kinora_media::{FilmFormat, MismatchPolicy, RecorderOptions, UndecodablePolicy, examine};

use crate::support::{clip, decode_frames, ffprobe, frame, psnr, read_all, record, run};

/// Below what a JPEG of this quality loses of these pictures, and far above what H.264 does.
const LIKENESS_DB: f64 = 40.0;

/// Asserts that `jpeg` shows `rgb`, with full colour resolution, and no `other` picture.
fn shows(folder: &Path, jpeg: &[u8], rgb: &[u8], other: &[u8]) {
    let path = folder.join("frame.jpg");
    std::fs::write(&path, jpeg).unwrap();
    assert_eq!(ffprobe(&path)["streams"][0]["pix_fmt"], "yuvj444p");
    let shown = decode_frames(&path, "rgb24");
    let likeness = psnr(&shown, rgb);
    assert!(likeness > LIKENESS_DB, "{likeness} dB");
    assert!(rgb == other || psnr(&shown, other) < likeness - 3.0);
}

#[test]
fn the_first_and_last_frames_are_the_ones_that_were_pushed() {
    let folder = tempfile::tempdir().unwrap();
    for (width, height, frames) in [(1280, 720, 30), (322, 194, 2), (480, 854, 1)] {
        let format = clip(width, height, 24, frames, None);
        let path = folder.path().join("clip.mp4");
        let made = record(&path, format, RecorderOptions::default(), &[], frame);
        let (first, last) = (frame(&format, 0), frame(&format, frames - 1));
        let (first_jpeg, last_jpeg) = (made.first_frame_jpeg, made.last_frame_jpeg);
        shows(folder.path(), &first_jpeg.clone().unwrap(), &first, &last);
        shows(folder.path(), &last_jpeg.clone().unwrap(), &last, &first);
        assert_eq!(first_jpeg == last_jpeg, frames == 1);
    }
}

#[test]
fn a_film_has_its_own_frames_and_none_if_it_cannot_be_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    let source = ["-f", "lavfi", "-i", "testsrc2=s=320x192:r=16:d=2"];
    let asked = FilmFormat {
        width: 320,
        height: 192,
        seconds: Some(2),
        seconds_max: 15,
        audio: Some(false),
        undecodable: UndecodablePolicy::Keep,
        mismatched: MismatchPolicy::Refuse,
    };
    for (pixel_format, is_decoded) in [("yuv420p", true), ("yuv444p", false)] {
        // With B pictures: the last one decoded is not the last one shown.
        let coded = ["-c:v", "libx264", "-pix_fmt", pixel_format, "-y", "FILE"];
        run("ffmpeg", &[&source[..], &coded].concat(), &path);
        let made = examine(&path, &asked, &mut || true).unwrap();
        if !is_decoded {
            assert_eq!((made.first_frame_jpeg, made.last_frame_jpeg), (None, None));
            continue;
        }
        let (shown, error) = read_all(&path);
        assert!(error.is_none() && shown.len() == 32);
        let (first, last) = (&shown[0], &shown[31]);
        shows(folder.path(), &made.first_frame_jpeg.unwrap(), first, last);
        shows(folder.path(), &made.last_frame_jpeg.unwrap(), last, first);
    }
}
