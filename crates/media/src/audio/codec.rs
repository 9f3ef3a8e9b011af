//! The interface of a codec of the sound track, and the configuration that it leaves to the muxer.

use crate::MediaError;

/// Data for the sample entry and the edit list.
#[derive(Debug, Clone)]
pub(crate) struct AudioConfig {
    pub(crate) codec: CodecConfig,
    pub(crate) channels: u16,
    /// Samples per channel in each packet.
    pub(crate) packet_samples: u32,
    /// Samples that the decoder outputs before the first one pushed.
    pub(crate) priming: u16,
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
pub(super) trait PacketEncoder {
    fn encode(&mut self, pcm: &[f32], packet: &mut Vec<u8>) -> Result<(), MediaError>;
}
