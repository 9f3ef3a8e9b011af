//! Reference images: JPEG, PNG, WebP and the first frame of GIF, recognised by their first bytes.
//! Checks the upright size in the headers before decoding pixels.

use std::io;
use std::path::Path;

use kinora_contract::limits::{
    REFERENCE_IMAGE_BYTES_MAX, REFERENCE_IMAGE_RATIO_MAX, REFERENCE_IMAGE_RATIO_MIN,
    REFERENCE_IMAGE_SIDE_MAX, REFERENCE_IMAGE_SIDE_MIN,
};

use crate::header::ImageHeader;
use crate::pixels::{self, DecodedImage, MappedCanvas};
use crate::signatures::ImageFormat;
use crate::{DecodeCause, DecodeError, FileRefusal, animated, file, jpeg, kinds, png};

/// Checks and decodes the image at `path`, upright. Scales it down (Lanczos, never up) to the
/// smallest size of the same aspect ratio that still covers `cover`, `(width, height)` in pixels.
///
/// # Errors
/// [`DecodeError`], never one of the audio variants.
pub fn image(path: &Path, cover: (u32, u32)) -> Result<DecodedImage, DecodeError> {
    let bytes = file::read(path, REFERENCE_IMAGE_BYTES_MAX)?;
    let (format, header) = read_checked_header(&bytes)?;
    let head = kinds::copy_head(&bytes);
    file::catch_panic(move || {
        let size = (header.width, header.height);
        let (rgb, profile_ignored) = pixels_of(format, &bytes, size)?;
        // Free the file before the scaled copy is allocated.
        drop(bytes);
        // Scale first, turn afterwards: turning the small picture costs less, but `cover` is
        // upright and must be turned the other way.
        let cover = if header.orientation.transposed {
            (cover.1, cover.0)
        } else {
            cover
        };
        Ok(header.orientation.turn_upright(pixels::shrink_to_cover(
            &rgb,
            size,
            cover,
            profile_ignored,
        )?))
    })
    .map_err(|cause| decode_error(&head, cause))
}

/// The upright width and height in pixels of the image at `path`, from its headers alone, checked
/// against the limits. Decoding the pixels may still fail.
///
/// # Errors
/// [`DecodeError`], never one of the audio variants.
pub fn image_size(path: &Path) -> Result<(u32, u32), DecodeError> {
    let bytes = file::read(path, REFERENCE_IMAGE_BYTES_MAX)?;
    read_checked_header(&bytes).map(|(_, header)| header.upright_size())
}

/// Decodes an image from another server, such as a preview: any supported format and shape, with
/// sides of at most `side_max` pixels.
///
/// # Errors
/// [`DecodeError::ImageTooLarge`], or [`DecodeError::UnsupportedImage`].
pub fn image_of(bytes: &[u8], side_max: u32) -> Result<DecodedImage, DecodeError> {
    let (format, header) = read_header(bytes)?;
    let (width, height) = header.upright_size();
    if width.max(height) > side_max {
        return Err(DecodeError::ImageTooLarge { width, height });
    }
    let size = (header.width, header.height);
    let decoded = file::catch_panic(|| {
        let (rgb, profile_ignored) = pixels_of(format, bytes, size)?;
        Ok(header.orientation.turn_upright(pixels::shrink_to_cover(
            &rgb,
            size,
            size,
            profile_ignored,
        )?))
    });
    decoded.map_err(|cause| decode_error(bytes, cause))
}

/// The error for an undecodable image. A failed allocation is the system's fault, not the
/// file's.
fn decode_error(head: &[u8], cause: DecodeCause) -> DecodeError {
    let cause: DecodeCause = match cause.downcast::<io::Error>() {
        Ok(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            return DecodeError::Io(*error);
        }
        Ok(error) => error,
        Err(cause) => cause,
    };
    DecodeError::UnsupportedImage(FileRefusal::for_image(head, cause))
}

/// `[height][width][3]` u8 in sRGB, as stored, and whether a colour profile was ignored.
fn pixels_of(
    format: ImageFormat,
    bytes: &[u8],
    size: (u32, u32),
) -> Result<(MappedCanvas, bool), DecodeCause> {
    Ok(match format {
        ImageFormat::Jpeg => pixels::blend_over_white(jpeg::decode(bytes, size)?)?,
        ImageFormat::Png => pixels::blend_over_white(png::decode(bytes, size)?)?,
        ImageFormat::WebP => pixels::blend_over_white(animated::webp(bytes, size)?)?,
        ImageFormat::Gif => pixels::blend_over_white(animated::gif(bytes, size)?)?,
    })
}

fn read_header(bytes: &[u8]) -> Result<(ImageFormat, ImageHeader), DecodeError> {
    let format =
        ImageFormat::of(bytes).ok_or_else(|| decode_error(bytes, "no known signature".into()))?;
    let header = file::catch_panic(|| header(format, bytes));
    let header = header.map_err(|cause| decode_error(bytes, cause))?;
    Ok((format, header))
}

fn read_checked_header(bytes: &[u8]) -> Result<(ImageFormat, ImageHeader), DecodeError> {
    let (format, header) = read_header(bytes)?;
    let (width, height) = header.upright_size();
    check_size(width, height)?;
    Ok((format, header))
}

fn header(format: ImageFormat, bytes: &[u8]) -> Result<ImageHeader, DecodeCause> {
    match format {
        ImageFormat::Jpeg => jpeg::header(bytes),
        ImageFormat::Png => png::header(bytes),
        ImageFormat::WebP => animated::webp_header(bytes),
        ImageFormat::Gif => animated::gif_header(bytes),
    }
}

fn check_size(width: u32, height: u32) -> Result<(), DecodeError> {
    let ratio = f64::from(width) / f64::from(height);
    if width.max(height) > REFERENCE_IMAGE_SIDE_MAX {
        Err(DecodeError::ImageTooLarge { width, height })
    } else if width.min(height) < REFERENCE_IMAGE_SIDE_MIN {
        Err(DecodeError::ImageTooSmall { width, height })
    } else if !(REFERENCE_IMAGE_RATIO_MIN..=REFERENCE_IMAGE_RATIO_MAX).contains(&ratio) {
        Err(DecodeError::InvalidAspectRatio { width, height })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_not_refused_for_a_lack_of_memory() {
        // More than any address space.
        let lack = MappedCanvas::zeroed(1 << 60).err().unwrap();
        let told = decode_error(&[], lack.into());
        assert!(matches!(told, DecodeError::Io(_)), "{told:?}");
        let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
        let told = decode_error(&[], cut.into());
        assert!(matches!(told, DecodeError::UnsupportedImage(_)), "{told:?}");
        let told = decode_error(&[], "a broken table".into());
        assert!(matches!(told, DecodeError::UnsupportedImage(_)), "{told:?}");
    }
}
