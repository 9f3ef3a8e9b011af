//! Opus packets of 20 ms, the permissively licensed choice. Format: RFC 6716; in MP4,
//! "Encapsulation of Opus in ISO Base Media File Format".

use opus_pure::{Application, MAX_PACKET_BYTES, OpusEncoder};

use super::codec::{AudioConfig, CodecConfig, PacketEncoder};
use crate::MediaError;
use crate::format::SAMPLE_RATE_HZ;

struct Opus {
    encoder: OpusEncoder,
    frame_samples: usize,
}

/// Opens Opus with packets of 20 ms; the encoder reports its own delay.
pub(super) fn open(
    channels: u16,
    bitrate: u32,
) -> Result<(impl PacketEncoder + Send + use<>, AudioConfig), MediaError> {
    let rate = SAMPLE_RATE_HZ.cast_signed();
    let mut encoder = OpusEncoder::new(rate, usize::from(channels), Application::Audio)
        .map_err(|cause| MediaError::Audio(cause.to_string()))?;
    encoder.bitrate_bps = bitrate.cast_signed();
    let frame_samples = SAMPLE_RATE_HZ / 50;
    let config = AudioConfig {
        codec: CodecConfig::Opus,
        channels,
        packet_samples: frame_samples,
        priming: u16::try_from(encoder.lookahead())
            .map_err(|_| MediaError::Audio("unreasonable encoder delay".into()))?,
    };
    Ok((
        Opus {
            encoder,
            frame_samples: frame_samples as usize,
        },
        config,
    ))
}

impl PacketEncoder for Opus {
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
