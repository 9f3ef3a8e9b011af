//! Honest sound comes out with its pitch, length, level and place, from every format.

use kinora_media_decode::{DecodedSound, SAMPLE_RATE};

use crate::samples::{ffmpeg, sound, wav_claiming};

const FORMATS: &[(&str, &str)] = &[
    ("wav u8", "-c:a pcm_u8 -f wav"),
    ("wav s16", "-c:a pcm_s16le -f wav"),
    ("wav s24", "-c:a pcm_s24le -f wav"),
    ("wav f32", "-c:a pcm_f32le -f wav"),
    ("wav ima", "-c:a adpcm_ima_wav -f wav"),
    ("wav ms", "-c:a adpcm_ms -f wav"),
    ("mp3", "-c:a libmp3lame -b:a 128k -f mp3"),
    (
        "mp3 without tags",
        "-c:a libmp3lame -b:a 128k -write_xing 0 -id3v2_version 0 -f mp3",
    ),
    ("m4a", "-c:a aac -b:a 128k -f ipod"),
    (
        "m4a faststart",
        "-c:a aac -b:a 128k -movflags +faststart -f mp4",
    ),
    ("m4a alac", "-c:a alac -f ipod"),
    ("adts", "-c:a aac -b:a 128k -f adts"),
    ("flac", "-c:a flac -f flac"),
    ("ogg vorbis", "-c:a libvorbis -q:a 5 -f ogg"),
    ("ogg flac", "-c:a flac -f ogg"),
    ("ogg opus", "-c:a libopus -b:a 96k -f ogg"),
    ("webm opus", "-c:a libopus -b:a 96k -f webm"),
    (
        "webm opus live",
        "-c:a libopus -b:a 96k -live 1 -cluster_time_limit 500 -f webm",
    ),
    ("webm vorbis", "-c:a libvorbis -q:a 5 -f webm"),
    ("matroska flac", "-c:a flac -f matroska"),
    ("mp4 opus", "-c:a libopus -b:a 96k -f mp4"),
];

fn side(sound: &DecodedSound, side: usize) -> Vec<f32> {
    sound.pcm.chunks_exact(2).map(|frame| frame[side]).collect()
}

/// Pitch in Hz by zero crossings, and amplitude of a sine by its root mean square.
fn tone(samples: &[f32]) -> (f64, f64) {
    let crossings = samples
        .windows(2)
        .filter(|two| two[0] < 0.0 && two[1] >= 0.0);
    let indices: Vec<usize> = samples
        .windows(2)
        .enumerate()
        .filter(|(_, two)| two[0] < 0.0 && two[1] >= 0.0)
        .map(|(index, _)| index)
        .collect();
    let periods = crossings.count() - 1;
    let length = (indices[periods] - indices[0]) as f64 / f64::from(SAMPLE_RATE);
    let power: f64 = samples.iter().map(|&one| f64::from(one).powi(2)).sum();
    (
        periods as f64 / length,
        (2.0 * power / samples.len() as f64).sqrt(),
    )
}

fn assert_tone(samples: &[f32], pitch: f64, amplitude: f64, name: &str) {
    let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
    let (found, level) = tone(middle);
    assert!(
        (found / pitch - 1.0).abs() < 0.01,
        "{name}: {found} Hz, not {pitch}"
    );
    assert!(
        (level / amplitude - 1.0).abs() < 0.08,
        "{name}: {level}, not {amplitude}"
    );
}

#[test]
fn every_format_keeps_pitch_length_and_level_of_both_sides() {
    for rate in [44_100, 48_000, 22_050] {
        let source = format!("aevalsrc=0.5*sin(2*PI*440*t)|0.25*sin(2*PI*1000*t):s={rate}:d=2.5");
        for (name, arguments) in FORMATS {
            if name.contains("opus") && rate != 48_000 {
                continue;
            }
            let decoded = sound(&ffmpeg(&source, arguments)).unwrap();
            let name = format!("{name} at {rate}");
            let seconds = decoded.seconds();
            // ADTS and MP3 without tags have no place to say what is padding.
            let tolerance = if name.contains("adts") || name.contains("without") {
                0.12
            } else {
                0.05
            };
            assert!((seconds - 2.5).abs() < tolerance, "{name}: {seconds} s");
            assert_tone(&side(&decoded, 0), 440.0, 0.5, &name);
            assert_tone(&side(&decoded, 1), 1_000.0, 0.25, &name);
            assert!(decoded.pcm.iter().all(|one| one.abs() <= 1.0), "{name}");
        }
    }
}

