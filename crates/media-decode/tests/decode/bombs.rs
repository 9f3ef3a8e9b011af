//! Files made to exhaust memory or time. Each is read in a process of its own, whose peak of
//! memory the kernel knows.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::pictures::{Picture, gif};
use crate::samples::{code, image, image_size, jpeg, jpeg_with_exif, picture, png_with_chunk};

/// What reading one reference may add to the memory of the process.
const GROWTH_MIB_MAX: u64 = 300;

/// A zlib stream that inflates to `mib` mebibytes of zeros.
fn zlib_bomb(mib: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![0; 1 << 20];
    for _ in 0..mib {
        encoder.write_all(&block).unwrap();
    }
    encoder.finish().unwrap()
}

/// An all-black PNG.
fn png(side: u32, color: png::ColorType, depth: png::BitDepth) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, side, side);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder.set_compression(png::Compression::Fast);
    let row_bytes = side as usize
        * color.samples()
        * if depth == png::BitDepth::Sixteen {
            2
        } else {
            1
        };
    let mut writer = encoder.write_header().unwrap();
    let mut stream = writer.stream_writer().unwrap();
    let row = vec![0; row_bytes];
    for _ in 0..side {
        stream.write_all(&row).unwrap();
    }
    stream.finish().unwrap();
    writer.finish().unwrap();
    file
}

/// A lossless WebP that declares 65,536 groups of prefix codes, each code with a table of 4 KiB,
/// and ends before its pixels (RFC 9649, section 3.7).
fn webp_of_tables() -> Vec<u8> {
    let mut stream = Vec::new();
    let mut filled = 0;
    let mut put = |value: u32, count: u32| {
        for index in 0..count {
            if filled % 8 == 0 {
                stream.push(0);
            }
            *stream.last_mut().unwrap() |= ((value >> index & 1) as u8) << (filled % 8);
            filled += 1;
        }
    };
    // Signature, 1,024 x 1,024, no transform, no cache, groups by blocks of 4 x 4 pixels.
    for (value, count) in [
        (0x2f, 8),
        (1_023, 14),
        (1_023, 14),
        (0, 4),
        (0, 1),
        (0, 1),
        (1, 1),
        (0, 3),
    ] {
        put(value, count);
    }
    // The image of groups: every pixel is green 255, red 255, at no bits at all.
    put(0, 1);
    for symbol in [255, 255, 0, 0, 0] {
        put(0b101, 3);
        put(symbol, 8);
    }
    let lengths = [3, 4, 5, 6, 7, 8, 9, 10, 10]
        .map(|length| [length; 4])
        .concat();
    for _ in 0..65_536 * 5 {
        // Code lengths 3 to 10 have three bits each.
        put(0, 1);
        put(15, 4);
        for symbol in [
            17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        ] {
            put(if (3..=10).contains(&symbol) { 3 } else { 0 }, 3);
        }
        put(1, 1);
        put(2, 3);
        put(34, 6);
        for length in &lengths {
            let code: u32 = length - 3;
            put(code.reverse_bits() >> 29, 3);
        }
    }
    let chunk_bytes = u32::try_from(stream.len()).unwrap();
    let mut file = b"RIFF".to_vec();
    file.extend((chunk_bytes + 12 + chunk_bytes % 2).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend(chunk_bytes.to_le_bytes());
    file.extend(stream);
    file.extend([0].repeat(chunk_bytes as usize % 2));
    file
}

#[cfg(target_os = "linux")]
mod measured {
    use super::GROWTH_MIB_MAX;

    fn mebibytes(field: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1_024
    }

    #[test]
    #[ignore = "a part of other tests, which start it in a process of its own"]
    fn read_one_file() {
        let path = std::env::var("KINORA_DECODE_TEST_FILE").unwrap();
        let path = std::path::Path::new(&path);
        let before = mebibytes("VmRSS");
        let started = std::time::Instant::now();
        let code = if std::env::var_os("KINORA_DECODE_TEST_SOUND").is_some() {
            crate::samples::code(&kinora_media_decode::sound(path))
        } else {
            crate::samples::code(&kinora_media_decode::image(path, (1_280, 720)))
        };
        let growth = mebibytes("VmHWM").saturating_sub(before);
        println!("\nread: {code} {growth} {}", started.elapsed().as_millis());
    }

    /// The code of reading `file` elsewhere, after asserting that it took little memory.
    pub(crate) fn read(name: &str, file: &[u8], is_sound: bool) -> String {
        crate::samples::with_file(file, |path| {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command
                .args([
                    "--exact",
                    "bombs::measured::read_one_file",
                    "--ignored",
                    "--nocapture",
                ])
                .env("KINORA_DECODE_TEST_FILE", path);
            if is_sound {
                command.env("KINORA_DECODE_TEST_SOUND", "1");
            }
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("read: "))
                .expect(&text);
            let parts: Vec<&str> = line.split(' ').collect();
            println!(
                "{name}: {} B, {}, {} MiB, {} ms",
                file.len(),
                parts[0],
                parts[1],
                parts[2]
            );
            let growth: u64 = parts[1].parse().unwrap();
            assert!(growth < GROWTH_MIB_MAX * 95 / 100, "{name}: {growth} MiB");
            parts[0].to_owned()
        })
    }
}

