//! Reference sound: WAV, MP3, AAC (M4A and ADTS), FLAC, Ogg Vorbis, FLAC and Opus, and the same codecs
//! in Matroska and `WebM`, recognised by their first bytes. Lengths are counted in decoded samples, never taken from headers; decoding
//! stops as soon as the sound exceeds the maximum length.

use std::path::Path;

use kinora_contract::limits::{
    REFERENCE_AUDIO_BYTES_MAX, REFERENCE_AUDIO_SECONDS_MAX, REFERENCE_AUDIO_SECONDS_MIN,
};

use crate::error::FileRefusal;
use crate::signatures::{self, SoundContainer};
use crate::stereo::{SAMPLE_RATE, StereoBuffer, frames, frames_max};
use crate::wav::WavFile;
use crate::{DecodeCause, DecodeError, container, file, kinds, matroska, opus, resample};

/// Decoded sound.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedSound {
    /// Interleaved stereo f32 in -1.0 to 1.0 at [`SAMPLE_RATE`]: `[n][2]`, left first.
    pub pcm: Vec<f32>,
}

impl DecodedSound {
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
pub fn sound(path: &Path) -> Result<DecodedSound, DecodeError> {
    let bytes = file::read(path, REFERENCE_AUDIO_BYTES_MAX)?;
    let head = kinds::copy_head(&bytes);
    let pcm = file::catch_panic(|| decode(bytes));
    let pcm =
        pcm.map_err(|cause| DecodeError::UnsupportedAudio(FileRefusal::for_sound(&head, cause)))?;
    let Some(mut pcm) = pcm else {
        return Err(DecodeError::AudioTooLong);
    };
    let seconds = (pcm.len() / 2) as f64 / f64::from(SAMPLE_RATE);
    if seconds < REFERENCE_AUDIO_SECONDS_MIN {
        return Err(DecodeError::AudioTooShort { seconds });
    }
    pcm.truncate(frames(REFERENCE_AUDIO_SECONDS_MAX, SAMPLE_RATE) * 2);
    Ok(DecodedSound { pcm })
}

/// Decodes the sound, stopping once it is known to be too long: then `None`.
fn decode(bytes: Vec<u8>) -> Result<Option<Vec<f32>>, DecodeCause> {
    let mut bytes = without_id3(bytes);
    let container = match SoundContainer::of(&bytes) {
        Some(container) => container,
        None => {
            let (start, container) = signatures::start(&bytes).ok_or("no known signature")?;
            bytes.drain(..start);
            container
        }
    };
    let stereo = match container {
        SoundContainer::Wav => match WavFile::parse(bytes)?.into_mp3() {
            Ok(mp3) => container::decode(SoundContainer::Mp3, mp3),
            Err(wav) => container::decode(SoundContainer::Wav, wav.rewritten()?),
        },
        SoundContainer::Ogg | SoundContainer::OggOpus => return chained(&bytes),
        SoundContainer::Matroska => container::decode(container, matroska::rewritten(bytes)?),
        container => container::decode(container, bytes),
    }?;
    resampled(stereo)
}

/// Decodes the links of an Ogg file one after the other.
fn chained(bytes: &[u8]) -> Result<Option<Vec<f32>>, DecodeCause> {
    let links = links(bytes);
    let mut whole = Vec::new();
    for (index, &link) in links.iter().enumerate() {
        let stereo = match SoundContainer::of(link) {
            Some(SoundContainer::OggOpus) => opus::decode(link.to_vec()),
            _ => container::decode(SoundContainer::Ogg, link.to_vec()),
        };
        let pcm = match stereo.and_then(resampled) {
            // A recording may be cut within the headers of a link.
            Err(_) if index > 0 && index + 1 == links.len() => break,
            pcm => pcm?,
        };
        let Some(pcm) = pcm else { return Ok(None) };
        whole.extend(pcm);
        if whole.len() > frames_max(SAMPLE_RATE) * 2 {
            return Ok(None);
        }
    }
    Ok(Some(whole))
}

fn resampled(stereo: StereoBuffer) -> Result<Option<Vec<f32>>, DecodeCause> {
    if stereo.overflowed() {
        Ok(None)
    } else {
        Ok(Some(resample::to_rate(stereo, SAMPLE_RATE)?))
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
        // The size has seven bits in each byte, so that it never looks like a sync word.
        let footer = if header[5] & 0x10 == 0 { 0 } else { 10 };
        let size = header[6..10].iter();
        let body = size.fold(0, |sum, &byte| (sum << 7) | usize::from(byte & 0x7f));
        start += 10 + body + footer;
    }
    bytes.drain(..start.min(bytes.len()));
    bytes
}

/// Maximum number of links; radio recordings have a few.
const LINKS_MAX: usize = 64;

/// The flag of a stream's first page.
const FIRST_OF_STREAM: u8 = 2;

/// Splits an Ogg file into the links of its chain (RFC 3533, section 4): complete files one
/// after the other, each with its own codec, rate and channels. Links beyond [`LINKS_MAX`] stay
/// with the last.
fn links(file: &[u8]) -> Vec<&[u8]> {
    let mut links = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut sound_began = false;
    while let Some((flags, length)) = page(file, at) {
        // Several streams may be multiplexed in one link: all their first pages come together. A
        // new link begins with the first such page after a page with sound.
        let begins = flags & FIRST_OF_STREAM != 0;
        if begins && sound_began && links.len() + 1 < LINKS_MAX {
            links.push(&file[start..at]);
            start = at;
        }
        sound_began = !begins;
        at += length;
    }
    links.push(&file[start..]);
    links
}

/// Flags and length of the page at `at`.
fn page(file: &[u8], at: usize) -> Option<(u8, usize)> {
    let header: &[u8; 27] = file.get(at..)?.first_chunk()?;
    if !header.starts_with(b"OggS") {
        return None;
    }
    let segments = file.get(at + 27..at + 27 + usize::from(header[26]))?;
    let body: usize = segments.iter().map(|&bytes| usize::from(bytes)).sum();
    Some((header[5], 27 + segments.len() + body))
}
