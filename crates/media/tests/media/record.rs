//! Recorded files judged by ffmpeg: what they say, what they show and what is heard.

use crate::support::{
    STEREO, click, clip, decode_frames, decode_sound, decodes_cleanly, ffprobe, frame, record,
    top_level_boxes,
};
use kinora_media::{AudioCodec, AudioFormat, RecorderOptions};

const SIZES: [(u32, u32); 6] = [
    (854, 480),
    (480, 854),
    (1280, 720),
    (1920, 1080),
    (2520, 1080),
    (480, 480),
];

#[test]
fn every_size_is_clean_exact_and_tagged() {
    let folder = tempfile::tempdir().unwrap();
    for (width, height) in SIZES {
        let audio = (width > height).then_some(STEREO);
        let format = clip(width, height, 24, 48, audio);
        let path = folder.path().join(format!("{width}x{height}.mp4"));
        let recording = record(&path, format, RecorderOptions::default(), &[], frame);
        assert_eq!(
            (recording.info.width, recording.info.height),
            (width, height)
        );
        assert_eq!(recording.info.duration_seconds, 2.0);
        assert_eq!(recording.info.file_bytes, path.metadata().unwrap().len());

        decodes_cleanly(&path);
        assert_eq!(top_level_boxes(&path), ["ftyp", "moov", "mdat"]);
        let report = ffprobe(&path);
        let video = &report["streams"][0];
        assert_eq!(video["codec_name"], "h264");
        assert_eq!(video["profile"], "High");
        assert_eq!(video["pix_fmt"], "yuv420p");
        assert_eq!(video["color_primaries"], "bt709");
        assert_eq!(video["color_transfer"], "bt709");
        assert_eq!(video["color_space"], "bt709");
        assert_eq!(video["color_range"], "tv");
        assert_eq!(video["sample_aspect_ratio"], "1:1");
        assert_eq!(video["has_b_frames"], 0);
        assert_eq!(
            (&video["width"], &video["height"]),
            (&width.into(), &height.into())
        );
        assert_eq!(
            (&video["nb_frames"], &video["nb_read_frames"]),
            (&"48".into(), &"48".into())
        );
        assert_eq!(
            (&video["r_frame_rate"], &video["avg_frame_rate"]),
            (&"24/1".into(), &"24/1".into())
        );
        assert_eq!(
            (&video["duration"], &video["start_time"]),
            (&"2.000000".into(), &"0.000000".into())
        );
        assert_eq!(report["format"]["duration"], "2.000000");
        let sound = &report["streams"][1];
        assert_eq!(sound.is_object(), audio.is_some());
        if audio.is_some() {
            assert_eq!(
                (&sound["channels"], &sound["sample_rate"]),
                (&2.into(), &"48000".into())
            );
            assert_eq!(sound["start_time"], "0.000000");
            // ffmpeg cuts the priming, but plays the last packet to its end.
            assert!((96_000..97_024).contains(&decode_sound(&path).len()));
        }
    }
}

#[test]
fn unusual_rates_and_lengths_stay_exact() {
    let folder = tempfile::tempdir().unwrap();
    for (fps, frames) in [(24, 1), (1, 3), (7, 10), (25, 51), (30, 61), (60, 121)] {
        let path = folder.path().join("clip.mp4");
        let format = clip(
            176,
            144,
            fps,
            frames,
            Some(AudioFormat {
                channels: 1,
                ..STEREO
            }),
        );
        let recording = record(
            &path,
            format,
            RecorderOptions::default(),
            &[0.1; 999],
            frame,
        );
        assert_eq!(recording.info.frames, frames);
        decodes_cleanly(&path);
        let report = ffprobe(&path);
        assert_eq!(report["streams"][0]["nb_read_frames"], frames.to_string());
        let duration = f64::from(frames) / f64::from(fps);
        let stated: f64 = report["format"]["duration"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((stated - duration).abs() < 1e-3, "{fps} {frames}: {stated}");
    }
}

#[test]
fn decoded_luma_is_close_to_what_was_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let format = clip(640, 360, 24, 60, None);
    record(&path, format, RecorderOptions::default(), &[], frame);
    let decoded = decode_frames(&path, "gray");
    let pixels = (format.width * format.height) as usize;
    assert_eq!(decoded.len(), pixels * format.frames as usize);
    for (index, luma) in (0..).zip(decoded.chunks_exact(pixels)) {
        let rgb = frame(&format, index);
        let squares: f64 = rgb
            .as_chunks::<3>()
            .0
            .iter()
            .zip(luma)
            .map(|(pixel, luma)| {
                let [r, g, b] = pixel.map(f64::from);
                // "gray" is full range: undone by ffmpeg from the limited range of the file.
                (0.2126 * r + 0.7152 * g + 0.0722 * b - f64::from(*luma)).powi(2)
            })
            .sum();
        let psnr = 10.0 * (255.0 * 255.0 * pixels as f64 / squares).log10();
        assert!(psnr > 36.0, "frame {index}: {psnr:.1} dB");
    }
}

