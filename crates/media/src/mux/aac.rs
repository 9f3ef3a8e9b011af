//! The sample entry of AAC sound, with its nested MPEG-4 systems descriptors.
//! Format: ISO/IEC 14496-14, 6.7.2 (`mp4a`); 14496-1, 7.2.6 (descriptors).

use mp4_atom::esds::{DecoderConfig, DecoderSpecific, EsDescriptor, SLConfig};
use mp4_atom::{Audio, Btrt, Esds, Mp4a};

/// ISO/IEC 14496-1, table 5: audio of ISO/IEC 14496-3.
const OBJECT_TYPE_AAC: u8 = 0x40;
/// ISO/IEC 14496-1, table 6: audio stream.
const STREAM_TYPE_AUDIO: u8 = 5;

/// `specific` is the `AudioSpecificConfig`.
pub(super) fn entry(audio: Audio, specific: &[u8], rates: Btrt) -> Mp4a {
    // An access unit of two channels has at most 1,536 bytes.
    let [high, low] = (rates.buffer_size_db as u16).to_be_bytes();
    let dec_config = DecoderConfig {
        object_type_indication: OBJECT_TYPE_AAC,
        stream_type: STREAM_TYPE_AUDIO,
        up_stream: 0,
        buffer_size_db: [0, high, low].into(),
        max_bitrate: rates.max_bitrate,
        avg_bitrate: rates.avg_bitrate,
        dec_specific: Some(DecoderSpecific {
            raw: specific.to_vec(),
            ..Default::default()
        }),
    };
    let sl_config = SLConfig {};
    let es_desc = EsDescriptor {
        es_id: 2,
        dec_config,
        sl_config,
        ..Default::default()
    };
    Mp4a {
        audio,
        esds: Esds { es_desc },
        btrt: Some(rates),
        taic: None,
    }
}
