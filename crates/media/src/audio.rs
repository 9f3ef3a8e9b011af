//! Encodes the sound track: interleaved samples in chunks of any size to AAC-LC or Opus packets.
//! Trims or pads with silence to the picture's exact length; does not resample or remix. Opus: RFC
//! 6716, and "Encapsulation of Opus in ISO Base Media File Format".

use opus_pure::{Application, MAX_PACKET_BYTES, OpusEncoder};

use crate::format::SAMPLE_RATE_HZ;
use crate::spool::{SampleSpool, SpooledTrack};
use crate::{AudioCodec, AudioFormat, MediaError, RecorderOptions};

/// Maximum number of silent packets needed to flush the last samples from an encoder.
const FLUSH_PACKETS_MAX: usize = 16;

/// The encoded sound track.
pub(crate) struct AudioTrack {
    pub spooled: SpooledTrack,
    pub config: AudioConfig,
    /// Audible samples per channel.
    pub samples: u64,
}

/// Encodes on the caller's thread, in about a hundredth of real time.
pub(crate) struct AudioEncoder {
    codec: Box<dyn PacketEncoder + Send>,
    config: AudioConfig,
    spool: SampleSpool,
    pending: Vec<f32>,
    /// Samples per channel accepted so far, and the exact number expected.
    accepted: u64,
    wanted: u64,
}

impl AudioEncoder {
    pub(crate) fn new(
        format: AudioFormat,
        wanted: u64,
        options: &RecorderOptions,
        spool: SampleSpool,
    ) -> Result<Self, MediaError> {
        let bitrate = options.audio_bitrate_per_channel * u32::from(format.channels);
        let (codec, config): (Box<dyn PacketEncoder + Send>, _) = match options.audio_codec {
            #[cfg(feature = "aac")]
            AudioCodec::Aac => {
                let (encoder, config) = aac::open(format.channels, bitrate)?;
                (Box::new(encoder), config)
            }
            AudioCodec::Opus => {
                let (encoder, config) = open_opus(format.channels, bitrate)?;
                (Box::new(encoder), config)
            }
        };
        Ok(Self {
            codec,
            config,
            spool,
            pending: Vec::new(),
            accepted: 0,
            wanted,
        })
    }

    /// Encodes interleaved samples, -1 to 1; samples beyond the picture's length are dropped.
    pub(crate) fn push(&mut self, pcm: &[f32]) -> Result<(), MediaError> {
        let channels = usize::from(self.config.channels);
        if !pcm.len().is_multiple_of(channels) {
            return Err(MediaError::InvalidAudio(
                "a chunk is not a whole number of samples per channel",
            ));
        }
        // Sound that is longer than the picture is cut here, before it costs encoding.
        let missing = usize::try_from(self.wanted - self.accepted).unwrap_or(usize::MAX);
        let taken = (pcm.len() / channels).min(missing);
        self.accepted += taken as u64;
        let packet_len = self.config.packet_samples as usize * channels;
        for chunk in pcm[..taken * channels].chunks(packet_len) {
            self.pending.extend(chunk.iter().map(|&sample| {
                // A NaN from a model would spread through the codec's filters to all later
                // samples.
                if sample.is_finite() {
                    sample.clamp(-1.0, 1.0)
                } else {
                    0.0
                }
            }));
            if self.pending.len() >= packet_len {
                self.encode_packet(packet_len)?;
            }
        }
        Ok(())
    }

    /// Pads with silence and flushes the encoder's delay.
    pub(crate) fn finish(mut self) -> Result<AudioTrack, MediaError> {
        let packet_len = self.config.packet_samples as usize * usize::from(self.config.channels);
        // A decoder outputs `priming` samples before the first real one, and the edit list skips
        // them, so the packets must cover both. Example: 48,000 samples and a priming of 312
        // need ceil(48,312 / 960) = 51 Opus packets.
        let heard = self.wanted + u64::from(self.config.priming);
        let packets = heard.div_ceil(u64::from(self.config.packet_samples));
        let packets = usize::try_from(packets)
            .map_err(|_| MediaError::InvalidAudio("the sound track is too long"))?;
        let silent =
            self.wanted.saturating_sub(self.accepted) / u64::from(self.config.packet_samples);
        let limit = usize::try_from(silent)
            .unwrap_or(usize::MAX)
            .saturating_add(FLUSH_PACKETS_MAX);
        // The encoder may hold back some packets. Feed silence until all have come out; the
        // limit ends a broken encoder that returns nothing.
        for _ in 0..limit {
            if self.spool.len() >= packets {
                break;
            }
            self.pending.resize(packet_len, 0.0);
            self.encode_packet(packet_len)?;
        }
        if self.spool.len() != packets {
            return Err(MediaError::Audio("the encoder lost packets".into()));
        }
        Ok(AudioTrack {
            spooled: self.spool.finish()?,
            config: self.config,
            samples: self.wanted,
        })
    }

    fn encode_packet(&mut self, packet_len: usize) -> Result<(), MediaError> {
        let mut packet = Vec::new();
        self.codec
            .encode(&self.pending[..packet_len], &mut packet)?;
        self.pending.drain(..packet_len);
        if packet.is_empty() {
            return Ok(());
        }
        let size = u32::try_from(packet.len())
            .map_err(|_| MediaError::Audio("a packet exceeds 4 GiB".into()))?;
        Ok(self.spool.append(&packet, &[size])?)
    }
}

