//! Full-range RGB to limited-range BT.709 I420, and back.
//! Source of the matrix: Rec. ITU-R BT.709-6, item 3; ranges: item 4. No scaling, no dithering.

use rusty_h264_common::YuvFrame;
use yuv::{
    BufferStoreMut, YuvConversionMode, YuvPlanarImage, YuvPlanarImageMut, YuvRange,
    YuvStandardMatrix, rgb_to_yuv420, yuv420_to_rgb,
};

use crate::boxes::BoxFields;
use crate::frames::PooledFrame;
use crate::{ClipFormat, MediaError};

/// Converts `rgb`, `[height][width][3] u8`, into `frame`.
pub(crate) fn rgb_to_i420(
    rgb: &[u8],
    format: &ClipFormat,
    frame: &mut PooledFrame,
) -> Result<(), MediaError> {
    let (y, u, v) = frame.planes_mut();
    let mut image = YuvPlanarImageMut {
        y_plane: BufferStoreMut::Borrowed(y),
        y_stride: format.width,
        u_plane: BufferStoreMut::Borrowed(u),
        u_stride: format.width / 2,
        v_plane: BufferStoreMut::Borrowed(v),
        v_stride: format.width / 2,
        width: format.width,
        height: format.height,
    };
    rgb_to_yuv420(
        &mut image,
        rgb,
        format.width * 3,
        YuvRange::Limited,
        YuvStandardMatrix::Bt709,
        YuvConversionMode::Balanced,
    )
    .map_err(|cause| MediaError::Picture(cause.to_string()))
}

/// How to interpret a file's pictures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColourCoding {
    range: YuvRange,
    matrix: YuvStandardMatrix,
}

impl ColourCoding {
    /// From the body of a `colr` box (ISO/IEC 14496-12, 12.1.5; code points of Rec. ITU-T H.273,
    /// table 4). Without one, or with an unknown matrix, assumes our own coding.
    pub(crate) fn read(colr: Option<&[u8]>) -> Result<Self, MediaError> {
        let mut coding = Self {
            range: YuvRange::Limited,
            matrix: YuvStandardMatrix::Bt709,
        };
        let Some(colr) = colr else {
            return Ok(coding);
        };
        let mut fields = BoxFields::new(colr);
        let kind: [u8; 4] = fields.array()?;
        if !matches!(&kind, b"nclx" | b"nclc") {
            return Ok(coding);
        }
        // 5 and 6 are the two spellings of BT.601. Primaries and transfer function, the four
        // bytes before, do not change the conversion to RGB.
        if let 5 | 6 = fields.skip(4)?.u16()? {
            coding.matrix = YuvStandardMatrix::Bt601;
        }
        if &kind == b"nclx" && fields.u8()? & 0x80 != 0 {
            coding.range = YuvRange::Full;
        }
        Ok(coding)
    }
}

fn side(pixels: usize) -> Result<u32, MediaError> {
    u32::try_from(pixels).map_err(|cause| MediaError::Picture(cause.to_string()))
}

/// Converts `frame` into `[height][width][3] u8`. Chroma is repeated, not interpolated: encoding
/// averages those four pixels again, so an unchanged picture stays within one level.
pub(crate) fn i420_to_rgb(frame: &YuvFrame, coding: ColourCoding) -> Result<Vec<u8>, MediaError> {
    let (width, height) = (side(frame.width)?, side(frame.height)?);
    let image = YuvPlanarImage {
        y_plane: &frame.y,
        y_stride: width,
        u_plane: &frame.u,
        u_stride: width / 2,
        v_plane: &frame.v,
        v_stride: width / 2,
        width,
        height,
    };
    let mut rgb = vec![0; frame.width * frame.height * 3];
    yuv420_to_rgb(&image, &mut rgb, width * 3, coding.range, coding.matrix)
        .map_err(|cause| MediaError::Picture(cause.to_string()))?;
    Ok(rgb)
}
