//! Decodes H.264 samples as stored in MP4 (ISO/IEC 14496-15, 5.3.3; Rec. ITU-T H.264). Refuses
//! pictures whose size differs from the file's index, changing parameter sets, and samples that
//! would cost more than one picture. Panics of the decoder become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusty_h264_common::YuvFrame;
use rusty_h264_common::nal::emulation_unprevent;
use rusty_h264_decoder::{Decoder, Sps};

use crate::MediaError;
use crate::boxes::BoxFields;
use crate::format::MACROBLOCKS_MAX;

/// Maximum reference pictures of level 5.2 in macroblocks (Rec. ITU-T H.264, table A-1,
/// `MaxDpbMbs`).
const DPB_MACROBLOCKS_MAX: u32 = 184_320;
/// Maximum number of reference pictures of any size (Rec. ITU-T H.264, A.3.1, item h).
const DPB_FRAMES_MAX: u32 = 16;
/// Our own files have one per picture; sliced encoders write one per thread.
const SLICES_MAX: usize = 64;
const START_CODE: [u8; 3] = [0, 0, 1];

/// The relevant kinds of NAL units (Rec. ITU-T H.264, table 7-1).
mod nal_type {
    pub(super) const SLICE: u8 = 1;
    pub(super) const PARTITION_A: u8 = 2;
    pub(super) const PARTITION_C: u8 = 4;
    pub(super) const IDR_SLICE: u8 = 5;
    pub(super) const SPS: u8 = 7;
    pub(super) const PPS: u8 = 8;
}

/// Decodes samples in decoding order.
pub(crate) struct AvcDecoder {
    decoder: Decoder,
    width: u32,
    height: u32,
    macroblocks: u32,
    /// Size in bytes of the length field before each NAL unit of a sample.
    length_bytes: usize,
    parameter_sets: Vec<Vec<u8>>,
    /// The current access unit, reused for its allocation.
    access_unit: Vec<u8>,
}

impl AvcDecoder {
    /// `avcc` is the body of an `avcC` box; its pictures must measure `width` by `height`.
    pub(crate) fn new(avcc: &[u8], width: u32, height: u32) -> Result<Self, MediaError> {
        // `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3.1): version, profile,
        // compatibility and level, then the size of the length fields, then the parameter sets.
        let mut fields = BoxFields::new(avcc);
        let length_bytes = usize::from(fields.skip(4)?.u8()? & 3) + 1;
        let mut parameter_sets = Vec::new();
        let sps_count = fields.u8()? & 0x1f;
        read_sets(&mut fields, sps_count, nal_type::SPS, &mut parameter_sets)?;
        let mut macroblocks = 0;
        for sps in &parameter_sets {
            macroblocks = check_sps(sps, width, height)?.max(macroblocks);
        }
        let pps_count = fields.u8()?;
        read_sets(&mut fields, pps_count, nal_type::PPS, &mut parameter_sets)?;
        let mut this = Self {
            decoder: Decoder::new(),
            width,
            height,
            macroblocks,
            length_bytes,
            parameter_sets,
            access_unit: Vec::new(),
        };
        for set in &this.parameter_sets {
            append_nal(&mut this.access_unit, set)?;
        }
        this.run()?;
        Ok(this)
    }

    /// Maximum plausible size of a sample: twice the uncompressed picture, plus messages.
    pub(crate) fn sample_bytes_max(&self) -> u32 {
        // A macroblock has 256 luma and 2 x 64 chroma samples: 384 bytes uncompressed.
        self.macroblocks * 384 * 2 + (64 << 10)
    }

    /// Maximum number of pictures that may wait to be shown at level 5.2.
    pub(crate) fn waiting_max(&self) -> u32 {
        (DPB_MACROBLOCKS_MAX / self.macroblocks.max(1)).clamp(1, DPB_FRAMES_MAX)
    }

    /// Decodes the one picture of `sample`, I420 and cropped to the stated size. After an error the
    /// decoder's state is unknown, and it must not be used again.
    pub(crate) fn decode(&mut self, sample: &[u8]) -> Result<YuvFrame, MediaError> {
        self.access_unit.clear();
        let mut slices = 0;
        let mut rest = sample;
        while !rest.is_empty() {
            let nal = split_nal(&mut rest, self.length_bytes)?;
            match nal.first().map(|header| header & 0x1f) {
                Some(nal_type::SLICE | nal_type::IDR_SLICE) => {
                    check_slice(nal, slices)?;
                    append_nal(&mut self.access_unit, nal)?;
                    slices += 1;
                }
                Some(nal_type::SPS | nal_type::PPS)
                    if !self.parameter_sets.iter().any(|set| set == nal) =>
                {
                    return Err(MediaError::Malformed("its parameter sets change"));
                }
                Some(nal_type::PARTITION_A..=nal_type::PARTITION_C) => {
                    return Err(MediaError::Malformed("its slices are partitioned"));
                }
                // Known parameter sets, messages, delimiters, filler.
                _ => {}
            }
        }
        let frame = self
            .run()?
            .ok_or(MediaError::Malformed("a sample contains no whole picture"))?;
        if (frame.width, frame.height) != (self.width as usize, self.height as usize) {
            return Err(MediaError::Malformed("a picture has the wrong size"));
        }
        Ok(frame)
    }

