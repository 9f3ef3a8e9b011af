//! Decodes Opus (RFC 6716) to 48 kHz, with pre-skip, end trimming and output gain: in Ogg (RFC 7845)
//! and, by the header and packets that symphonia reads, in Matroska and MP4. Supports mapping
//! families 0 and 1: up to eight positioned channels.

use std::io::Cursor;

use opus_pure::{
    MAX_PACKET_SAMPLES, OggOpusReader, OggPacket, OpusDecoder, OpusHead, OpusMSDecoder, Trim,
};

use crate::DecodeCause;
use crate::edit_list::FrameWindow;
use crate::packet_budget::PacketBudget;
use crate::stereo::{self, SAMPLE_RATE, StereoBuffer};

/// Length of a header of mapping family 0.
const HEAD_BYTES: usize = 19;

/// Decodes an Ogg file, stopping once it is known to be too long.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<StereoBuffer, DecodeCause> {
    let mut reader = OggOpusReader::new(Cursor::new(bytes))?;
    let head = reader.head().clone();
    // A truncated file ends in the middle of a page; the packets before it count.
    decode_packets(
        &head,
        |_| Ok(reader.read_packet().unwrap_or(None)),
        FrameWindow::default(),
    )
}

/// Decodes packets until `next` has no more; `next` may count others that it skips.
pub(crate) fn decode_packets(
    head: &OpusHead,
    mut next: impl FnMut(&mut PacketBudget) -> Result<Option<OggPacket>, DecodeCause>,
    mut kept: FrameWindow,
) -> Result<StereoBuffer, DecodeCause> {
    let channels = usize::from(head.channel_count);
    let rate = i32::try_from(SAMPLE_RATE)?;
    let mut decoder = OpusPacketDecoder::new(head, rate)?;
    let mut trim = Trim::new(head, rate, channels)?;
    let gains = stereo::vorbis_gains(channels);
    let mut stereo = StereoBuffer::empty(SAMPLE_RATE)?;
    let mut patience = PacketBudget::default();
    let mut block = vec![0.0; MAX_PACKET_SAMPLES * channels];
    while let Some(packet) = next(&mut patience)? {
        let decoded = decoder.decode(&packet.data, &mut block);
        patience.count(decoded.is_ok())?;
        let frames = decoded.unwrap_or(0);
        let audible = trim.keep(&packet, &block[..frames * channels]);
        let frames = kept.advance(audible.len() / channels);
        stereo.push(
            &audible[frames.start * channels..frames.end * channels],
            &gains,
        );
        if stereo.overflowed() || kept.is_over() {
            break;
        }
    }
    patience.check_damage()?;
    Ok(stereo)
}

/// The header of a track: `OpusHead` in Matroska, and in MP4 the same fields with the most
/// significant byte first.
pub(crate) fn parse_head(bytes: &[u8], big_endian: bool) -> Result<OpusHead, DecodeCause> {
    let fixed: &[u8; HEAD_BYTES] = bytes.first_chunk().ok_or("an Opus header that is cut")?;
    let field = |at: usize| {
        let bytes = [fixed[at], fixed[at + 1]];
        if big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    };
    let channel_count = fixed[9];
    let mapping_family = fixed[18];
    // The constructor accepts mono and stereo only; other layouts are filled in below.
    let mut head = OpusHead::new(channel_count.clamp(1, 2), SAMPLE_RATE)?;
    head.pre_skip = field(10);
    head.output_gain_q8 = i16::from_ne_bytes(field(16).to_ne_bytes());
    if mapping_family != 0 {
        let table = bytes.get(HEAD_BYTES..).unwrap_or_default();
        let mapping = table.get(2..2 + usize::from(channel_count));
        let mapping = mapping.ok_or("an Opus header that is cut")?;
        head.mapping_family = mapping_family;
        (head.stream_count, head.coupled_count) = (table[0], table[1]);
        head.channel_mapping = mapping.to_vec();
        head.channel_count = channel_count;
    } else if !(1..=2).contains(&channel_count) {
        return Err("an unusual channel mapping".into());
    }
    Ok(head)
}

enum OpusPacketDecoder {
    One(Box<OpusDecoder>),
    Many(Box<OpusMSDecoder>, f32),
}

impl OpusPacketDecoder {
    fn new(head: &OpusHead, rate: i32) -> Result<Self, DecodeCause> {
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
    fn decode(&mut self, packet: &[u8], block: &mut [f32]) -> Result<usize, DecodeCause> {
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
