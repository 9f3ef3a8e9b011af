//! WAV, MP3, AAC, MP4, FLAC, Ogg and Matroska through symphonia, offering only the reader that matches the
//! first bytes of the file. Durations in headers are not trusted; damaged packets are skipped.

use std::io::Cursor;

use opus_pure::OggPacket;
use symphonia::core::audio::Channels;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::{Hint, Probe};
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{
    MediaSource, MediaSourceStream, MediaSourceStreamOptions, ReadOnlySource,
};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::default::formats::{
    AdtsReader, FlacReader, IsoMp4Reader, MkvReader, MpaReader, OggReader, WavReader,
};

use crate::edit_list::{self, FrameWindow, SoundEdit};
use crate::error::FileDefect;
use crate::packet_budget::PacketBudget;
use crate::signatures::SoundContainer;
use crate::stereo::{self, SAMPLE_RATE, StereoBuffer};
use crate::{DecodeCause, opus};

/// Maximum frames per packet and maximum channels that a header may declare: decoders allocate
/// their product at once, and abort if the allocation fails.
const PACKET_FRAMES_MAX: u64 = 1 << 17;
const CHANNELS_MAX: usize = 32;

/// The reader that matches the kind of file.
fn reader(container: SoundContainer, bytes: Vec<u8>) -> Result<Box<dyn FormatReader>, DecodeCause> {
    let mut probe = Probe::default();
    match container {
        SoundContainer::Wav => probe.register_format::<WavReader<'_>>(),
        SoundContainer::Mp3 => probe.register_format::<MpaReader<'_>>(),
        SoundContainer::Adts => probe.register_format::<AdtsReader<'_>>(),
        SoundContainer::Mp4 => probe.register_format::<IsoMp4Reader<'_>>(),
        SoundContainer::Flac => probe.register_format::<FlacReader<'_>>(),
        SoundContainer::Ogg | SoundContainer::OggOpus => probe.register_format::<OggReader<'_>>(),
        SoundContainer::Matroska => probe.register_format::<MkvReader<'_>>(),
    }
    let bytes = Cursor::new(bytes);
    let source: Box<dyn MediaSource> = match container {
        // Read from front to back: the index of a file that was cut points behind its end.
        SoundContainer::Matroska => Box::new(ReadOnlySource::new(bytes)),
        _ => Box::new(bytes),
    };
    let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
    Ok(probe.probe(
        &Hint::new(),
        stream,
        FormatOptions::default(),
        MetadataOptions::default(),
    )?)
}

/// Decodes the sound, stopping once it is known to be too long.
pub(crate) fn decode(
    container: SoundContainer,
    bytes: Vec<u8>,
) -> Result<StereoBuffer, DecodeCause> {
    // Before `bytes` move into the reader, which does not expose edit lists.
    let edit = match container {
        SoundContainer::Mp4 => edit_list::edit(&bytes),
        _ => None,
    };
    let mut reader = reader(container, bytes)?;
    let track = reader
        .default_track(TrackType::Audio)
        .ok_or(FileDefect::NoSound)?;
    let (track_id, parameters) = (track.id, track.codec_params.clone());
    let parameters = parameters.as_ref().and_then(|any| any.audio());
    let parameters = parameters.ok_or(FileDefect::NoSound)?;
    let next = |patience: &mut PacketBudget| next_packet(&mut *reader, track_id, patience);
    if parameters.codec == CODEC_ID_OPUS {
        decode_opus(container, parameters, edit, next)
    } else {
        decode_others(parameters, edit, next)
    }
}

fn decode_opus(
    container: SoundContainer,
    parameters: &AudioCodecParameters,
    edit: Option<SoundEdit>,
    mut next: impl FnMut(&mut PacketBudget) -> Result<Option<Packet>, DecodeCause>,
) -> Result<StereoBuffer, DecodeCause> {
    let header = parameters.extra_data.as_deref().unwrap_or_default();
    let mut head = opus::parse_head(header, container == SoundContainer::Mp4)?;
    if edit.is_some() {
        // It leaves out the same samples.
        head.pre_skip = 0;
    }
    opus::decode_packets(
        &head,
        |patience| {
            let packet = next(patience)?;
            Ok(packet.map(|packet| OggPacket::new(packet.data.into_vec(), -1, false)))
        },
        FrameWindow::from_edit(edit, SAMPLE_RATE),
    )
}

fn decode_others(
    parameters: &AudioCodecParameters,
    edit: Option<SoundEdit>,
    mut next: impl FnMut(&mut PacketBudget) -> Result<Option<Packet>, DecodeCause>,
) -> Result<StereoBuffer, DecodeCause> {
    let frames = parameters.max_frames_per_packet.unwrap_or(0);
    let channels = parameters.channels.as_ref().map_or(0, Channels::count);
    // Before the decoder exists: it allocates by these numbers.
    if frames > PACKET_FRAMES_MAX || channels > CHANNELS_MAX {
        return Err(format!("packets of {frames} frames, {channels} channels").into());
    }
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &AudioDecoderOptions::default())?;
    let mut stereo = None;
    let mut kept = FrameWindow::default();
    let mut patience = PacketBudget::default();
    let mut interleaved = Vec::new();
    while let Some(packet) = next(&mut patience)? {
        let decoded = decoder.decode(&packet);
        patience.count(decoded.is_ok())?;
        // A damaged packet costs its own samples only; `patience` decides how many of them are
        // too many.
        let Ok(buffer) = decoded else { continue };
        let (rate, channels) = (buffer.spec().rate(), buffer.spec().channels());
        let stereo = match &mut stereo {
            Some(stereo) => stereo,
            // The rate of the first decoded packet counts, not the header's.
            empty => {
                kept = FrameWindow::from_edit(edit, rate);
                empty.insert(StereoBuffer::empty(rate)?)
            }
        };
        if stereo.rate() != rate {
            return Err("the sample rate changes".into());
        }
        let gains = stereo::gains(channels);
        buffer.copy_to_vec_interleaved::<f32>(&mut interleaved);
        // A buffer without channels has no frames; the `max` only prevents a division by zero.
        let frames = kept.advance(interleaved.len() / gains.len().max(1));
        let samples = frames.start * gains.len()..frames.end * gains.len();
        stereo.push(&interleaved[samples], &gains);
        if stereo.overflowed() || kept.is_over() {
            break;
        }
    }
    patience.check_damage()?;
    stereo.ok_or_else(|| FileDefect::NoSound.into())
}

/// The next packet of the track, counting those of others; a truncated file ends at the cut.
fn next_packet(
    reader: &mut dyn FormatReader,
    track_id: u32,
    patience: &mut PacketBudget,
) -> Result<Option<Packet>, DecodeCause> {
    loop {
        let packet = match reader.next_packet() {
            Err(Error::IoError(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            other => other?,
        };
        match packet {
            Some(packet) if packet.track_id != track_id => patience.count(true)?,
            packet => return Ok(packet),
        }
    }
}
