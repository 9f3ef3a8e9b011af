//! AAC-LC access units from the Fraunhofer FDK encoder, behind the feature `aac`.
//! Format: ISO/IEC 14496-3, subpart 4. Raw access units, no ADTS headers.

use fdk_aac::enc::{
    AudioObjectType, BitRate, ChannelMode, Encoder, EncoderError, EncoderParams, Transport,
};

use crate::MediaError;
use crate::audio::{AudioConfig, CodecConfig, PacketEncoder};
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