#[test]
fn primary_colours_survive_with_the_file_s_own_tags() {
    const PATCHES: [[u8; 3]; 6] = [
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
        [255, 255, 255],
        [0, 0, 0],
        [128, 64, 200],
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    let format = clip(384, 64, 24, 12, None);
    record(
        &path,
        format,
        RecorderOptions::default(),
        &[],
        |format, _| {
            let patch = |x: u32| PATCHES[x as usize / 64];
            (0..format.height)
                .flat_map(|_| (0..format.width).flat_map(patch))
                .collect()
        },
    );
    let decoded = decode_frames(&path, "rgb24");
    for (patch, wanted) in PATCHES.iter().enumerate() {
        let centre = (32 * format.width as usize + patch * 64 + 32) * 3;
        let got = &decoded[centre..centre + 3];
        let far = wanted
            .iter()
            .zip(got)
            .any(|(wanted, got)| wanted.abs_diff(*got) > 4);
        assert!(!far, "{wanted:?} came back as {got:?}");
    }
}

#[test]
fn a_click_is_heard_on_time_with_every_codec() {
    let codecs = [
        #[cfg(feature = "aac")]
        (AudioCodec::Aac, "aac"),
        (AudioCodec::Opus, "opus"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (audio_codec, name) in codecs {
        let path = folder.path().join(format!("{name}.mp4"));
        let options = RecorderOptions {
            audio_codec,
            ..RecorderOptions::default()
        };
        record(
            &path,
            clip(320, 180, 24, 48, Some(STEREO)),
            options,
            &click(),
            frame,
        );
        decodes_cleanly(&path);
        assert_eq!(ffprobe(&path)["streams"][1]["codec_name"], name);
        let sound = decode_sound(&path);
        let loudest = (0..sound.len()).max_by(|a, b| sound[*a].abs().total_cmp(&sound[*b].abs()));
        let offset = loudest.unwrap().abs_diff(48_000);
        assert!(offset <= 144, "{name}: {offset} samples off");
        assert!(
            (95_000..=97_000).contains(&sound.len()),
            "{name}: {} samples",
            sound.len()
        );
    }
}

#[test]
fn runs_start_with_key_frames_at_most_two_seconds_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.mp4");
    record(
        &path,
        clip(320, 180, 24, 120, None),
        RecorderOptions::default(),
        &[],
        frame,
    );
    let arguments = [
        "-select_streams",
        "v",
        "-show_entries",
        "packet=flags",
        "-of",
        "csv=p=0",
        "FILE",
    ];
    let flags = String::from_utf8(crate::support::run("ffprobe", &arguments, &path)).unwrap();
    let keys: Vec<_> = (0..)
        .zip(flags.lines())
        .filter(|(_, f)| f.starts_with('K'))
        .map(|(i, _)| i)
        .collect();
    assert_eq!(keys, [0, 40, 80]);
}

#[test]
fn poster_and_spritesheet_have_their_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [
        (1920, 1080, 48, "1280x720", "1600x900"),
        (480, 854, 7, "480x854", "540x960"),
    ];
    for (width, height, frames, poster, sheet) in sizes {
        let path = folder.path().join("clip.mp4");
        let format = clip(width, height, 24, frames, None);
        let recording = record(&path, format, RecorderOptions::default(), &[], frame);
        for (name, bytes, size) in [
            ("poster.webp", &recording.poster_webp, poster),
            ("sheet.jpg", &recording.spritesheet_jpeg, sheet),
        ] {
            let still = folder.path().join(name);
            std::fs::write(&still, bytes).unwrap();
            let stream = &ffprobe(&still)["streams"][0];
            assert_eq!(
                format!("{}x{}", stream["width"], stream["height"]),
                size,
                "{name}"
            );
        }
    }
}
