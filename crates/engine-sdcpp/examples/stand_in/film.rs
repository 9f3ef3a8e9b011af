//! Films as the server writes them: AVI with JPEG frames. Their colours follow the request.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use jpeg_encoder::{ColorType, Encoder};
use serde_json::Value;

const RATE_HZ: u32 = 24_000;

/// The film of a request; `mode` may make it a wrong one.
pub(crate) fn make(request: &Value, mode: &str, has_sound: bool) -> Vec<u8> {
    if mode == "no-film" {
        return b"JUNK\x04\0\0\0junk".to_vec();
    }
    let number = |key: &str| request[key].as_u64().unwrap_or(0) as u32;
    let (mut width, height, mut frames) =
        (number("width"), number("height"), number("video_frames"));
    match mode {
        "wrong-size" => width += 16,
        "few-frames" => frames -= 1,
        _ => {}
    }
    let mut hasher = DefaultHasher::new();
    let mut told = request.clone();
    if told["vace_strength"] == 0.0 {
        told["control_frames"].take();
    }
    told.to_string().hash(&mut hasher);
    let jpegs: Vec<Vec<u8>> = (0..frames)
        .map(|index| {
            jpeg(
                width,
                height,
                hasher.finish().wrapping_add(u64::from(index) * 40),
            )
        })
        .collect();
    let samples = number("fps").max(1);
    let samples = has_sound.then(|| sound(RATE_HZ * frames / samples));
    let mut file = avi(width, height, &jpegs, samples.as_deref());
    if mode == "broken-film" {
        // The length of the first frame.
        let place = file.windows(4).position(|four| four == b"00dc");
        if let Some(place) = place {
            file[place + 7] = 0x7f;
        }
    }
    file
}

/// A slope from one colour to another.
fn jpeg(width: u32, height: u32, number: u64) -> Vec<u8> {
    let [red, green, blue, ..] = number.to_le_bytes();
    let rgb: Vec<u8> = (0..width * height)
        .flat_map(|place| [red, green.wrapping_add((place % width) as u8), blue])
        .collect();
    let mut bytes = Vec::new();
    let side = |side: u32| u16::try_from(side).unwrap_or(u16::MAX);
    let encoder = Encoder::new(&mut bytes, 90);
    // An error leaves a broken frame, which a test sees.
    let _ = encoder.encode(&rgb, side(width), side(height), ColorType::Rgb);
    bytes
}

fn sound(samples: u32) -> Vec<u8> {
    (0..samples)
        .flat_map(|index| ((index % 200) as i16 * 100).to_le_bytes())
        .collect()
}

fn chunk(id: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = [id.as_slice(), &(body.len() as u32).to_le_bytes(), body].concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

fn list(id: &[u8; 4], parts: &[Vec<u8>]) -> Vec<u8> {
    chunk(b"LIST", &[id.as_slice(), &parts.concat()].concat())
}

fn avi(width: u32, height: u32, jpegs: &[Vec<u8>], pcm: Option<&[u8]>) -> Vec<u8> {
    let [width, height] = [width, height].map(u32::to_le_bytes);
    let picture = [
        &[40, 0, 0, 0],
        &width,
        &height,
        [1, 0, 24, 0].as_slice(),
        b"MJPG",
    ]
    .concat();
    let stream = |kind: &[u8; 4], format: &[u8]| {
        list(
            b"strl",
            &[
                chunk(b"strh", &[kind.as_slice(), &[0; 52]].concat()),
                chunk(b"strf", format),
            ],
        )
    };
    let mut headers = vec![chunk(b"avih", &[0; 56]), stream(b"vids", &picture)];
    let mut contents: Vec<Vec<u8>> = jpegs.iter().map(|jpeg| chunk(b"00dc", jpeg)).collect();
    if let Some(pcm) = pcm {
        let (rate, bytes) = (RATE_HZ.to_le_bytes(), (RATE_HZ * 2).to_le_bytes());
        let format = [[1, 0, 1, 0], rate, bytes, [2, 0, 16, 0]].concat();
        headers.push(stream(b"auds", &format));
        contents.push(chunk(b"01wb", pcm));
    }
    let parts = [list(b"hdrl", &headers), list(b"movi", &contents)].concat();
    chunk(b"RIFF", &[b"AVI ".as_slice(), &parts].concat())
}
