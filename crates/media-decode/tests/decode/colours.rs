//! Pictures with a colour profile come out in sRGB. The expected colours are computed from
//! the definitions of the spaces.

use jpeg_encoder::ColorType;
use kinora_media_decode::{DecodedImage, PROFILE_IGNORED_CHUNK};
use moxcms::ColorProfile;

use crate::pictures::Picture;
use crate::samples::{image, jpeg, picture, png_with_chunk};

const STORED: [u8; 3] = [200, 120, 60];
const FROM_P3: [u8; 3] = [213, 115, 42];
const FROM_ADOBE: [u8; 3] = [224, 121, 53];

fn icc(profile: &ColorProfile) -> Vec<u8> {
    profile.encode().unwrap()
}

fn png_with_profile(png: &[u8], profile: &[u8]) -> Vec<u8> {
    let mut body = b"any name\0\0".to_vec();
    let mut deflated = flate2::write::ZlibEncoder::new(&mut body, flate2::Compression::default());
    std::io::Write::write_all(&mut deflated, profile).unwrap();
    deflated.finish().unwrap();
    png_with_chunk(png, b"iCCP", &body)
}

/// The profile in pieces of `length`, behind the start of the file.
fn jpeg_with_profile(jpeg: &[u8], profile: &[u8], length: usize) -> Vec<u8> {
    let count = u8::try_from(profile.len().div_ceil(length)).unwrap();
    let mut file = jpeg[..2].to_vec();
    for (number, piece) in (1..).zip(profile.chunks(length)) {
        file.extend([0xff, 0xe2]);
        file.extend(u16::try_from(16 + piece.len()).unwrap().to_be_bytes());
        file.extend(b"ICC_PROFILE\0");
        file.extend([number, count]);
        file.extend(piece);
    }
    file.extend(&jpeg[2..]);
    file
}

fn webp_with_profile(picture: &Picture<3>, profile: Vec<u8>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = image_webp::WebPEncoder::new(&mut file);
    encoder.set_icc_profile(profile);
    let color = image_webp::ColorType::Rgb8;
    encoder
        .encode(picture.bytes(), picture.width, picture.height, color)
        .unwrap();
    file
}

fn assert_near(image: &DecodedImage, expected: [u8; 3], name: &str) {
    assert!(!image.profile_ignored, "{name}");
    // JPEG keeps colours less exactly.
    let most = if name.starts_with("jpeg") { 12 } else { 3 };
    for pixel in image.rgb.chunks_exact(3) {
        let near = pixel
            .iter()
            .zip(expected)
            .all(|(one, other)| one.abs_diff(other) <= most);
        assert!(near, "{name}: {pixel:?}, not {expected:?}");
    }
}

fn points(primaries: u8, transfer: u8) -> [u8; 4] {
    [primaries, transfer, 0, 1]
}

#[test]
fn profiles_of_a_matrix_and_curves_are_converted_in_every_format() {
    let flat = Picture::filled(256, 256, STORED);
    let opaque = flat.map(|[red, green, blue]| [red, green, blue, 255]);
    let plain = jpeg(&flat, ColorType::Rgb, false);
    for (profile, expected) in [
        (ColorProfile::new_display_p3(), FROM_P3),
        (ColorProfile::new_adobe_rgb(), FROM_ADOBE),
    ] {
        let icc = icc(&profile);
        for (name, file) in [
            ("jpeg", jpeg_with_profile(&plain, &icc, 60_000)),
            ("jpeg in pieces", jpeg_with_profile(&plain, &icc, 100)),
            ("png", png_with_profile(&flat.png(), &icc)),
            (
                "png of 16 bits",
                png_with_profile(&flat.png_of_16_bits(), &icc),
            ),
            ("png with alpha", png_with_profile(&opaque.png(), &icc)),
            ("webp", webp_with_profile(&flat, icc.clone())),
        ] {
            assert_near(&image(&file).unwrap(), expected, name);
        }
    }
}

