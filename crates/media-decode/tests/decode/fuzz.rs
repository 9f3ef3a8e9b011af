//! Damaged files of every format, from fixed seeds: whatever is wrong with them, reading them
//! ends, and ends in a result or a listed code.

use crate::pictures::gif;
use crate::samples::{Seeded, code, ffmpeg, image, image_size, jpeg, picture, sound, wav};

/// Damaged copies per format.
const ROUNDS: u64 = 60;

fn damaged(file: &[u8], seed: u64) -> Vec<u8> {
    let mut seeded = Seeded(seed);
    let mut file = file.to_vec();
    // Headers decide most: half of all damage is done there.
    let reach = if seed.is_multiple_of(2) {
        file.len().min(600)
    } else {
        file.len()
    };
    for _ in 0..=seeded.below(12) {
        let at = seeded.below(reach.min(file.len()));
        match seeded.below(5) {
            0 => file[at] ^= 1 << seeded.below(8),
            1 => file[at] = 0xff,
            2 => file[at] = 0,
            3 => {
                let end = (at + 4).min(file.len());
                file[at..end].fill(seeded.next() as u8);
            }
            _ => {
                let length = seeded.below(40).min(file.len() - at);
                let piece = file[at..at + length].to_vec();
                let to = seeded.below(file.len());
                file.splice(to..to, piece);
            }
        }
    }
    if seeded.below(4) == 0 {
        file.truncate(seeded.below(file.len()).max(1));
    }
    file
}

#[test]
fn damaged_images_end_in_a_result_or_a_listed_code() {
    let original = picture(280, 300);
    let rgba = original.map(|[red, green, blue]| [red, green, blue, 255]);
    let animated = ffmpeg("testsrc=s=280x300:d=1:r=3", "-c:v libwebp_anim -f webp");
    let lossy = ffmpeg(
        "testsrc=s=280x300:d=1:r=1",
        "-c:v libwebp -frames:v 1 -f webp",
    );
    for (name, file) in [
        ("png", original.png()),
        ("webp", rgba.webp()),
        ("webp lossy", lossy),
        ("webp animated", animated),
        ("gif", gif(&[rgba])),
        ("jpeg", jpeg(&original, jpeg_encoder::ColorType::Rgb, false)),
        (
            "jpeg progressive",
            jpeg(&original, jpeg_encoder::ColorType::Rgb, true),
        ),
        (
            "jpeg cmyk",
            jpeg(&original, jpeg_encoder::ColorType::Cmyk, false),
        ),
    ] {
        assert_eq!(code(&image(&file)), "ok", "{name}");
        for seed in 0..ROUNDS {
            let file = damaged(&file, seed);
            let _ = image_size(&file);
            let result = image(&file);
            if let Ok(image) = &result {
                let pixels = image.width as usize * image.height as usize;
                assert_eq!(image.rgb.len(), pixels * 3, "{name}, seed {seed}");
            }
            let code = code(&result);
            assert!(
                code == "ok" || code.contains("image") || code == "invalid_aspect_ratio",
                "{name}, seed {seed}: {code}"
            );
        }
    }
}

#[test]
fn damaged_sound_ends_in_a_result_or_a_listed_code() {
    let source = "aevalsrc=0.5*sin(2*PI*440*t)|0.2*random(0):s=48000:d=2";
    let made = [
        "-c:a adpcm_ima_wav -f wav",
        "-c:a adpcm_ms -f wav",
        "-c:a libmp3lame -f mp3",
        "-c:a aac -f ipod",
        "-c:a alac -movflags +faststart -f ipod",
        "-c:a aac -f adts",
        "-c:a flac -f flac",
        "-c:a libvorbis -f ogg",
        "-c:a libopus -f ogg",
        "-c:a libopus -f webm",
        "-c:a libvorbis -f matroska",
        "-c:a libopus -f mp4",
    ];
    let made = made.map(|arguments| (arguments, ffmpeg(source, arguments)));
    for (name, file) in made.into_iter().chain([("wav", wav(8_000, 12_000))]) {
        assert_eq!(code(&sound(&file)), "ok", "{name}");
        for seed in 0..ROUNDS {
            let result = sound(&damaged(&file, seed));
            if let Ok(sound) = &result {
                let length = sound.pcm.len();
                assert!(length.is_multiple_of(2) && sound.seconds() <= 15.0);
                assert!(
                    sound
                        .pcm
                        .iter()
                        .all(|one| one.is_finite() && one.abs() <= 1.0)
                );
            }
            let code = code(&result);
            assert!(
                code == "ok" || code.contains("audio"),
                "{name}, seed {seed}: {code}"
            );
        }
        for cut in (0..file.len()).step_by(file.len() / 40) {
            let code = code(&sound(&file[..cut]));
            assert!(
                code == "ok" || code.contains("audio"),
                "{name} cut at {cut}: {code}"
            );
        }
    }
}
