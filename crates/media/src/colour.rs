//! Full-range RGB to limited-range BT.709 I420.
//! Source of the matrix: Rec. ITU-R BT.709-6, item 3; ranges: item 4. No scaling, no dithering.

use yuv::{
    BufferStoreMut, YuvConversionMode, YuvPlanarImageMut, YuvRange, YuvStandardMatrix,
    rgb_to_yuv420,
};

use crate::frames::Frame;
use crate::{ClipFormat, MediaError};

/// Converts `rgb`, `[height][width][3] u8`, into `frame`.
pub(crate) fn rgb_to_i420(
    rgb: &[u8],
    format: &ClipFormat,
    frame: &mut Frame,
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