#[cfg(target_os = "linux")]
#[test]
fn p13_images_are_read_or_refused_within_the_memory_budget() {
    use measured::read;
    use png::{BitDepth, ColorType};

    let small = picture(300, 300).png();
    let profile = [&b"bomb\0\0"[..], &zlib_bomb(300)].concat();
    let huge = png(20_000, ColorType::Grayscale, BitDepth::Eight);
    assert_eq!(read("png 20,000", &huge, false), "image_too_large");
    let bomb = png_with_chunk(&small, b"iCCP", &profile);
    assert_eq!(read("png iCCP", &bomb, false), "ok");
    let bomb = png_with_chunk(&small, b"zTXt", &profile);
    assert_eq!(read("png zTXt", &bomb, false), "ok");
    let widest = png(6_000, ColorType::Rgba, BitDepth::Eight);
    assert_eq!(read("png 6,000 rgba", &widest, false), "ok");
    let deepest = png(6_000, ColorType::Rgba, BitDepth::Sixteen);
    assert_eq!(read("png 6,000 rgba 16 bits", &deepest, false), "ok");
    let large = picture(6_000, 6_000);
    let baseline = jpeg(&large, jpeg_encoder::ColorType::Rgb, false);
    assert_eq!(read("jpeg 6,000", &baseline, false), "ok");
    let progressive = jpeg(&large, jpeg_encoder::ColorType::Rgb, true);
    assert_eq!(read("jpeg 6,000 progressive", &progressive, false), "ok");
    let last = progressive
        .windows(2)
        .rposition(|two| two == b"\xff\xda")
        .unwrap();
    let (start, scan) = (
        &progressive[..last],
        &progressive[last..progressive.len() - 2],
    );
    let scans = [start, &scan.repeat(20), b"\xff\xd9"].concat();
    assert_eq!(read("jpeg 6,000 of many scans", &scans, false), "ok");
    // The same without subsampling would hold 216 MB of coefficients beside 108 MB of pixels.
    let frame = progressive
        .windows(2)
        .position(|two| two == b"\xff\xc2")
        .unwrap();
    let mut full = progressive.clone();
    full[frame + 11] = 0x11;
    let code = read("jpeg 6,000 progressive without subsampling", &full, false);
    assert_eq!(code, "unsupported_image");
    let webp = large.webp();
    assert_eq!(read("webp 6,000 lossless", &webp, false), "ok");
    let code = read("webp of tables", &webp_of_tables(), false);
    assert_eq!(code, "unsupported_image");
    let gif = gif(&[Picture::filled(6_000, 6_000, [0; 4])]);
    assert_eq!(read("gif 6,000", &gif, false), "ok");
}

