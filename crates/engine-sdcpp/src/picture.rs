//! Converts pictures between the requested size and the model's size: given pictures are scaled to
//! cover the former and extended at their edges to the latter; rendered frames are cropped back.
//! Nothing is ever distorted.

use kinora_contract::Size;
use kinora_engine::{EngineError, FrameCrop, RgbPicture};

const CHANNELS: usize = 3;

/// Scales `picture` to fill `crop.size`, where [`FrameCrop::cut`] will find it; its edges are repeated in the
/// rest of `rendered`.
///
/// # Errors
/// [`EngineError::Failed`] for an empty picture, or one whose bytes do not match its size.
pub(crate) fn fit(
    picture: &RgbPicture,
    crop: FrameCrop,
    rendered: Size,
) -> Result<RgbPicture, EngineError> {
    let (from, to) = (picture.size, crop.size);
    let (from, to) = ((from.width, from.height), (to.width, to.height));
    let asked = kinora_media_resize::crop_and_resize(&picture.rgb, from, to)
        .map_err(|error| EngineError::Failed(error.to_string()))?;
    let mut rgb = Vec::with_capacity(rendered.pixels() as usize * CHANNELS);
    let row_bytes = crop.size.width as usize * CHANNELS;
    for y in 0..rendered.height {
        // Rows above and below the picture repeat its first and last row: a black border would
        // be taken for a part of the scene.
        let row = y.saturating_sub(crop.top).min(crop.size.height - 1) as usize * row_bytes;
        let row = &asked[row..row + row_bytes];
        let (first, last) = (&row[..CHANNELS], &row[row_bytes - CHANNELS..]);
        let right = rendered.width - crop.size.width - crop.left;
        (0..crop.left).for_each(|_| rgb.extend_from_slice(first));
        rgb.extend_from_slice(row);
        (0..right).for_each(|_| rgb.extend_from_slice(last));
    }
    Ok(RgbPicture {
        size: rendered,
        rgb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(size: Size) -> RgbPicture {
        let rgb = (0..size.pixels() * 3)
            .map(|i| (i * 7 % 251) as u8)
            .collect();
        RgbPicture { size, rgb }
    }

    #[test]
    fn a_picture_of_the_asked_size_comes_back_untouched() {
        let asked = Size::new(22, 10);
        let rendered = Size::new(32, 16);
        let middle = FrameCrop::middle(asked, rendered);
        let given = picture(asked);
        let fitted = fit(&given, middle, rendered).unwrap();
        assert_eq!(fitted.size, rendered);
        assert_eq!(middle.cut(&fitted.rgb, rendered).unwrap(), given.rgb);
        // The corner repeats the picture's own corner.
        assert_eq!(fitted.rgb[..3], given.rgb[..3]);
        assert_eq!(
            fitted.rgb[fitted.rgb.len() - 3..],
            given.rgb[given.rgb.len() - 3..]
        );
    }

    #[test]
    fn another_shape_is_cut_and_never_stretched() {
        // Left half black, right half white, twice as wide as requested: the middle remains.
        let given = Size::new(64, 16);
        let rgb = (0..given.pixels() as u32)
            .flat_map(|i| [if i % 64 < 32 { 0_u8 } else { 255 }; 3])
            .collect();
        let asked = Size::new(16, 16);
        let fitted = fit(
            &RgbPicture { size: given, rgb },
            FrameCrop::middle(asked, asked),
            asked,
        )
        .unwrap();
        assert_eq!((fitted.rgb[0], fitted.rgb[15 * 3]), (0, 255));
    }

    #[test]
    fn a_broken_picture_is_an_error() {
        let size = Size::new(16, 16);
        for rgb in [Vec::new(), vec![0; 3], vec![0; 16 * 16 * 3 + 1]] {
            assert!(
                fit(
                    &RgbPicture { size, rgb },
                    FrameCrop::middle(size, size),
                    size
                )
                .is_err()
            );
        }
    }
}
