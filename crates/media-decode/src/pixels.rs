//! Converts decoded samples to the pixels that engines expect: blended over white and scaled down.
//! Full-size steps work in place where they can, because one full-size image may take half the
//! memory budget.

use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::DecodeCause;
use crate::colour::ColourSpace;

/// A decoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedImage {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// `[height][width][3]` u8: sRGB, upright, transparent parts over white.
    pub rgb: Vec<u8>,
    /// Whether the colours are not sRGB but by a colour profile that cannot be converted.
    pub profile_ignored: bool,
}

/// Samples as decoded.
pub(crate) struct ImageSamples {
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub channels: usize,
    /// `[height][width][channels]` u8; alpha is straight, not premultiplied.
    pub data: MappedCanvas,
    /// How the samples are meant.
    pub colours: ColourSpace,
}

/// Converts to sRGB and blends transparent parts over white: `[height][width][3]` u8 of the same size, and whether
/// the colour profile was ignored.
///
/// # Errors
/// If the system grants no memory.
pub(crate) fn blend_over_white(samples: ImageSamples) -> io::Result<(MappedCanvas, bool)> {
    let ImageSamples {
        channels,
        mut data,
        colours,
    } = samples;
    let ignored = colours.convert(&mut data, channels);
    let rgb = match channels {
        1 => grey_to_rgb(data.iter().copied())?,
        2 => grey_to_rgb(data.chunks_exact(2).map(|one| blend(one[0], one[1])))?,
        4 => {
            let (pixels, samples) = (data.len() / 4, &mut *data);
            for index in 0..pixels {
                // In place, front to back: a pixel is written at or before the place where it
                // was read, so no unread one is overwritten.
                let (from, to) = (index * 4, index * 3);
                let alpha = samples[from + 3];
                for channel in 0..3 {
                    samples[to + channel] = blend(samples[from + channel], alpha);
                }
            }
            data.truncate(pixels * 3);
            data
        }
        _ => data,
    };
    Ok((rgb, ignored))
}

/// Grey pixels in three channels.
fn grey_to_rgb(greys: impl ExactSizeIterator<Item = u8>) -> io::Result<MappedCanvas> {
    let mut rgb = MappedCanvas::zeroed(greys.len() * 3)?;
    for (pixel, grey) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(greys) {
        *pixel = [grey; 3];
    }
    Ok(rgb)
}

/// Blends `value` at opacity `alpha` over white, rounded to the nearest.
fn blend(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u32::from(value), u32::from(alpha));
    u8::try_from((value * alpha + 255 * (255 - alpha) + 127) / 255).unwrap_or(u8::MAX)
}

/// Scales the image down to the smallest size that covers `cover`; an image that is already smaller
/// stays as it is. `rgb`: `[height][width][3]` u8 with `(width, height)` = `size`.
pub(crate) fn shrink_to_cover(
    rgb: &[u8],
    size: (u32, u32),
    cover: (u32, u32),
    profile_ignored: bool,
) -> Result<DecodedImage, DecodeCause> {
    let (width, height) = covering(size, cover);
    let rgb = if (width, height) == size {
        rgb.to_vec()
    } else {
        kinora_media_resize::resize_lanczos(rgb, size, (width, height))?
    };
    Ok(DecodedImage {
        width,
        height,
        rgb,
        profile_ignored,
    })
}

/// The smallest size with the aspect ratio of `size` that covers `cover`, at most `size`.
fn covering(size: (u32, u32), cover: (u32, u32)) -> (u32, u32) {
    let (width, height) = (u64::from(size.0), u64::from(size.1));
    let (cover_width, cover_height) = (u64::from(cover.0.max(1)), u64::from(cover.1.max(1)));
    // Compare the aspect ratios without division, then round the other side up so that it still
    // covers. Example: 6000 x 4000 for 600 x 600 becomes 900 x 600.
    let (new_width, new_height) = if cover_width * height >= cover_height * width {
        (cover_width, (height * cover_width).div_ceil(width))
    } else {
        ((width * cover_height).div_ceil(height), cover_height)
    };
    if new_width > width || new_height > height {
        return size;
    }
    // Neither exceeds a side of `size`.
    (new_width as u32, new_height as u32)
}

/// Zeroed bytes that return to the system when dropped.
pub(crate) struct MappedCanvas {
    mapped: MmapMut,
    bytes: usize,
}

impl MappedCanvas {
    /// # Errors
    /// If the system grants no memory.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        // Empty mappings do not exist.
        let mapped = MmapMut::map_anon(bytes.max(1))?;
        Ok(Self { mapped, bytes })
    }

    /// Keeps the first `bytes` bytes. The memory of the others stays until this is dropped.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.bytes = bytes.min(self.bytes);
    }
}

impl Deref for MappedCanvas {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.mapped[..self.bytes]
    }
}

impl DerefMut for MappedCanvas {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.mapped[..self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_covering_size_is_the_smallest_that_covers_and_never_larger_than_the_image() {
        assert_eq!(covering((6000, 4000), (600, 600)), (900, 600));
        assert_eq!(covering((4000, 6000), (600, 600)), (600, 900));
        assert_eq!(covering((1000, 1000), (300, 200)), (300, 300));
        assert_eq!(covering((500, 400), (600, 100)), (500, 400));
        assert_eq!(covering((500, 400), (0, 0)), (2, 1));
        assert_eq!(covering((500, 400), (u32::MAX, u32::MAX)), (500, 400));
        for width in 256..400_u32 {
            let (new_width, new_height) = covering((width, 391), (255, 200));
            assert!(new_width >= 255 && new_height >= 200, "{width}");
        }
    }

    #[test]
    fn transparency_is_blended_over_white() {
        let blended = |channels: usize, samples: &[u8]| {
            let mut data = MappedCanvas::zeroed(samples.len()).unwrap();
            data.copy_from_slice(samples);
            let colours = ColourSpace::Srgb;
            let samples = ImageSamples {
                channels,
                data,
                colours,
            };
            blend_over_white(samples).unwrap().0.to_vec()
        };
        let rgb = blended(4, &[10, 20, 30, 0, 10, 20, 30, 255, 0, 100, 200, 128]);
        assert_eq!(rgb, [255, 255, 255, 10, 20, 30, 127, 177, 227]);
        assert_eq!(blended(2, &[7, 255, 0, 0]), [7, 7, 7, 255, 255, 255]);
        assert_eq!(blended(1, &[1, 2]), [1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn a_canvas_is_zeroed_written_and_cut() {
        let mut canvas = MappedCanvas::zeroed(5).unwrap();
        assert_eq!(*canvas, [0; 5]);
        canvas[4] = 7;
        assert_eq!(*canvas, [0, 0, 0, 0, 7]);
        canvas.truncate(2);
        assert_eq!(*canvas, [0, 0]);
        canvas.truncate(9);
        assert_eq!(canvas.len(), 2);
        assert!(MappedCanvas::zeroed(0).unwrap().is_empty());
    }
}