#[test]
fn a_beep_stays_where_it_was() {
    let source = "aevalsrc=0.5*sin(2*PI*2000*t)*between(t\\,1\\,2):s=44100:d=3";
    for (name, arguments) in FORMATS {
        let decoded = sound(&ffmpeg(source, &format!("-ar 48000 {arguments}"))).unwrap();
        let left = side(&decoded, 0);
        let start = left.iter().position(|one| one.abs() > 0.2).unwrap();
        let off_ms = (start as f64 / f64::from(SAMPLE_RATE) - 1.0) * 1_000.0;
        let tolerance_ms = if name.contains("adts") || name.contains("without") {
            60.0
        } else {
            6.0
        };
        assert!(off_ms.abs() < tolerance_ms, "{name}: {off_ms} ms off");
    }
}

#[test]
fn mono_goes_to_both_sides_at_full_level() {
    for rate in [
        8_000, 11_025, 16_000, 32_000, 88_200, 96_000, 192_000, 44_101,
    ] {
        let source = format!("aevalsrc=0.5*sin(2*PI*1000*t):s={rate}:d=2");
        let decoded = sound(&ffmpeg(&source, "-c:a pcm_s16le -f wav")).unwrap();
        assert!(
            (decoded.seconds() - 2.0).abs() < 0.001,
            "{rate}: {}",
            decoded.seconds()
        );
        assert_eq!(side(&decoded, 0), side(&decoded, 1));
        assert_tone(&side(&decoded, 0), 1_000.0, 0.5, &rate.to_string());
    }
}

#[test]
fn more_channels_are_mixed_down_without_clipping() {
    for (name, arguments) in FORMATS {
        // 5.1 in AAC is not read; the old ADPCM and MP3 have two channels at most.
        if ["aac", "adpcm", "mp3lame"]
            .iter()
            .any(|one| arguments.contains(one))
        {
            continue;
        }
        for loud in [0, 2, 3] {
            let mut channels = ["0"; 6];
            channels[loud] = "0.9*sin(2*PI*500*t)";
            let source = format!("aevalsrc={}:c=5.1:s=48000:d=2", channels.join("|"));
            // Opus places its channels only when asked to.
            let arguments = arguments.replace("libopus", "libopus -mapping_family 1");
            let file = ffmpeg(&source, &arguments);
            let decoded = sound(&file).unwrap();
            let name = format!("{name}, channel {loud}");
            let (left, right) = (side(&decoded, 0), side(&decoded, 1));
            let quiet = |samples: &[f32]| samples[4_800..90_000].iter().all(|one| one.abs() < 0.02);
            match loud {
                0 => {
                    assert_tone(&left, 500.0, 0.9 / 2.414, &name);
                    assert!(quiet(&right), "{name}");
                }
                2 => {
                    assert_tone(&left, 500.0, 0.9 * 0.707 / 2.414, &name);
                    assert_tone(&right, 500.0, 0.9 * 0.707 / 2.414, &name);
                }
                _ => assert!(
                    quiet(&left) && quiet(&right),
                    "{name}: low frequencies are left out"
                ),
            }
        }
    }
}

#[test]
fn samples_that_are_no_number_are_silent_and_loud_ones_are_held() {
    let values = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e30,
        -1e30,
        0.25,
    ];
    for rate in [48_000, 44_100] {
        let data: Vec<u8> = (0..2 * rate as usize)
            .flat_map(|index| values[index % values.len()].to_le_bytes())
            .collect();
        let bytes = u32::try_from(data.len()).unwrap();
        let decoded = sound(&wav_claiming(3, rate, 1, &data, bytes)).unwrap();
        assert!(
            decoded
                .pcm
                .iter()
                .all(|one| one.is_finite() && one.abs() <= 1.0)
        );
    }
}

#[test]
fn lossy_padding_does_not_make_fifteen_seconds_too_long() {
    let source = "aevalsrc=0.5*sin(2*PI*440*t):s=44100:d=15";
    for (name, arguments) in FORMATS {
        let decoded = sound(&ffmpeg(source, &format!("-ar 48000 {arguments}"))).unwrap();
        assert!(
            (decoded.seconds() - 15.0).abs() < 0.03,
            "{name}: {}",
            decoded.seconds()
        );
    }
    let source = "aevalsrc=0.5*sin(2*PI*440*t):s=48000:d=15.5";
    for (name, arguments) in FORMATS {
        let result = sound(&ffmpeg(source, arguments));
        assert_eq!(crate::samples::code(&result), "audio_too_long", "{name}");
    }
}

#[test]
fn aac_of_more_than_two_channels_is_refused_cleanly() {
    let source = "aevalsrc=0.1|0.1|0.1|0.1|0.1|0.1:c=5.1:s=48000:d=2";
    for arguments in ["-c:a aac -f ipod", "-c:a aac -f adts"] {
        let result = sound(&ffmpeg(source, arguments));
        assert_eq!(
            crate::samples::code(&result),
            "unsupported_audio",
            "{arguments}"
        );
    }
}