#[cfg(target_os = "linux")]
#[test]
fn p13_sound_is_read_or_refused_within_the_memory_budget() {
    use measured::read;

    let sine = "sine=frequency=440:duration=15:sample_rate=44100";
    for (name, arguments) in [
        ("mp3", "-f mp3"),
        ("flac", "-f flac"),
        ("m4a", "-f ipod"),
        ("opus", "-c:a libopus -f ogg"),
    ] {
        let file = crate::samples::ffmpeg(sine, &format!("-ar 48000 -ac 2 {arguments}"));
        assert_eq!(read(name, &file, true), "ok");
    }
    let long = crate::samples::ffmpeg("anullsrc=r=384000:cl=stereo:d=2000", "-c:a flac -f flac");
    assert_eq!(
        read("flac of 2,000 s at 384 kHz", &long, true),
        "audio_too_long"
    );
}

#[test]
fn p13_headers_that_lie_about_their_size_cost_nothing() {
    let honest = picture(300, 300).png();
    for (width, height, expected) in [
        (u32::MAX, u32::MAX, "unsupported_image"),
        (
            0x7fff_ffff,
            0x7fff_ffff,
            "unsupported_image image_too_large",
        ),
        (0, 300, "unsupported_image"),
        (6_000, 6_000, "unsupported_image"),
        (300, 299, "unsupported_image ok"),
    ] {
        let mut file = honest.clone();
        file[16..20].copy_from_slice(&width.to_be_bytes());
        file[20..24].copy_from_slice(&height.to_be_bytes());
        let sum = crc32fast::hash(&file[12..29]).to_be_bytes();
        file[29..33].copy_from_slice(&sum);
        let code = code(&image(&file));
        assert!(expected.contains(&code), "{width} x {height}: {code}");
    }
}

#[test]
fn p13_endless_scans_are_refused() {
    let progressive = jpeg(&picture(600, 600), jpeg_encoder::ColorType::Rgb, true);
    let last = progressive
        .windows(2)
        .rposition(|two| two == b"\xff\xda")
        .unwrap();
    let (start, scan) = (
        &progressive[..last],
        &progressive[last..progressive.len() - 2],
    );
    let bomb = [start, &scan.repeat(5_000), b"\xff\xd9"].concat();
    assert_eq!(code(&image(&bomb)), "unsupported_image");
}

#[test]
fn p13_a_cut_image_is_never_taken_for_a_whole_one() {
    let original = picture(300, 280);
    let jpeg = |progressive| jpeg(&original, jpeg_encoder::ColorType::Rgb, progressive);
    // A thumbnail's end marker inside the metadata is not the end of the image.
    let thumbnail = jpeg_with_exif(&jpeg(false), b"II\x2a\0\xff\xd8\xff\xd9");
    for (name, file) in [
        ("png", original.png()),
        ("webp", original.webp()),
        ("jpeg", jpeg(false)),
        ("jpeg progressive", jpeg(true)),
        ("jpeg with thumbnail", thumbnail),
    ] {
        assert_eq!(code(&image(&file)), "ok", "{name}");
        let cuts = (0..file.len())
            .step_by(file.len() / 60)
            .chain([file.len() - 20])
            // The end of a PNG and the marker of a JPEG may be missing.
            .filter(|cut| cut + 20 <= file.len());
        for cut in cuts {
            assert_eq!(
                code(&image(&file[..cut])),
                "unsupported_image",
                "{name} cut at {cut}"
            );
            let size = image_size(&file[..cut]);
            assert!(
                matches!(size, Ok((300, 280)) | Err(_)),
                "{name} cut at {cut}"
            );
        }
    }
    let gif = gif(&[Picture::filled(300, 280, [0; 4])]);
    assert_eq!(code(&image(&gif[..gif.len() / 2])), "unsupported_image");
}