#[test]
fn the_chunks_of_a_png_count_by_their_rank() {
    let flat = Picture::filled(256, 256, STORED).png();
    let p3 = icc(&ColorProfile::new_display_p3());
    let gamma = |value: u32| value.to_be_bytes();
    // Display P3 and sRGB.
    let wide = [
        31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000_u32,
    ];
    let wide: Vec<u8> = wide.map(u32::to_be_bytes).concat();
    let with_chunk = |file: &[u8], kind: &[u8; 4], body: &[u8]| png_with_chunk(file, kind, body);
    let with_primaries = with_chunk(&flat, b"cHRM", &wide);
    let with_both = with_chunk(&with_primaries, b"gAMA", &gamma(45_455));
    for (name, file, expected) in [
        (
            "code points",
            with_chunk(&flat, b"cICP", &points(12, 13)),
            FROM_P3,
        ),
        ("primaries", with_primaries, FROM_P3),
        ("primaries and gamma", with_both.clone(), FROM_P3),
        (
            "a gamma that is near",
            with_chunk(&flat, b"gAMA", &gamma(45_455)),
            STORED,
        ),
        (
            "a film's code points",
            with_chunk(&flat, b"cICP", &points(1, 1)),
            STORED,
        ),
        (
            "a film's primaries in code points",
            with_chunk(&flat, b"cICP", &points(12, 1)),
            FROM_P3,
        ),
        (
            "sRGB before gamma",
            with_chunk(&with_both, b"sRGB", &[0]),
            STORED,
        ),
        (
            "a profile before sRGB",
            png_with_profile(&with_chunk(&flat, b"sRGB", &[0]), &p3),
            FROM_P3,
        ),
        (
            "code points before a profile",
            with_chunk(&png_with_profile(&flat, &p3), b"cICP", &points(1, 13)),
            STORED,
        ),
    ] {
        assert_near(&image(&file).unwrap(), expected, name);
    }
    let linear = image(&with_chunk(&flat, b"gAMA", &gamma(100_000))).unwrap();
    assert_near(&linear, [229, 182, 133], "linear");
}

/// A frame of a film keeps its colours: FFmpeg notes the primaries and the curve of BT.709.
#[test]
fn a_frame_of_a_film_changes_no_byte() {
    let original = picture(300, 280);
    let primaries = [
        31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000_u32,
    ];
    let primaries: Vec<u8> = primaries.map(u32::to_be_bytes).concat();
    let file = png_with_chunk(&original.png(), b"gAMA", &50_994_u32.to_be_bytes());
    let file = png_with_chunk(&file, b"cHRM", &primaries);
    assert!(image(&file).unwrap() == image(&original.png()).unwrap());
}

#[test]
fn grey_profiles_are_converted() {
    let grey = icc(&ColorProfile::new_gray_with_gamma(1.0));
    let flat = Picture::filled(256, 256, [55]);
    let clear = Picture::filled(256, 256, [55, 255]);
    let luma = jpeg(&Picture::filled(256, 256, [55; 3]), ColorType::Luma, false);
    for (name, file) in [
        ("png", png_with_profile(&flat.png(), &grey)),
        ("png with alpha", png_with_profile(&clear.png(), &grey)),
        ("jpeg", jpeg_with_profile(&luma, &grey, 60_000)),
    ] {
        assert_near(&image(&file).unwrap(), [128; 3], name);
    }
    // Left by programs that took the colours away.
    let p3 = icc(&ColorProfile::new_display_p3());
    let file = png_with_profile(&flat.png(), &p3);
    assert_near(&image(&file).unwrap(), [55; 3], "a profile of colours");
}

