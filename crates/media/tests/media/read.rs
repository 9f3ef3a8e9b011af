//! Stored videos read back: what was pushed, and exactly the pictures that ffmpeg sees.

use std::path::{Path, PathBuf};

use crate::support::{STEREO, clip, decode_frames, frame, psnr, read_all, record};
use kinora_media::{Recorder, RecorderOptions, VideoReader};
use yuv::{YuvPlanarImage, YuvRange, YuvStandardMatrix, yuv420_to_rgb};

fn read_clean(path: &Path) -> Vec<Vec<u8>> {
    let (frames, error) = read_all(path);
    assert!(error.is_none(), "after {}: {error:?}", frames.len());
    frames
}

/// ffmpeg's I420 frames.
fn ffmpeg_planes(path: &Path, width: usize, height: usize) -> Vec<Vec<u8>> {
    let planes = decode_frames(path, "yuv420p");
    let frames = planes.chunks_exact(width * height * 3 / 2);
    frames.map(<[u8]>::to_vec).collect()
}

/// I420 in limited BT.709 converted with the reader's own arithmetic: equal results mean equal
/// planes, because no two neighbouring values give the same colour.
fn converted(planes: &[u8], width: usize, height: usize) -> Vec<u8> {
    let (y, chroma) = planes.split_at(width * height);
    let (u, v) = chroma.split_at(chroma.len() / 2);
    let (luma_stride, rows) = (width as u32, height as u32);
    let image = YuvPlanarImage {
        y_plane: y,
        y_stride: luma_stride,
        u_plane: u,
        u_stride: luma_stride / 2,
        v_plane: v,
        v_stride: luma_stride / 2,
        width: luma_stride,
        height: rows,
    };
    let mut rgb = vec![0; width * height * 3];
    let (range, matrix) = (YuvRange::Limited, YuvStandardMatrix::Bt709);
    yuv420_to_rgb(&image, &mut rgb, luma_stride * 3, range, matrix).unwrap();
    rgb
}

/// I420 converted by the definition (Rec. ITU-R BT.709-6, items 3 and 4), chroma repeated.
fn by_definition(planes: &[u8], width: usize, height: usize) -> Vec<u8> {
    let pixels = width * height;
    let mut rgb = Vec::with_capacity(pixels * 3);
    for pixel in 0..pixels {
        let (x, y) = (pixel % width / 2, pixel / width / 2);
        let chroma = pixels + y * (width / 2) + x;
        let luma = (f64::from(planes[pixel]) - 16.0) / 219.0;
        let blue = (f64::from(planes[chroma]) - 128.0) / 224.0;
        let red = (f64::from(planes[chroma + pixels / 4]) - 128.0) / 224.0;
        let green = -(0.0722 * 1.8556 * blue + 0.2126 * 1.5748 * red) / 0.7152;
        rgb.extend(
            [luma + 1.5748 * red, luma + green, luma + 1.8556 * blue]
                .map(|value| (value * 255.0).round() as u8),
        );
    }
    rgb
}

/// The largest difference of two values.
fn furthest(left: &[u8], right: &[u8]) -> u8 {
    let differences = left.iter().zip(right).map(|(l, r)| l.abs_diff(*r));
    differences.max().unwrap()
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
        let (columns, rows) = (width as usize, height as usize);
        let judged = ffmpeg_planes(&path, columns, rows);
        assert_eq!(judged.len(), frames as usize);
        let (mut worst, mut sum) = (f64::INFINITY, 0.0);
        for (index, judged) in (0..frames).zip(&judged) {
            let rgb = reader.next_frame().unwrap().unwrap();
            assert!(rgb == converted(judged, columns, rows), "frame {index}");
            if index.is_multiple_of(16) {
                let far = furthest(&rgb, &by_definition(judged, columns, rows));
                assert!(far <= 1, "frame {index}: {far} off the definition");
            }
            let against_pushed = psnr(&rgb, &frame(&format, index));
            // At postage stamp sizes the halved chroma alone costs more.
            let wanted = if width < 320 { 20.0 } else { 35.0 };
            assert!(against_pushed > wanted, "{index}: {against_pushed:.1} dB");
            worst = against_pushed.min(worst);
            sum += against_pushed;
        }
        assert!(reader.next_frame().unwrap().is_none());
        assert!(reader.next_frame().unwrap().is_none());
        let mean = sum / f64::from(frames);
        println!("{width}x{height} x{frames} qp {qp}: worst {worst:.1}, mean {mean:.1} dB");
    }
}

/// All that a request can ask for: six shapes at three resolutions. 854, 1080 and 2520 are no
/// multiples of 16: such pictures are coded larger and cropped.
const SIZES: [(u32, u32); 18] = [
    (854, 480),
    (480, 854),
    (480, 480),
    (640, 480),
    (480, 640),
    (1120, 480),
    (1280, 720),
    (720, 1280),
    (720, 720),
    (960, 720),
    (720, 960),
    (1680, 720),
    (1920, 1080),
    (1080, 1920),
    (1080, 1080),
    (1440, 1080),
    (1080, 1440),
    (2520, 1080),
];

#[test]
fn every_listed_size_comes_back_whole_and_recorded_again_stays_near() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.mp4"), folder.path().join("2.mp4"));
    for (width, height) in SIZES {
        let format = clip(width, height, 24, 4, None);
        record(&first, format, RecorderOptions::default(), &[], frame);
        let frames = read_clean(&first);
        let judged = ffmpeg_planes(&first, width as usize, height as usize);
        assert_eq!((frames.len(), judged.len()), (4, 4));
        for (rgb, planes) in frames.iter().zip(&judged) {
            let wanted = converted(planes, width as usize, height as usize);
            assert!(*rgb == wanted, "{width}x{height}");
        }
        // As an edit does that changes nothing.
        let mut recorder = Recorder::create(&second, format, RecorderOptions::default()).unwrap();
        for rgb in &frames {
            recorder.push_frame(rgb).unwrap();
        }
        recorder.finish().unwrap();
        for (before, after) in frames.iter().zip(read_clean(&second)) {
            let near = psnr(before, &after);
            assert!(near > 38.0, "{width}x{height}: {near:.1} dB");
        }
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
    crate::support::run("ffmpeg", &arguments, &path);
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
        let judged = ffmpeg_planes(&path, 322, 182);
        assert_eq!((frames.len(), judged.len()), (100, 100));
        for (index, (rgb, judged)) in frames.iter().zip(&judged).enumerate() {
            assert!(
                *rgb == converted(judged, 322, 182),
                "{variant:?}: frame {index}"
            );
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
    refused(&["-c:v", "libx264", "-pix_fmt", "gray"]);
    refused(&["-c:v", "libx264", "-pix_fmt", "yuv420p", "-flags", "+ildct"]);
    refused(&["-c:v", "mpeg4"]);
}

#[test]
fn a_reader_can_be_handed_to_another_thread() {
    fn sendable<T: Send + 'static>() {}
    sendable::<VideoReader>();
}
