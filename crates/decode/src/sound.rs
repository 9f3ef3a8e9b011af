//! Reference sound: WAV, MP3, AAC (M4A and ADTS), FLAC, Ogg Vorbis, FLAC and Opus, recognised by
//! their first bytes. Lengths are counted in decoded samples, never taken from headers; decoding
//! stops as soon as the sound exceeds the maximum length.

use std::path::Path;

use kinora_contract::limits::{
    REFERENCE_AUDIO_BYTES_MAX, REFERENCE_AUDIO_SECONDS_MAX, REFERENCE_AUDIO_SECONDS_MIN,
};

use crate::container::Container;
use crate::stereo::{SAMPLE_RATE, Stereo, frames};
use crate::{Cause, DecodeError, container, file, opus, resample};

/// Decoded sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Interleaved stereo f32 in -1.0 to 1.0 at [`SAMPLE_RATE`]: `[n][2]`, left first.
    pub pcm: Vec<f32>,
}

impl Sound {
    /// The length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.pcm.len() / 2) as f64 / f64::from(SAMPLE_RATE)
    }
}

/// Decodes the sound at `path` to 48 kHz stereo. Mono goes to both channels, more than two are
/// mixed down, and non-finite samples become silence.
///
/// # Errors
/// [`DecodeError`], never one of the image variants.
pub fn sound(path: &Path) -> Result<Sound, DecodeError> {
    let bytes = file::read(path, REFERENCE_AUDIO_BYTES_MAX)?;
    let stereo = file::contained(|| decoded(bytes)).map_err(DecodeError::UnsupportedAudio)?;
    if stereo.overflowed() {
        return Err(DecodeError::AudioTooLong);
    }
    let seconds = stereo.frames() as f64 / f64::from(stereo.rate());
    if seconds < REFERENCE_AUDIO_SECONDS_MIN {
        return Err(DecodeError::AudioTooShort { seconds });
    }
    let resampled = file::contained(|| resample::to_rate(stereo, SAMPLE_RATE));
    let mut pcm = resampled.map_err(DecodeError::UnsupportedAudio)?;
    pcm.truncate(frames(REFERENCE_AUDIO_SECONDS_MAX, SAMPLE_RATE) * 2);
    Ok(Sound { pcm })
}

/// Decodes the sound at its own rate, stopping once it is known to be too long.
fn decoded(bytes: Vec<u8>) -> Result<Stereo, Cause> {
    let bytes = without_id3(bytes);
    match Container::of(&bytes).ok_or("no known signature")? {
        Container::OggOpus => opus::decode(bytes),
        container => container::decode(container, bytes),
    }
}

/// Removes leading `ID3v2` tags (id3.org, `ID3v2.4.0`, section 3.1), which may precede any stream
/// and say nothing about the sound.
fn without_id3(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut start = 0;
    while let Some(b"ID3") = bytes.get(start..start + 3) {
        let Some(header) = bytes.get(start..start + 10) else {
            break;
        };
        let footer = if header[5] & 0x10 == 0 { 0 } else { 10 };
        let size = header[6..10].iter();
        let body = size.fold(0, |sum, &byte| (sum << 7) | usize::from(byte & 0x7f));
        start += 10 + body + footer;
    }
    bytes.drain(..start.min(bytes.len()));
    bytes
}
