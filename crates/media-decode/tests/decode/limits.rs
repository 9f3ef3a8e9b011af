//! Each bound: at it, past it, and absurdly far past it. And the type is what the bytes say.

use crate::pictures::Picture;
use crate::samples::{
    code, exif, image, image_size, jpeg, picture, png_with_chunk, sound, wav, wav_claiming,
    with_file,
};

#[test]
fn the_size_of_an_image_is_judged_at_its_bounds() {
    for (width, height, expected) in [
        (256, 256, "ok"),
        (255, 256, "image_too_small"),
        (256, 255, "image_too_small"),
        (1, 1, "image_too_small"),
        (6_000, 2_400, "ok"),
        (6_001, 2_500, "image_too_large"),
        (2_500, 6_001, "image_too_large"),
        (640, 256, "ok"),
        (641, 256, "invalid_aspect_ratio"),
        (256, 640, "ok"),
        (256, 641, "invalid_aspect_ratio"),
        (6_000, 256, "invalid_aspect_ratio"),
    ] {
        let file = Picture::filled(width, height, [0]).png();
        assert_eq!(code(&image_size(&file)), expected, "{width} x {height}");
        let result = with_file(&file, |path| kinora_media_decode::image(path, (64, 64)));
        assert_eq!(code(&result), expected, "{width} x {height}");
        if let Err(error) = result {
            let message = error.failure().message;
            assert!(
                message.contains(&format!("{width}x{height} pixels")),
                "{message}"
            );
        }
    }
}

#[test]
fn the_upright_size_is_judged() {
    let file = Picture::filled(900, 300, [0]).png();
    let file = png_with_chunk(&file, b"eXIf", &exif(6, false));
    let message = image_size(&file).unwrap_err().failure().message;
    assert!(message.contains("300x900"), "{message}");
}

#[test]
fn the_length_of_a_sound_is_judged_by_its_samples() {
    for (frames, expected) in [
        (8_000, "ok"),
        (7_999, "audio_too_short"),
        (0, "unsupported_audio"),
        (15 * 8_000, "ok"),
        (15 * 8_000 + 800, "ok"),
        (15 * 8_000 + 801, "audio_too_long"),
        (600 * 8_000, "audio_too_long"),
    ] {
        let result = sound(&wav(8_000, frames));
        assert_eq!(code(&result), expected, "{frames}");
        if let Ok(sound) = result {
            assert!(sound.seconds() <= 15.0, "padding is cut off");
        }
    }
    let data = vec![0; 2 * 16_000];
    for claimed_bytes in [0xffff_ffff, 0x7fff_fff0, 32_001] {
        let lying = wav_claiming(1, 8_000, 1, &data, claimed_bytes);
        let sound = sound(&lying).unwrap();
        assert!((sound.seconds() - 2.0).abs() < 0.05, "{}", sound.seconds());
    }
}

#[test]
fn a_file_over_its_bytes_is_refused_unread() {
    let too_large = vec![0xff; 30_000_001];
    assert_eq!(code(&image(&too_large)), "reference_too_large");
    assert_eq!(code(&image_size(&too_large)), "reference_too_large");
    assert_eq!(
        code(&sound(&too_large[..15_000_001])),
        "reference_too_large"
    );
    assert_eq!(code(&sound(&too_large[..15_000_000])), "unsupported_audio");
}

#[test]
fn a_missing_file_is_a_fault_of_the_storage() {
    let nowhere = std::path::Path::new("/nonexistent/reference");
    let error = kinora_media_decode::image(nowhere, (1, 1))
        .unwrap_err()
        .failure();
    assert_eq!(error.code, "storage_failed");
    assert!(!error.message.contains("nonexistent"));
    assert_eq!(code(&kinora_media_decode::sound(nowhere)), "storage_failed");
}

#[test]
fn content_decides_the_type_and_not_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.mp3");
    std::fs::write(
        &path,
        jpeg(&picture(300, 300), jpeg_encoder::ColorType::Rgb, false),
    )
    .unwrap();
    assert_eq!(
        kinora_media_decode::image(&path, (50, 50)).unwrap().width,
        50
    );
    assert_eq!(
        code(&kinora_media_decode::sound(&path)),
        "unsupported_audio"
    );
    let path = folder.path().join("sound.png");
    std::fs::write(&path, wav(8_000, 9_000)).unwrap();
    assert!(kinora_media_decode::sound(&path).is_ok());
    assert_eq!(
        code(&kinora_media_decode::image(&path, (50, 50))),
        "unsupported_image"
    );
}

#[test]
fn types_that_are_not_listed_are_refused() {
    let page = b"<!DOCTYPE html><svg></svg>".repeat(100);
    let bitmap = [&b"BM\x36\0\x03\0\0\0\0\0\x36\0\0\0"[..], &[0; 1_000]].concat();
    let tiff = [&b"II\x2a\0\x08\0\0\0"[..], &[0; 1_000]].concat();
    let zeros = vec![0; 1 << 20];
    for file in [
        &page[..],
        &bitmap,
        &tiff,
        &zeros,
        b"",
        b"\xff",
        b"RIFF",
        b"OggS",
        b"ID3",
    ] {
        assert_eq!(code(&image(file)), "unsupported_image");
        assert_eq!(code(&image_size(file)), "unsupported_image");
        assert_eq!(code(&sound(file)), "unsupported_audio");
    }
}