#[test]
fn srgb_in_any_words_changes_no_byte() {
    let original = picture(300, 280);
    let srgb = icc(&ColorProfile::new_srgb());
    let plain = jpeg(&original, ColorType::Rgb, false);
    for (file, with_profile) in [
        (plain.clone(), jpeg_with_profile(&plain, &srgb, 60_000)),
        (original.png(), png_with_profile(&original.png(), &srgb)),
        (
            original.png(),
            png_with_chunk(&original.png(), b"cICP", &points(1, 13)),
        ),
        (original.webp(), webp_with_profile(&original, srgb.clone())),
    ] {
        assert!(image(&with_profile).unwrap() == image(&file).unwrap());
    }
}

#[test]
fn what_cannot_be_converted_stays_and_is_told() {
    let original = picture(300, 280);
    let png = original.png();
    let plain = jpeg(&original, ColorType::Rgb, false);
    let cmyk = jpeg(&original, ColorType::Cmyk, false);
    // A profile of an unknown kind: its space is CMYK.
    let mut printer = icc(&ColorProfile::new_display_p3());
    printer[16..20].copy_from_slice(b"CMYK");
    let grey = icc(&ColorProfile::new_gray_with_gamma(2.2));
    let p3 = icc(&ColorProfile::new_display_p3());
    let mut lost = jpeg_with_profile(&plain, &p3, 100);
    lost[2 + 4 + 12] = 9;
    let huge = vec![0x41; 5 << 20];
    // As many tags as its bytes have room for, all alike.
    let mut many = p3[..128].to_vec();
    many.extend(100_000_u32.to_be_bytes());
    many.extend(p3[132..144].repeat(100_000));
    for (name, before, file) in [
        ("cmyk", &cmyk, jpeg_with_profile(&cmyk, &printer, 60_000)),
        (
            "a grey profile",
            &plain,
            jpeg_with_profile(&plain, &grey, 60_000),
        ),
        (
            "no profile",
            &plain,
            jpeg_with_profile(&plain, b"garbage", 60_000),
        ),
        ("a cut profile", &png, png_with_profile(&png, &p3[..200])),
        ("a lost piece", &plain, lost),
        ("many tags", &png, png_with_profile(&png, &many)),
        ("PQ", &png, png_with_chunk(&png, b"cICP", &points(9, 16))),
        ("HLG", &png, png_with_chunk(&png, b"cICP", &points(9, 18))),
        (
            "no points",
            &png,
            png_with_chunk(&png, b"cICP", &points(200, 200)),
        ),
        (
            "a wild gamma",
            &png,
            png_with_chunk(&png, b"gAMA", &[0, 0, 0, 1]),
        ),
        ("much deflated", &png, png_with_profile(&png, &huge)),
        (
            "no deflate",
            &png,
            png_with_chunk(&png, b"iCCP", b"name\0\0garbage"),
        ),
        (
            "noted before",
            &png,
            png_with_chunk(&png, &PROFILE_IGNORED_CHUNK, b""),
        ),
        (
            "in webp",
            &original.webp(),
            webp_with_profile(&original, b"garbage".to_vec()),
        ),
    ] {
        let decoded = image(&file).unwrap();
        assert!(decoded.profile_ignored, "{name}");
        assert!(decoded.rgb == image(before).unwrap().rgb, "{name}");
    }
}

#[test]
fn damaged_profiles_end_in_a_picture() {
    let mut seeded = crate::samples::Seeded(11);
    let flat = Picture::filled(256, 256, STORED).png();
    for profile in [
        ColorProfile::new_display_p3(),
        ColorProfile::new_gray_with_gamma(2.2),
    ] {
        let whole = icc(&profile);
        for _ in 0..300 {
            let mut damaged = whole.clone();
            for _ in 0..=seeded.below(8) {
                let at = seeded.below(damaged.len());
                damaged[at] = seeded.next() as u8;
            }
            damaged.truncate(damaged.len() - seeded.below(2) * seeded.below(damaged.len()));
            assert!(image(&png_with_profile(&flat, &damaged)).is_ok());
        }
    }
}
