//! Size and camera orientation of an image, read before its pixels, and the memory budget for
//! decoding. Formats: Exif 2.32, 4.6.4 (tag 0x112); TIFF 6.0, section 2.

use kinora_contract::limits::REFERENCE_DECODE_BYTES_MAX;

use crate::pixels::DecodedImage;

/// Maximum memory for reading one image, its file included.
pub(crate) const MEMORY_BYTES_MAX: u64 = REFERENCE_DECODE_BYTES_MAX;

/// Size and orientation in an image's headers.
pub(crate) struct ImageHeader {
    /// Pixels, as stored.
    pub width: u32,
    /// Pixels, as stored.
    pub height: u32,
    /// How to turn the stored image upright.
    pub orientation: CameraOrientation,
}

impl ImageHeader {
    /// `(width, height)` in pixels, upright.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        if self.orientation.transposed {
            (self.height, self.width)
        } else {
            (self.width, self.height)
        }
    }
}

const CHANNELS: usize = 3;
const ORIENTATION_TAG: u16 = 0x112;
/// The 16-bit type of TIFF.
const SHORT: u16 = 3;

/// The steps that turn the stored picture upright, in this order. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CameraOrientation {
    /// Swap rows and columns.
    pub transposed: bool,
    /// Mirror left and right.
    mirrored: bool,
    /// Flip top and bottom.
    flipped: bool,
}

impl CameraOrientation {
    /// Reads the TIFF structure of EXIF; upright if it is absent or unreadable.
    pub(crate) fn from_exif(tiff: Option<&[u8]>) -> Self {
        tiff.and_then(tag).map_or(Self::default(), Self::from_tag)
    }

    const fn new(transposed: bool, mirrored: bool, flipped: bool) -> Self {
        Self {
            transposed,
            mirrored,
            flipped,
        }
    }

    fn from_tag(value: u16) -> Self {
        match value {
            2 => Self::new(false, true, false),
            3 => Self::new(false, true, true),
            4 => Self::new(false, false, true),
            5 => Self::new(true, false, false),
            6 => Self::new(true, true, false),
            7 => Self::new(true, true, true),
            8 => Self::new(true, false, true),
            _ => Self::default(),
        }
    }

    /// Turns the picture upright. Allocates a second one only to swap rows and columns.
    pub(crate) fn turn_upright(self, image: DecodedImage) -> DecodedImage {
        let DecodedImage {
            width,
            height,
            rgb,
            profile_ignored,
        } = image;
        let (width, height, mut rgb) = if self.transposed {
            (height, width, transposed(&rgb, width as usize))
        } else {
            (width, height, rgb)
        };
        let row_bytes = width as usize * CHANNELS;
        if self.mirrored {
            for row in rgb.chunks_exact_mut(row_bytes) {
                row.as_chunks_mut::<CHANNELS>().0.reverse();
            }
        }
        if self.flipped {
            let rows = height as usize;
            // The middle row of an odd number stays where it is: it is part of `upper`, and
            // `lower` has one row less.
            let (upper, lower) = rgb.split_at_mut(rows.div_ceil(2) * row_bytes);
            let upper = upper.chunks_exact_mut(row_bytes);
            for (one, other) in upper.zip(lower.chunks_exact_mut(row_bytes).rev()) {
                one.swap_with_slice(other);
            }
        }
        DecodedImage {
            width,
            height,
            rgb,
            profile_ignored,
        }
    }
}

/// Transposes `[height][width][3]` to `[width][height][3]`.
fn transposed(rgb: &[u8], width: usize) -> Vec<u8> {
    let pixels = rgb.as_chunks::<CHANNELS>().0;
    let mut turned = Vec::with_capacity(rgb.len());
    for column in 0..width {
        for pixel in pixels.iter().skip(column).step_by(width) {
            turned.extend_from_slice(pixel);
        }
    }
    turned
}

/// The orientation tag of the first directory of a TIFF structure.
fn tag(tiff: &[u8]) -> Option<u16> {
    let big_endian = match tiff.get(..4)? {
        b"II\x2a\0" => false,
        b"MM\0\x2a" => true,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        let read = if big_endian {
            u16::from_be_bytes
        } else {
            u16::from_le_bytes
        };
        Some(read(bytes))
    };
    let u32_at = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        let read = if big_endian {
            u32::from_be_bytes
        } else {
            u32::from_le_bytes
        };
        Some(read(bytes))
    };
    // Every access is checked, so a directory beyond the end of the data reads as no
    // orientation.
    let directory = u32_at(4)? as usize;
    for entry in 0..usize::from(u16_at(directory)?) {
        let at = directory + 2 + entry * 12;
        let wanted = (ORIENTATION_TAG, SHORT, 1);
        if (u16_at(at)?, u16_at(at + 2)?, u32_at(at + 4)?) == wanted {
            return u16_at(at + 8);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of three pixels, numbered.
    fn stored() -> DecodedImage {
        DecodedImage {
            width: 3,
            height: 2,
            rgb: [1, 2, 3, 4, 5, 6]
                .into_iter()
                .flat_map(|pixel| [pixel; 3])
                .collect(),
            profile_ignored: false,
        }
    }

    /// Exif 2.32, 4.6.4: where the stored first row and first column appear.
    #[test]
    fn each_of_the_eight_ways_is_turned_as_exif_says() {
        let cases = [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [4, 1, 5, 2, 6, 3]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [3, 6, 2, 5, 1, 4]),
            (0, 3, [1, 2, 3, 4, 5, 6]),
            (9, 3, [1, 2, 3, 4, 5, 6]),
        ];
        for (value, width, pixels) in cases {
            let upright = CameraOrientation::from_tag(value).turn_upright(stored());
            let rgb: Vec<u8> = pixels.into_iter().flat_map(|pixel| [pixel; 3]).collect();
            let height = 6 / width;
            let expected = DecodedImage {
                width,
                height,
                rgb,
                profile_ignored: false,
            };
            assert_eq!(upright, expected, "orientation {value}");
        }
    }

    #[test]
    fn an_odd_row_in_the_middle_stays() {
        let rgb: Vec<u8> = (0..15).collect();
        let (width, height) = (1, 5);
        let upright = CameraOrientation::from_tag(4).turn_upright(DecodedImage {
            width,
            height,
            rgb,
            profile_ignored: false,
        });
        let expected = [12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2];
        assert_eq!(upright.rgb, expected);
    }

    #[test]
    fn the_tag_is_found_behind_others_and_nowhere_else() {
        let mut tiff = b"II\x2a\0\x08\0\0\0\x02\0".to_vec();
        tiff.extend(b"\x0f\x01\x02\0\x04\0\0\0abc\0");
        tiff.extend(b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0");
        assert_eq!(tag(&tiff), Some(6));
        assert!(CameraOrientation::from_exif(Some(&tiff)).transposed);
        for length in 0..tiff.len() - 2 {
            assert_eq!(tag(&tiff[..length]), None, "cut at {length}");
        }
        // Another type, or more than one value.
        for (at, byte) in [(24, 4), (26, 2), (22, 0x13)] {
            let mut other = tiff.clone();
            other[at] = byte;
            assert_eq!(
                CameraOrientation::from_exif(Some(&other)),
                CameraOrientation::default()
            );
        }
        // A directory past the end.
        tiff[4..8].fill(0xff);
        assert_eq!(tag(&tiff), None);
    }
}
