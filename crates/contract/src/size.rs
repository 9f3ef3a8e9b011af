//! Frame sizes: the listed sizes, and how `resolution` and `aspect_ratio` name them. A size is
//! never rounded to a listed one: other sizes are refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A frame's width and height in pixels, written `WIDTHxHEIGHT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size {
    /// Pixels per row; even, as 4:2:0 chroma needs.
    pub width: u32,
    /// Rows; even, as 4:2:0 chroma needs.
    pub height: u32,
}

impl Size {
    /// A size of `width` by `height` pixels.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Pixels in one frame.
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// The resolution and aspect ratio that name this size, if it is a listed one.
    pub fn named(self) -> Option<(Resolution, AspectRatio)> {
        Resolution::ALL.into_iter().find_map(|resolution| {
            let ratio = AspectRatio::ALL
                .into_iter()
                .find(|ratio| resolution.size(*ratio) == self)?;
            Some((resolution, ratio))
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The text is not `WIDTHxHEIGHT` in plain decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size is written WIDTHxHEIGHT, for example 1280x720")]
pub struct SizeSyntax;

impl FromStr for Size {
    type Err = SizeSyntax;

    fn from_str(text: &str) -> Result<Self, SizeSyntax> {
        let (width, height) = text.split_once('x').ok_or(SizeSyntax)?;
        Ok(Self::new(parse_side(width)?, parse_side(height)?))
    }
}

fn parse_side(digits: &str) -> Result<u32, SizeSyntax> {
    // One spelling for each size: `u32::from_str` also takes `+1280` and `01280`.
    let plain = (1..=5).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if !plain {
        return Err(SizeSyntax);
    }
    digits.parse().map_err(|_| SizeSyntax)
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The short side of a frame, by its usual name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Resolution {
    /// Short side 480 pixels.
    #[serde(rename = "480p")]
    P480,
    /// Short side 720 pixels.
    #[serde(rename = "720p")]
    P720,
    /// Short side 1080 pixels.
    #[serde(rename = "1080p")]
    P1080,
}

impl Resolution {
    /// Every resolution, smallest first.
    pub const ALL: [Self; 3] = [Self::P480, Self::P720, Self::P1080];

    /// The name used in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P480 => "480p",
            Self::P720 => "720p",
            Self::P1080 => "1080p",
        }
    }

    /// The resolution with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    const fn short_side(self) -> u32 {
        match self {
            Self::P480 => 480,
            Self::P720 => 720,
            Self::P1080 => 1080,
        }
    }

    /// The listed size of this resolution at `ratio`: the short side is the resolution's,
    /// the long side is exact, rounded up to an even number.
    pub const fn size(self, ratio: AspectRatio) -> Size {
        let (across, down) = ratio.terms();
        let short = self.short_side();
        if across >= down {
            // For example 480p at 16:9: 480 x 16 / 9 = 853.3, rounded up to 854. Encoders of 4:2:0
            // need even sides.
            Size::new((short * across).div_ceil(down).next_multiple_of(2), short)
        } else {
            Size::new(short, (short * down).div_ceil(across).next_multiple_of(2))
        }
    }

    /// The size of this resolution in the shape of `size`; the listed one if that shape is listed.
    pub fn shaped_like(self, size: Size) -> Size {
        if let Some((_, ratio)) = size.named() {
            return self.size(ratio);
        }
        // Both sides are scaled by the same ratio and rounded up to even, so the shorter one is
        // exactly that of the resolution, and the shape is off by less than two pixels.
        let short = u64::from(size.width.min(size.height).max(1));
        let [width, height] = [size.width, size.height].map(|side| {
            let exact = u64::from(side) * u64::from(self.short_side());
            let rounded = exact.div_ceil(short).next_multiple_of(2);
            u32::try_from(rounded).unwrap_or(u32::MAX)
        });
        Size::new(width, height)
    }

    /// The size of this resolution whose aspect ratio is nearest (in the logarithm, so that
    /// wide and tall err alike) to that of a `width` by `height` picture.
    pub fn nearest(self, width: u32, height: u32) -> Size {
        let wanted = (f64::from(width.max(1)) / f64::from(height.max(1))).ln();
        let distance = |ratio: AspectRatio| {
            let (across, down) = ratio.terms();
            (f64::from(across) / f64::from(down)).ln() - wanted
        };
        let nearest = AspectRatio::ALL
            .into_iter()
            .min_by(|a, b| distance(*a).abs().total_cmp(&distance(*b).abs()));
        self.size(nearest.unwrap_or(AspectRatio::R16x9))
    }
}

/// A listed shape of the frame, width to height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum AspectRatio {
    /// Wide screen.
    #[serde(rename = "16:9")]
    R16x9,
    /// Telephone held upright.
    #[serde(rename = "9:16")]
    R9x16,
    /// Square.
    #[serde(rename = "1:1")]
    R1x1,
    /// Classic television.
    #[serde(rename = "4:3")]
    R4x3,
    /// Upright portrait.
    #[serde(rename = "3:4")]
    R3x4,
    /// Cinema scope.
    #[serde(rename = "21:9")]
    R21x9,
}

impl AspectRatio {
    /// Every listed ratio, in the order of the public contract.
    pub const ALL: [Self; 6] = [
        Self::R16x9,
        Self::R9x16,
        Self::R1x1,
        Self::R4x3,
        Self::R3x4,
        Self::R21x9,
    ];

