//! Sample entries: how picture and sound are coded and shown.
//! Formats: ISO/IEC 14496-15 (`avc1`), 14496-14 (`mp4a`), 14496-12, 12.1.5 (`colr`), 8.5.2.2 (`btrt`).

#[cfg(feature = "aac")]
mod aac;

use mp4_atom::{Audio, Avc1, Avcc, AvccExt, Btrt, Codec, Colr, Dops, Opus, Pasp, Visual};

use crate::audio::{AudioConfig, AudioTrack, CodecConfig};
use crate::format::SAMPLE_RATE_HZ;
use crate::video::VideoTrack;
use crate::{ClipFormat, MediaError};

/// Rec. ITU-T H.273: code point 1 is BT.709 for primaries, transfer and matrix alike.
const BT709: u16 = 1;

pub(super) fn video(format: &ClipFormat, track: &VideoTrack) -> Result<Codec, MediaError> {
    let sets = &track.parameter_sets;
    let mut avcc =
        Avcc::new(&sets.sps, &sets.pps).map_err(|cause| MediaError::Mux(cause.to_string()))?;
    // High profile carries its chroma format and depths: 4:2:0, 8 bits.
    avcc.ext = Some(AvccExt::default());
    let side = |pixels: u32| {
        u16::try_from(pixels).map_err(|_| MediaError::InvalidFormat("sides above 65,535"))
    };
    let visual = Visual {
        data_reference_index: 1,
        width: side(format.width)?,
        height: side(format.height)?,
        ..Visual::default()
    };
    Ok(Codec::Avc1(Avc1 {
        visual,
        avcc,
        btrt: Some(bit_rates(&track.spooled.sizes, 1, format.fps)),
        colr: Some(Colr::Nclx {
            colour_primaries: BT709,
            transfer_characteristics: BT709,
            matrix_coefficients: BT709,
            full_range_flag: false,
        }),
        pasp: Some(Pasp {
            h_spacing: 1,
            v_spacing: 1,
        }),
        ..Avc1::default()
    }))
}

pub(super) fn audio(track: &AudioTrack) -> Codec {
    let AudioConfig {
        channels,
        packet_samples,
        priming,
        ..
    } = track.config;
    let rates = bit_rates(&track.spooled.sizes, packet_samples, SAMPLE_RATE_HZ);
    let audio = Audio {
        data_reference_index: 1,
        channel_count: channels,
        sample_size: 16,
        sample_rate: (SAMPLE_RATE_HZ as u16).into(),
    };
    match &track.config.codec {
        #[cfg(feature = "aac")]
        CodecConfig::Aac { specific } => aac::entry(audio, specific, rates).into(),
        CodecConfig::Opus => Codec::Opus(Opus {
            audio,
            dops: Dops {
                output_channel_count: channels as u8,
                pre_skip: priming,
                input_sample_rate: SAMPLE_RATE_HZ,
                output_gain: 0,
                channel_mapping: None,
            },
            btrt: Some(rates),
        }),
    }
}

/// Largest sample, busiest second and mean of a track with samples of `ticks` each.
fn bit_rates(sizes: &[u32], ticks: u32, timescale: u32) -> Btrt {
    let bits = |sizes: &[u32]| sizes.iter().copied().map(u64::from).sum::<u64>() * 8;
    let saturated = |bits: u64| u32::try_from(bits).unwrap_or(u32::MAX);
    let per_second = (timescale / ticks.max(1)).max(1) as usize;
    let duration = (sizes.len() as u64 * u64::from(ticks)).max(1);
    let mean = bits(sizes) * u64::from(timescale) / duration;
    let busiest = sizes
        .chunks(per_second)
        .map(bits)
        .max()
        .unwrap_or(0)
        .max(mean);
    Btrt {
        buffer_size_db: sizes.iter().copied().max().unwrap_or(0),
        max_bitrate: saturated(busiest),
        avg_bitrate: saturated(mean),
    }
}