    /// Passes the access unit to the decoder.
    fn run(&mut self) -> Result<Option<YuvFrame>, MediaError> {
        let decoded = catch_panic(|| self.decoder.decode(&self.access_unit))?;
        decoded.map_err(|cause| MediaError::Decode(cause.to_string()))
    }
}

/// Runs third-party code on a file's content; its panics become errors.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, MediaError> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| MediaError::Decode("the decoder panicked".into()))
}

/// Reads the next `count` parameter sets of an `avcC`.
fn read_sets(
    fields: &mut BoxFields<'_>,
    count: u8,
    kind: u8,
    sets: &mut Vec<Vec<u8>>,
) -> Result<(), MediaError> {
    for _ in 0..count {
        let bytes = usize::from(fields.u16()?);
        let body = fields.rest();
        fields.skip(bytes)?;
        let set = &body[..bytes];
        if set.first().is_none_or(|header| header & 0x1f != kind) {
            return Err(MediaError::Malformed("a parameter set has the wrong kind"));
        }
        sets.push(set.to_vec());
    }
    Ok(())
}

fn unsupported<T>(what: &str) -> Result<T, MediaError> {
    Err(MediaError::Decode(format!("unsupported: {what}")))
}

/// Refuses pictures of another size, and streams that this decoder would show wrongly or at
/// unbounded cost. Returns the macroblocks of a picture.
fn check_sps(nal: &[u8], width: u32, height: u32) -> Result<u32, MediaError> {
    const WRONG_SIZE: MediaError = MediaError::Malformed("its pictures differ from their index");
    let (sps, shown) = catch_panic(|| {
        let sps = Sps::parse(&emulation_unprevent(&nal[1..]))
            .map_err(|cause| MediaError::Decode(cause.to_string()))?;
        let shown = (sps.display_width(), sps.display_height());
        Ok::<_, MediaError>((sps, shown))
    })??;
    // The container and the bit stream both state a size. A film in which they differ would
    // allocate by one and decode by the other.
    if shown != (width as usize, height as usize) {
        return Err(WRONG_SIZE);
    }
    let macroblocks = sps.pic_width_in_mbs * sps.pic_height_in_mbs;
    let macroblocks = u32::try_from(macroblocks).map_err(|_| WRONG_SIZE)?;
    if macroblocks > MACROBLOCKS_MAX {
        return unsupported("pictures above level 5.2");
    }
    let references = sps.max_num_ref_frames;
    // These two numbers decide how much memory the decoder's reference pictures take.
    if references > DPB_FRAMES_MAX || references * macroblocks > DPB_MACROBLOCKS_MAX {
        return unsupported("more reference pictures than level 5.2 has");
    }
    // The decoder crops only at the right and bottom.
    if sps.frame_crop_left != 0 || sps.frame_crop_top != 0 {
        return unsupported("pictures cropped at the left or the top");
    }
    // It approximates this order, and fills such gaps picture by picture.
    if sps.pic_order_cnt_type == 1 {
        return unsupported("picture order of type 1");
    }
    if sps.gaps_in_frame_num_allowed {
        return unsupported("gaps between frame numbers");
    }
    Ok(macroblocks)
}

/// The next NAL unit of a sample.
fn split_nal<'a>(rest: &mut &'a [u8], length_bytes: usize) -> Result<&'a [u8], MediaError> {
    const CUT_OFF: MediaError = MediaError::Malformed("a sample is cut off");
    let (length, body) = rest.split_at_checked(length_bytes).ok_or(CUT_OFF)?;
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (nal, after) = body.split_at_checked(length).ok_or(CUT_OFF)?;
    *rest = after;
    Ok(nal)
}

/// The first slice must begin a picture, and no other slice may: a sample is one picture.
fn check_slice(nal: &[u8], slices_before: usize) -> Result<(), MediaError> {
    // `first_mb_in_slice` is 0 exactly if its Exp-Golomb code is the single bit 1.
    let begins = nal.get(1).is_some_and(|header| header & 0x80 != 0);
    if begins != (slices_before == 0) {
        return Err(MediaError::Malformed("a sample is not one picture"));
    }
    if slices_before == SLICES_MAX {
        return Err(MediaError::Malformed("a picture has too many slices"));
    }
    Ok(())
}

/// Appends `nal` in byte stream format (Rec. ITU-T H.264, annex B). A start code within it would
/// smuggle in unchecked units.
fn append_nal(stream: &mut Vec<u8>, nal: &[u8]) -> Result<(), MediaError> {
    // Units of an MP4 sample are delimited by lengths, those of the decoder's input by start
    // codes. A start code inside a unit would make the decoder see a unit that `decode` has not
    // checked.
    if nal.windows(3).any(|bytes| bytes == START_CODE) {
        return Err(MediaError::Malformed("a start code lies within a unit"));
    }
    stream.extend_from_slice(&START_CODE);
    stream.extend_from_slice(nal);
    Ok(())
}
