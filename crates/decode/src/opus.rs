//! Decodes Ogg Opus (RFC 7845) to 48 kHz, with pre-skip, end trimming and output gain. Supports
//! mapping families 0 and 1: up to eight positioned channels.

use std::io::Cursor;

use opus_pure::{MAX_PACKET_SAMPLES, OggOpusReader, OpusDecoder, OpusHead, OpusMSDecoder, Trim};

use crate::container::Patience;
use crate::stereo::{SAMPLE_RATE, Stereo};
use crate::{Cause, downmix};

/// Decodes the sound, stopping once it is known to be too long.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<Stereo, Cause> {
    let mut reader = OggOpusReader::new(Cursor::new(bytes))?;
    let head = reader.head().clone();
    let channels = usize::from(head.channel_count);
    let rate = i32::try_from(SAMPLE_RATE)?;
    let mut decoder = Decoder::new(&head, rate)?;
    let mut trim = Trim::new(&head, rate, channels)?;
    let gains = downmix::vorbis_gains(channels);
    let mut stereo = Stereo::empty(SAMPLE_RATE)?;
    let mut patience = Patience::default();
    let mut block = vec![0.0; MAX_PACKET_SAMPLES * channels];
    // A truncated file ends in the middle of a page; the packets before it count.
    while let Ok(Some(packet)) = reader.read_packet() {
        let decoded = decoder.decode(&packet.data, &mut block);
        patience.count(decoded.is_ok())?;
        let frames = decoded.unwrap_or(0);
        stereo.push(trim.keep(&packet, &block[..frames * channels]), &gains);
        if stereo.overflowed() {
            break;
        }
    }
    patience.judge()?;
    Ok(stereo)
}

enum Decoder {
    One(Box<OpusDecoder>),
    Many(Box<OpusMSDecoder>, f32),
}

impl Decoder {
    fn new(head: &OpusHead, rate: i32) -> Result<Self, Cause> {
        if head.mapping_family == 0 {
            return Ok(Self::One(Box::new(head.decoder(rate)?)));
        }
        let decoder = OpusMSDecoder::new(rate, head.channel_count.into(), head.mapping_family)?;
        let layout = decoder.layout();
        let usual = head.mapping_family == 1
            && layout.nb_streams == usize::from(head.stream_count)
            && layout.nb_coupled_streams == usize::from(head.coupled_count);
        if !usual {
            return Err("an unusual channel mapping".into());
        }
        let gain = 10_f32.powf(head.output_gain_db() / 20.0);
        Ok(Self::Many(Box::new(decoder), gain))
    }

    /// Decodes a packet into `block` and returns its number of frames.
    fn decode(&mut self, packet: &[u8], block: &mut [f32]) -> Result<usize, Cause> {
        match self {
            Self::One(decoder) => Ok(decoder.decode(packet, MAX_PACKET_SAMPLES, block)?),
            Self::Many(decoder, gain) => {
                let frames = decoder.decode(packet, MAX_PACKET_SAMPLES, block)?;
                for sample in &mut *block {
                    *sample *= *gain;
                }
                Ok(frames)
            }
        }
    }
}
