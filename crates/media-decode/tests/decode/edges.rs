//! Files with bytes too many or too few at their edges: what is whole is read, what is cut is not.

use jpeg_encoder::ColorType;

use crate::samples::{Seeded, code, ffmpeg, image, jpeg, picture, sound};

const TONE: &str = "aevalsrc=0.5*sin(2*PI*440*t):s=44100:d=3";

#[test]
fn an_mp3_or_aac_is_found_behind_what_is_no_frame() {
    let mut seeded = Seeded(5);
    let noise: Vec<u8> = (0..3_000).map(|_| seeded.next() as u8 & 0x7f).collect();
    for arguments in [
        "-c:a libmp3lame -b:a 128k -write_xing 0 -id3v2_version 0 -f mp3",
        "-c:a libmp3lame -b:a 128k -f mp3",
        "-ar 22050 -c:a libmp3lame -b:a 64k -f mp3",
        "-c:a aac -b:a 128k -f adts",
    ] {
        let file = ffmpeg(TONE, arguments);
        let tag = match file.starts_with(b"ID3") {
            true => 10 + usize::from(file[9]) + 128 * usize::from(file[8]),
            false => 0,
        };
        let (tag, frames) = file.split_at(tag);
        let whole = sound(&file).unwrap().seconds();
        for (name, file) in [
            ("a zero byte", [&[0], frames].concat()),
            ("zero bytes", [&[0; 417], frames].concat()),
            ("a page of zero bytes", [&[0; 65_536], frames].concat()),
            ("padding behind the tag", [tag, &[0; 300], frames].concat()),
            ("a line break", [b"\r\n", frames].concat()),
            ("noise", [&noise, frames].concat()),
            ("the rest of a frame", frames[1_000..].to_vec()),
        ] {
            let seconds = sound(&file).unwrap().seconds();
            assert!(
                (seconds - whole).abs() < 0.2,
                "{name}, {arguments}: {seconds}"
            );
        }
        // Too far away.
        let far = [&noise[..].repeat(10), frames].concat();
        assert_eq!(code(&sound(&far)), "unsupported_audio", "{arguments}");
    }
}

#[test]
fn the_links_of_an_ogg_file_may_differ() {
    let link = |rate: u32, codec: &str| ffmpeg(&format!("sine=r={rate}:d=1.5"), codec);
    let vorbis = "-c:a libvorbis -f ogg";
    let opus = link(48_000, "-c:a libopus -f ogg");
    let slow = link(22_050, vorbis);
    for (name, first, second) in [
        ("the same", &slow, &slow),
        ("another rate", &slow, &link(44_100, vorbis)),
        ("another codec", &slow, &link(48_000, "-c:a flac -f ogg")),
        ("Opus behind Vorbis", &slow, &opus),
        ("Opus behind Opus", &opus, &opus),
    ] {
        let seconds = sound(&[&first[..], second].concat()).unwrap().seconds();
        assert!((seconds - 3.0).abs() < 0.05, "{name}: {seconds}");
        // Cut within the headers of the second link.
        let cut = [&first[..], &second[..100]].concat();
        let seconds = sound(&cut).unwrap().seconds();
        assert!((seconds - 1.5).abs() < 0.05, "{name}, cut: {seconds}");
    }
    let many = slow.repeat(11);
    assert_eq!(code(&sound(&many)), "audio_too_long");
}

#[test]
fn a_webm_that_is_cut_keeps_the_sound_before_the_cut() {
    for format in [
        "-f webm",
        "-live 1 -cluster_time_limit 500 -f webm",
        "-f matroska",
    ] {
        let file = ffmpeg(TONE, &format!("-ar 48000 -c:a libopus -b:a 96k {format}"));
        let seconds = sound(&file[..file.len() * 2 / 3]).unwrap().seconds();
        assert!((1.5..2.5).contains(&seconds), "{format}: {seconds}");
    }
}

