//! Files to test with: images by public encoders, sound by a hand-written WAV writer and by
//! ffmpeg, and the parts of hostile ones. It decodes nothing.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use kinora_media_decode::{DecodeError, DecodedImage, DecodedSound};

use crate::pictures::Picture;

/// Writes `bytes` to a file whose name says nothing and hands its path to `read`.
pub(crate) fn with_file<T>(bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    let mut file = tempfile::Builder::new().suffix(".bin").tempfile().unwrap();
    file.write_all(bytes).unwrap();
    read(file.path())
}

pub(crate) fn image(bytes: &[u8]) -> Result<DecodedImage, DecodeError> {
    with_file(bytes, |path| {
        kinora_media_decode::image(path, (6_000, 6_000))
    })
}

pub(crate) fn image_size(bytes: &[u8]) -> Result<(u32, u32), DecodeError> {
    with_file(bytes, kinora_media_decode::image_size)
}

pub(crate) fn sound(bytes: &[u8]) -> Result<DecodedSound, DecodeError> {
    with_file(bytes, kinora_media_decode::sound)
}

/// The stable code of a refusal, or `ok`.
pub(crate) fn code<T>(result: &Result<T, DecodeError>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.failure().code,
    }
}

/// A smooth picture in which no two corners look alike.
pub(crate) fn picture(width: u32, height: u32) -> Picture<3> {
    Picture::from_fn(width, height, |x, y| {
        let across = (x * 200 / width) as u8;
        let down = (y * 200 / height) as u8;
        [across + 20, down + 20, 220 - across / 2 - down / 2]
    })
}

/// A JPEG of high quality, grey, YCbCr or CMYK, in one or in several scans.
pub(crate) fn jpeg(
    picture: &Picture<3>,
    color: jpeg_encoder::ColorType,
    progressive: bool,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 97);
    encoder.set_progressive(progressive);
    if picture.width > 4_000 {
        encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    }
    let data: Vec<u8> = match color {
        jpeg_encoder::ColorType::Luma => picture.pixels.iter().map(|pixel| pixel[0]).collect(),
        jpeg_encoder::ColorType::Cmyk => {
            let inks = picture
                .pixels
                .iter()
                .flat_map(|one| [255 - one[0], 255 - one[1], 255 - one[2], 0]);
            inks.collect()
        }
        _ => picture.bytes().to_vec(),
    };
    let side = |pixels: u32| u16::try_from(pixels).unwrap();
    encoder
        .encode(&data, side(picture.width), side(picture.height), color)
        .unwrap();
    bytes
}

/// A TIFF structure with nothing but an orientation, in either byte order.
pub(crate) fn exif(orientation: u8, big_endian: bool) -> Vec<u8> {
    if big_endian {
        [
            &b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..],
            &[orientation],
            &[0; 6],
        ]
        .concat()
    } else {
        [
            &b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"[..],
            &[orientation],
            &[0; 7],
        ]
        .concat()
    }
}

/// `jpeg` with an APP1 segment of EXIF.
pub(crate) fn jpeg_with_exif(jpeg: &[u8], exif: &[u8]) -> Vec<u8> {
    let length = u16::try_from(exif.len() + 8).unwrap().to_be_bytes();
    [
        &jpeg[..2],
        b"\xff\xe1",
        &length,
        b"Exif\0\0",
        exif,
        &jpeg[2..],
    ]
    .concat()
}

/// `png` with another chunk right after its header.
pub(crate) fn png_with_chunk(png: &[u8], kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let named = [kind, body].concat();
    let sum = crc32fast::hash(&named).to_be_bytes();
    [&png[..33], &length, &named, &sum, &png[33..]].concat()
}

/// What `ffmpeg` makes of a source filter, with `arguments` ending in `-f FORMAT`.
pub(crate) fn ffmpeg(source: &str, arguments: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i", source])
        .args(arguments.split_whitespace())
        .args(["-strict", "-2", "-y"])
        .arg(&path)
        .stdin(Stdio::null())
        .status()
        .expect("ffmpeg is installed");
    assert!(status.success(), "{source} {arguments}");
    std::fs::read(path).unwrap()
}

/// A WAV of `format` 1 (s16) or 3 (f32) whose header claims `claimed_bytes` of samples.
pub(crate) fn wav_claiming(
    format: u16,
    rate: u32,
    channels: u16,
    data: &[u8],
    claimed_bytes: u32,
) -> Vec<u8> {
    let sample_bytes: u16 = if format == 1 { 2 } else { 4 };
    let frame_bytes = sample_bytes * channels;
    let mut wav = b"RIFF".to_vec();
    wav.extend(claimed_bytes.saturating_add(36).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0");
    wav.extend(format.to_le_bytes());
    wav.extend(channels.to_le_bytes());
    wav.extend(rate.to_le_bytes());
    wav.extend(rate.saturating_mul(frame_bytes.into()).to_le_bytes());
    wav.extend(frame_bytes.to_le_bytes());
    wav.extend((sample_bytes * 8).to_le_bytes());
    wav.extend(b"data");
    wav.extend(claimed_bytes.to_le_bytes());
    wav.extend(data);
    wav
}

/// An honest mono WAV of 16 bits: `frames` samples of a quiet sawtooth.
pub(crate) fn wav(rate: u32, frames: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..frames)
        .flat_map(|index| (u16::try_from(index % 100).unwrap() * 100).to_le_bytes())
        .collect();
    let bytes = u32::try_from(data.len()).unwrap();
    wav_claiming(1, rate, 1, &data, bytes)
}

/// A small generator (`SplitMix64`, public domain), so that every run is the same.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
