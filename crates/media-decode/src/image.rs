//! Reference images: JPEG, PNG, WebP and the first frame of GIF, recognised by their first bytes.
//! Checks the upright size in the headers before decoding pixels.

use std::io;
use std::path::Path;

use kinora_contract::limits::{
    REFERENCE_IMAGE_BYTES_MAX, REFERENCE_IMAGE_RATIO_MAX, REFERENCE_IMAGE_RATIO_MIN,
    REFERENCE_IMAGE_SIDE_MAX, REFERENCE_IMAGE_SIDE_MIN,
};

use crate::header::Header;
use crate::pixels::{self, Canvas, Image};
use crate::signatures::Format;
use crate::{Cause, DecodeError, Refusal, animated, file, jpeg, kinds, png};

/// Checks and decodes the image at `path`, upright. Scales it down (Lanczos, never up) to the
/// smallest size of the same aspect ratio that still covers `cover`, `(width, height)` in pixels.
///
/// # Errors
/// [`DecodeError`], never one of the audio variants.
pub fn image(path: &Path, cover: (u32, u32)) -> Result<Image, DecodeError> {
    let bytes = file::read(path, REFERENCE_IMAGE_BYTES_MAX)?;
    let (format, header) = judged(&bytes)?;
    let head = kinds::head(&bytes);
    file::contained(move || {
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
        Ok(header
            .orientation
            .upright(pixels::shrunk(&rgb, size, cover, profile_ignored)?))
    })
    .map_err(|cause| undecodable(&head, cause))
}

/// The upright width and height in pixels of the image at `path`, from its headers alone, checked
/// against the limits. Decoding the pixels may still fail.
///
/// # Errors
/// [`DecodeError`], never one of the audio variants.
pub fn image_size(path: &Path) -> Result<(u32, u32), DecodeError> {
    let bytes = file::read(path, REFERENCE_IMAGE_BYTES_MAX)?;
    judged(&bytes).map(|(_, header)| header.upright_size())
}

/// Decodes an image from another server, such as a preview: any supported format and shape, with
/// sides of at most `side_max` pixels.
///
/// # Errors
/// [`DecodeError::ImageTooLarge`], or [`DecodeError::UnsupportedImage`].
pub fn image_of(bytes: &[u8], side_max: u32) -> Result<Image, DecodeError> {
    let (format, header) = recognised(bytes)?;
    let (width, height) = header.upright_size();
    if width.max(height) > side_max {
        return Err(DecodeError::ImageTooLarge { width, height });
    }
    let size = (header.width, header.height);
    let decoded = file::contained(|| {
        let (rgb, profile_ignored) = pixels_of(format, bytes, size)?;
        Ok(header
            .orientation
            .upright(pixels::shrunk(&rgb, size, size, profile_ignored)?))
    });
    decoded.map_err(|cause| undecodable(bytes, cause))
}

/// The error for an undecodable image. A failed allocation is the system's fault, not the
/// file's.
fn undecodable(head: &[u8], cause: Cause) -> DecodeError {
    let cause: Cause = match cause.downcast::<io::Error>() {
        Ok(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            return DecodeError::Io(*error);
        }
        Ok(error) => error,
        Err(cause) => cause,
    };
    DecodeError::UnsupportedImage(Refusal::of_image(head, cause))
}

/// `[height][width][3]` u8 in sRGB, as stored, and whether a colour profile was ignored.
fn pixels_of(format: Format, bytes: &[u8], size: (u32, u32)) -> Result<(Canvas, bool), Cause> {
    Ok(match format {
        Format::Jpeg => pixels::over_white(jpeg::decode(bytes, size)?)?,
        Format::Png => pixels::over_white(png::decode(bytes, size)?)?,
        Format::WebP => pixels::over_white(animated::webp(bytes, size)?)?,
        Format::Gif => pixels::over_white(animated::gif(bytes, size)?)?,
    })
}

fn recognised(bytes: &[u8]) -> Result<(Format, Header), DecodeError> {
    let format =
        Format::of(bytes).ok_or_else(|| undecodable(bytes, "no known signature".into()))?;
    let header = file::contained(|| header(format, bytes));
    let header = header.map_err(|cause| undecodable(bytes, cause))?;
    Ok((format, header))
}

fn judged(bytes: &[u8]) -> Result<(Format, Header), DecodeError> {
    let (format, header) = recognised(bytes)?;
    let (width, height) = header.upright_size();
    judge(width, height)?;
    Ok((format, header))
}

fn header(format: Format, bytes: &[u8]) -> Result<Header, Cause> {
    match format {
        Format::Jpeg => jpeg::header(bytes),
        Format::Png => png::header(bytes),
        Format::WebP => animated::webp_header(bytes),
        Format::Gif => animated::gif_header(bytes),
    }
}

fn judge(width: u32, height: u32) -> Result<(), DecodeError> {
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
        let lack = Canvas::zeroed(1 << 60).err().unwrap();
        let told = undecodable(&[], lack.into());
        assert!(matches!(told, DecodeError::Io(_)), "{told:?}");
        let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
        let told = undecodable(&[], cut.into());
        assert!(matches!(told, DecodeError::UnsupportedImage(_)), "{told:?}");
        let told = undecodable(&[], "a broken table".into());
        assert!(matches!(told, DecodeError::UnsupportedImage(_)), "{told:?}");
    }
}