/// A hundred thousand tags would take a hundred megabytes; they are not read.
#[test]
fn tags_of_a_webm_are_not_looked_at() {
    let file = ffmpeg(TONE, "-ar 48000 -c:a libopus -b:a 96k -f webm");
    let cluster = file.windows(4).position(|four| four == b"\x1f\x43\xb6\x75");
    let (head, clusters) = file.split_at(cluster.unwrap());
    // Elements that no reader accepts, in one of a known length.
    let tags = [&b"\x12\x54\xc3\x67\x10\x00\x10\x00"[..], &[0xff; 4_096]].concat();
    let seconds = sound(&[head, &tags, clusters].concat()).unwrap().seconds();
    assert!((seconds - 3.0).abs() < 0.05, "{seconds}");
}

#[test]
fn the_sound_of_a_recorded_film_is_read() {
    let arguments =
        "-f lavfi -i testsrc=s=64x64:r=10:d=3 -ar 48000 -c:a libopus -c:v libvpx -f webm";
    let seconds = sound(&ffmpeg(TONE, arguments)).unwrap().seconds();
    assert!((seconds - 3.0).abs() < 0.05, "{seconds}");
}

#[test]
fn a_jpeg_without_its_end_marker_is_read_if_it_is_whole() {
    let original = picture(333, 280);
    for color in [ColorType::Rgb, ColorType::Luma, ColorType::Cmyk] {
        for progressive in [false, true] {
            let name = format!("{color:?}, progressive: {progressive}");
            let file = jpeg(&original, color, progressive);
            let expected = image(&file).unwrap();
            let bare = &file[..file.len() - 2];
            for tail in [&b""[..], b"\xff", &[0; 3], &[0; 5_000]] {
                let file = [bare, tail].concat();
                assert!(image(&file).unwrap() == expected, "{name}, {tail:?}");
                let file = [&file[..bare.len()], b"\xff\xd9", tail].concat();
                assert!(image(&file).unwrap() == expected, "{name}, {tail:?}");
            }
            // The last byte may hold nothing but padding, and a few zero bytes the end of a scan.
            for (cut, zeros) in [(2, 0), (4, 0), (10, 0), (100, 0), (100, 5_000), (5_000, 9)] {
                let file = [&bare[..bare.len() - cut], &vec![0; zeros]].concat();
                let code = code(&image(&file));
                assert_eq!(code, "unsupported_image", "{name} cut by {cut}");
            }
        }
    }
}

#[test]
fn a_progressive_jpeg_without_its_last_scans_is_refused() {
    let file = jpeg(&picture(333, 280), ColorType::Rgb, true);
    let marks = |two: &&[u8]| two == b"\xff\xda";
    let scans = file.windows(2).enumerate().filter(|(_, two)| marks(two));
    let scans: Vec<usize> = scans.map(|(at, _)| at).collect();
    assert!(scans.len() > 2);
    for &scan in &scans[1..] {
        assert_eq!(code(&image(&file[..scan])), "unsupported_image", "{scan}");
    }
}

#[test]
fn a_png_without_its_end_is_read_if_it_is_whole() {
    let original = picture(333, 280);
    for file in [original.png(), original.png_of_16_bits()] {
        let expected = image(&file).unwrap();
        // The end is a chunk of 12 bytes, behind 4 bytes of checksum.
        for cut in 1..=12 {
            let bare = &file[..file.len() - cut];
            for zeros in [0, 1, 5_000] {
                let file = [bare, &vec![0; zeros]].concat();
                assert!(image(&file).unwrap() == expected, "{cut}, {zeros}");
            }
        }
        for cut in [40, 100, file.len() / 2] {
            let bare = &file[..file.len() - cut];
            for zeros in [0, 5_000] {
                let file = [bare, &vec![0; zeros]].concat();
                assert_eq!(code(&image(&file)), "unsupported_image", "{cut}, {zeros}");
            }
        }
    }
}
