//! WAV, MP3, AAC, MP4, FLAC and Ogg through symphonia, offering only the reader that matches the
//! first bytes of the file. Durations in headers are not trusted; damaged packets are skipped.

use std::io::Cursor;

use symphonia::core::audio::Channels;
use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::{Hint, Probe};
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::default::formats::{
    AdtsReader, FlacReader, IsoMp4Reader, MpaReader, OggReader, WavReader,
};

use crate::edit_list::{self, Kept};
use crate::stereo::Stereo;
use crate::{Cause, downmix};

/// Maximum number of packets read: about the longest sound in the shortest packets.
const PACKETS_MAX: usize = 100_000;

/// Maximum frames per packet and maximum channels that a header may declare: decoders allocate
/// their product at once, and abort if the allocation fails.
const PACKET_FRAMES_MAX: u64 = 1 << 17;
const CHANNELS_MAX: usize = 32;

/// The supported kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Wav,
    Mp3,
    Adts,
    Mp4,
    Flac,
    Ogg,
    OggOpus,
}

impl Container {
    /// The kind of file whose signature `bytes` begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let at = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or(&[]);
        match at(0..4) {
            b"RIFF" if at(8..12) == b"WAVE" => Some(Self::Wav),
            b"fLaC" => Some(Self::Flac),
            b"OggS" => {
                // The first packet follows the table of segments (RFC 3533, section 6).
                let packet = 27 + usize::from(*bytes.get(26)?);
                let opus = at(packet..packet + 8) == b"OpusHead";
                Some(if opus { Self::OggOpus } else { Self::Ogg })
            }
            _ if at(4..8) == b"ftyp" => Some(Self::Mp4),
            &[0xff, second, ..] if second & 0xf6 == 0xf0 => Some(Self::Adts),
            &[0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }

    fn reader(self, bytes: Vec<u8>) -> Result<Box<dyn FormatReader>, Cause> {
        let mut probe = Probe::default();
        match self {
            Self::Wav => probe.register_format::<WavReader<'_>>(),
            Self::Mp3 => probe.register_format::<MpaReader<'_>>(),
            Self::Adts => probe.register_format::<AdtsReader<'_>>(),
            Self::Mp4 => probe.register_format::<IsoMp4Reader<'_>>(),
            Self::Flac => probe.register_format::<FlacReader<'_>>(),
            Self::Ogg | Self::OggOpus => probe.register_format::<OggReader<'_>>(),
        }
        let source = Box::new(Cursor::new(bytes));
        let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
        Ok(probe.probe(
            &Hint::new(),
            stream,
            FormatOptions::default(),
            MetadataOptions::default(),
        )?)
    }
}

/// Decodes the sound, stopping once it is known to be too long.
pub(crate) fn decode(container: Container, bytes: Vec<u8>) -> Result<Stereo, Cause> {
    let edit = match container {
        Container::Mp4 => edit_list::edit(&bytes),
        _ => None,
    };
    let mut reader = container.reader(bytes)?;
    let track = reader.default_track(TrackType::Audio).ok_or("no sound")?;
    let (track_id, parameters) = (track.id, track.codec_params.clone());
    let parameters = parameters.as_ref().and_then(|any| any.audio());
    let parameters = parameters.ok_or("no sound")?;
    let frames = parameters.max_frames_per_packet.unwrap_or(0);
    let channels = parameters.channels.as_ref().map_or(0, Channels::count);
    if frames > PACKET_FRAMES_MAX || channels > CHANNELS_MAX {
        return Err(format!("packets of {frames} frames, {channels} channels").into());
    }
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &AudioDecoderOptions::default())?;
    let mut stereo = None;
    let mut kept = Kept::default();
    let mut patience = Patience::default();
    let mut interleaved = Vec::new();
    while let Some(packet) = next_packet(&mut *reader)? {
        if packet.track_id != track_id {
            patience.count(true)?;
            continue;
        }
        let decoded = decoder.decode(&packet);
        patience.count(decoded.is_ok())?;
        let Ok(buffer) = decoded else { continue };
        let (rate, channels) = (buffer.spec().rate(), buffer.spec().channels());
        let stereo = match &mut stereo {
            Some(stereo) => stereo,
            empty => {
                kept = Kept::of(edit, rate);
                empty.insert(Stereo::empty(rate)?)
            }
        };
        if stereo.rate() != rate {
            return Err("the sample rate changes".into());
        }
        let gains = downmix::gains(channels);
        buffer.copy_to_vec_interleaved::<f32>(&mut interleaved);
        let frames = kept.take(interleaved.len() / gains.len().max(1));
        let samples = frames.start * gains.len()..frames.end * gains.len();
        stereo.push(&interleaved[samples], &gains);
        if stereo.overflowed() || kept.is_over() {
            break;
        }
    }
    patience.judge()?;
    stereo.ok_or_else(|| "no sound".into())
}

/// The next packet; a truncated file ends at the cut.
fn next_packet(
    reader: &mut dyn FormatReader,
) -> Result<Option<symphonia::core::packet::Packet>, Cause> {
    match reader.next_packet() {
        Err(Error::IoError(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        other => Ok(other?),
    }
}

/// How many packets were decoded and how many were damaged.
#[derive(Default)]
pub(crate) struct Patience {
    good: usize,
    bad: usize,
}

impl Patience {
    /// Counts a packet, up to [`PACKETS_MAX`].
    pub(crate) fn count(&mut self, good: bool) -> Result<(), Cause> {
        if good {
            self.good += 1;
        } else {
            self.bad += 1;
        }
        if self.good + self.bad > PACKETS_MAX {
            return Err("too many packets".into());
        }
        Ok(())
    }

    /// Refuses sound with more damaged than good packets.
    pub(crate) fn judge(&self) -> Result<(), Cause> {
        if self.bad > self.good {
            return Err(format!("{} of {} packets", self.bad, self.bad + self.good).into());
        }
        Ok(())
    }
}