/// Data for the sample entry and the edit list.
#[derive(Debug, Clone)]
pub(crate) struct AudioConfig {
    pub codec: CodecConfig,
    pub channels: u16,
    /// Samples per channel in each packet.
    pub packet_samples: u32,
    /// Samples that the decoder outputs before the first one pushed.
    pub priming: u16,
}

/// Codec-specific decoder configuration.
#[derive(Debug, Clone)]
pub(crate) enum CodecConfig {
    #[cfg(feature = "aac")]
    Aac {
        /// `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1).
        specific: Vec<u8>,
    },
    Opus,
}

/// One codec: takes the interleaved samples of exactly one packet, outputs bytes (none while it
/// fills up).
trait PacketEncoder {
    fn encode(&mut self, pcm: &[f32], packet: &mut Vec<u8>) -> Result<(), MediaError>;
}

struct OpusPacketEncoder {
    encoder: OpusEncoder,
    frame_samples: usize,
}

/// Opens Opus with packets of 20 ms; the encoder reports its own delay.
fn open_opus(
    channels: u16,
    bitrate: u32,
) -> Result<(impl PacketEncoder + Send + use<>, AudioConfig), MediaError> {
    let rate = SAMPLE_RATE_HZ.cast_signed();
    let mut encoder = OpusEncoder::new(rate, usize::from(channels), Application::Audio)
        .map_err(|cause| MediaError::Audio(cause.to_string()))?;
    encoder.bitrate_bps = bitrate.cast_signed();
    // 20 ms, the usual packet length: shorter ones cost bits, longer ones coarser seeking.
    let frame_samples = SAMPLE_RATE_HZ / 50;
    let config = AudioConfig {
        codec: CodecConfig::Opus,
        channels,
        packet_samples: frame_samples,
        priming: u16::try_from(encoder.lookahead())
            .map_err(|_| MediaError::Audio("unreasonable encoder delay".into()))?,
    };
    Ok((
        OpusPacketEncoder {
            encoder,
            frame_samples: frame_samples as usize,
        },
        config,
    ))
}

impl PacketEncoder for OpusPacketEncoder {
    fn encode(&mut self, pcm: &[f32], packet: &mut Vec<u8>) -> Result<(), MediaError> {
        packet.resize(MAX_PACKET_BYTES, 0);
        let length = self
            .encoder
            .encode(pcm, self.frame_samples, packet)
            .map_err(|cause| MediaError::Audio(cause.to_string()))?;
        packet.truncate(length);
        Ok(())
    }
}

/// AAC-LC access units from the Fraunhofer FDK encoder, behind the feature `aac`.
/// Format: ISO/IEC 14496-3, subpart 4. Raw access units, no ADTS headers.
#[cfg(feature = "aac")]
mod aac {
    use fdk_aac::enc::{
        AudioObjectType, BitRate, ChannelMode, Encoder, EncoderError, EncoderParams, Transport,
    };

    use super::{AudioConfig, CodecConfig, PacketEncoder};
    use crate::MediaError;
    use crate::format::SAMPLE_RATE_HZ;

    /// Maximum size of an access unit: 6,144 bits per channel (ISO/IEC 14496-3, 4.5.3.1).
    const PACKET_BYTES_MAX: usize = 2 * 6_144 / 8;

    struct AacPacketEncoder {
        encoder: Encoder,
        pcm: Vec<i16>,
    }

    fn failed(cause: EncoderError) -> MediaError {
        MediaError::Audio(cause.to_string())
    }

    pub(super) fn open(
        channels: u16,
        bitrate: u32,
    ) -> Result<(impl PacketEncoder + Send + use<>, AudioConfig), MediaError> {
        let encoder = Encoder::new(EncoderParams {
            bit_rate: BitRate::Cbr(bitrate),
            sample_rate: SAMPLE_RATE_HZ,
            transport: Transport::Raw,
            channels: if channels == 1 {
                ChannelMode::Mono
            } else {
                ChannelMode::Stereo
            },
            audio_object_type: AudioObjectType::Mpeg4LowComplexity,
        })
        .map_err(failed)?;
        let info = encoder.info().map_err(failed)?;
        let specific = info
            .confBuf
            .get(..info.confSize as usize)
            .unwrap_or_default()
            .to_vec();
        let config = AudioConfig {
            codec: CodecConfig::Aac { specific },
            channels,
            packet_samples: info.frameLength,
            priming: u16::try_from(info.nDelay)
                .map_err(|_| MediaError::Audio("unreasonable encoder delay".into()))?,
        };
        Ok((
            AacPacketEncoder {
                encoder,
                pcm: Vec::new(),
            },
            config,
        ))
    }

    impl PacketEncoder for AacPacketEncoder {
        fn encode(&mut self, pcm: &[f32], packet: &mut Vec<u8>) -> Result<(), MediaError> {
            self.pcm.clear();
            self.pcm
                .extend(pcm.iter().map(|sample| (sample * 32_767.0).round() as i16));
            packet.resize(PACKET_BYTES_MAX, 0);
            let info = self
                .encoder
                .encode(&self.pcm, packet)
                .map_err(|cause| MediaError::Audio(cause.to_string()))?;
            if info.input_consumed != self.pcm.len() {
                return Err(MediaError::Audio(
                    "the encoder accepted only part of a packet".into(),
                ));
            }
            packet.truncate(info.output_size);
            Ok(())
        }
    }
}