    /// The name used in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::R16x9 => "16:9",
            Self::R9x16 => "9:16",
            Self::R1x1 => "1:1",
            Self::R4x3 => "4:3",
            Self::R3x4 => "3:4",
            Self::R21x9 => "21:9",
        }
    }

    /// The ratio with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    const fn terms(self) -> (u32, u32) {
        match self {
            Self::R16x9 => (16, 9),
            Self::R9x16 => (9, 16),
            Self::R1x1 => (1, 1),
            Self::R4x3 => (4, 3),
            Self::R3x4 => (3, 4),
            Self::R21x9 => (21, 9),
        }
    }
}

/// All eighteen listed sizes, smallest resolution first.
pub fn listed_sizes() -> Vec<Size> {
    Resolution::ALL
        .into_iter()
        .flat_map(|resolution| AspectRatio::ALL.map(|ratio| resolution.size(ratio)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_sizes_are_the_documented_ones() {
        let text: Vec<String> = listed_sizes().iter().map(Size::to_string).collect();
        assert_eq!(
            text.join(" "),
            "854x480 480x854 480x480 640x480 480x640 1120x480 \
             1280x720 720x1280 720x720 960x720 720x960 1680x720 \
             1920x1080 1080x1920 1080x1080 1440x1080 1080x1440 2520x1080"
        );
    }

    #[test]
    fn every_listed_size_is_even_and_names_itself() {
        for resolution in Resolution::ALL {
            for ratio in AspectRatio::ALL {
                let size = resolution.size(ratio);
                assert_eq!((size.width % 2, size.height % 2), (0, 0), "{size}");
                assert_eq!(size.named(), Some((resolution, ratio)));
            }
        }
    }

    #[test]
    fn a_size_is_plain_digits_only() {
        for wrong in [
            "",
            "x",
            "1280",
            "1280X720",
            "1280x",
            "+1280x720",
            "01280x720",
            " 1280x720",
        ] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong:?}");
        }
        assert!("1280x720x3".parse::<Size>().is_err());
        assert!("99999999999x1".parse::<Size>().is_err());
        assert_eq!("1280x720".parse::<Size>(), Ok(Size::new(1280, 720)));
    }

    #[test]
    fn a_shape_is_kept_at_another_resolution() {
        let own = Size::new(1152, 640);
        assert_eq!(Resolution::P480.shaped_like(own), Size::new(864, 480));
        let tall = Resolution::P480.shaped_like(Size::new(640, 1152));
        assert_eq!(tall, Size::new(480, 864));
        let stages = [own, Size::new(864, 480)].map(|size| Resolution::P720.shaped_like(size));
        assert_eq!(stages, [Size::new(1296, 720); 2]);
        for size in listed_sizes() {
            assert_eq!(
                Resolution::P480.shaped_like(size).named().map(|(_, r)| r),
                size.named().map(|(_, r)| r)
            );
        }
        assert_eq!(
            Resolution::P480.shaped_like(Size::new(0, 0)),
            Size::new(0, 0)
        );
    }

    #[test]
    fn nearest_takes_the_closest_shape() {
        assert_eq!(Resolution::P720.nearest(4000, 3000), Size::new(960, 720));
        assert_eq!(Resolution::P720.nearest(1000, 1010), Size::new(720, 720));
        assert_eq!(Resolution::P480.nearest(9, 16), Size::new(480, 854));
        assert_eq!(Resolution::P1080.nearest(0, 0), Size::new(1080, 1080));
    }
}
