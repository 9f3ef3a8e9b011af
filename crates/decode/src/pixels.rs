//! Converts decoded samples to the pixels that engines expect: blended over white and scaled down.
//! Each step works in place or frees its input, because one full-size image may take half the
//! memory budget.

use crate::Cause;

/// A decoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// `[height][width][3]` u8: sRGB, upright, transparent parts over white.
    pub rgb: Vec<u8>,
}

/// Samples as decoded.
pub(crate) struct Samples {
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub(crate) channels: usize,
    /// `[height][width][channels]` u8; alpha is straight, not premultiplied.
    pub(crate) data: Vec<u8>,
}

/// Blends transparent parts over white: `[height][width][3]` u8 of the same size.
pub(crate) fn over_white(samples: Samples) -> Vec<u8> {
    let Samples { channels, mut data } = samples;
    match channels {
        1 => data.iter().flat_map(|&grey| [grey; 3]).collect(),
        2 => {
            let pixels = data.chunks_exact(2);
            pixels
                .flat_map(|one| [blended(one[0], one[1]); 3])
                .collect()
        }
        4 => {
            let pixels = data.len() / 4;
            for index in 0..pixels {
                let (from, to) = (index * 4, index * 3);
                let alpha = data[from + 3];
                for channel in 0..3 {
                    data[to + channel] = blended(data[from + channel], alpha);
                }
            }
            data.truncate(pixels * 3);
            data.shrink_to_fit();
            data
        }
        _ => data,
    }
}

/// Blends `value` at opacity `alpha` over white, rounded to the nearest.
fn blended(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u32::from(value), u32::from(alpha));
    u8::try_from((value * alpha + 255 * (255 - alpha) + 127) / 255).unwrap_or(u8::MAX)
}

/// Scales the image down to the smallest size that covers `cover`; an image that is already smaller
/// stays as it is. `rgb`: `[height][width][3]` u8 with `(width, height)` = `size`.
pub(crate) fn shrunk(rgb: Vec<u8>, size: (u32, u32), cover: (u32, u32)) -> Result<Image, Cause> {
    let (width, height) = covering(size, cover);
    if (width, height) == size {
        return Ok(Image { width, height, rgb });
    }
    let rgb = kinora_resize::stretched(&rgb, size, (width, height))?;
    Ok(Image { width, height, rgb })
}

/// The smallest size with the aspect ratio of `size` that covers `cover`, at most `size`.
fn covering(size: (u32, u32), cover: (u32, u32)) -> (u32, u32) {
    let (width, height) = (u64::from(size.0), u64::from(size.1));
    let (cover_width, cover_height) = (u64::from(cover.0.max(1)), u64::from(cover.1.max(1)));
    let (new_width, new_height) = if cover_width * height >= cover_height * width {
        (cover_width, (height * cover_width).div_ceil(width))
    } else {
        ((width * cover_height).div_ceil(height), cover_height)
    };
    if new_width > width || new_height > height {
        return size;
    }
    let side = |pixels: u64| u32::try_from(pixels).unwrap_or(u32::MAX);
    (side(new_width), side(new_height))
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
        let data = vec![10, 20, 30, 0, 10, 20, 30, 255, 0, 100, 200, 128];
        let rgb = over_white(Samples { channels: 4, data });
        assert_eq!(rgb, [255, 255, 255, 10, 20, 30, 127, 177, 227]);
        let data = vec![7, 255, 0, 0];
        let rgb = over_white(Samples { channels: 2, data });
        assert_eq!(rgb, [7, 7, 7, 255, 255, 255]);
        let data = vec![1, 2];
        assert_eq!(
            over_white(Samples { channels: 1, data }),
            [1, 1, 1, 2, 2, 2]
        );
    }
}
