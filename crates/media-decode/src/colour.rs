//! Converts samples with a colour profile to sRGB: profiles of a matrix and curves, and grey ones.
//! Samples with other profiles (printer tables, HDR brightness) stay unchanged, and the image is
//! marked.

use moxcms::{
    CicpColorPrimaries, CicpProfile, ColorProfile, DataColorSpace, Layout, MatrixCoefficients,
    ToneReprCurve, TransferCharacteristics, TransformOptions,
};

use crate::{DecodeCause, file};

/// Maximum length of a profile. Those of cameras and screens have up to a few kilobytes, those with
/// tables, which are not used, up to some megabytes.
pub(crate) const PROFILE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of tags of a profile: each may refer to the same long curve, which is parsed
/// again each time. Real profiles have a few dozen.
const PROFILE_TAGS_MAX: u32 = 128;

/// Pixels converted at a time.
const PIXELS_AT_ONCE: usize = 4_096;

/// Levels of each channel that are tried to find out whether a conversion changes anything.
const PROBE_LEVELS: u8 = 9;

/// Colour space of an image's samples.
pub(crate) enum ColourSpace {
    /// sRGB, stated or by default.
    Srgb,
    /// Defined by a profile.
    Profile(Box<ColorProfile>),
    /// Defined by a profile that cannot be read.
    Unknown,
}

impl ColourSpace {
    /// Parses an ICC profile.
    pub(crate) fn from_icc(profile: &[u8]) -> Self {
        // The number of tags follows the header (ICC.1, section 7.3).
        let tags = profile.get(128..).and_then(|rest| rest.first_chunk());
        let tags = tags.map_or(u32::MAX, |count| u32::from_be_bytes(*count));
        if profile.len() > PROFILE_BYTES_MAX || tags > PROFILE_TAGS_MAX {
            return Self::Unknown;
        }
        let read = file::catch_panic(|| Ok(ColorProfile::new_from_slice(profile)?));
        read.map_or(Self::Unknown, |profile| Self::Profile(Box::new(profile)))
    }

    /// Converts code points of ITU-T H.273.
    pub(crate) fn from_code_points(primaries: u8, transfer: u8) -> Self {
        const UNSPECIFIED: u8 = 2;
        if primaries == UNSPECIFIED || transfer == UNSPECIFIED {
            return Self::Srgb;
        }
        // Players show the curves of video like that of sRGB, and so must a frame of a film.
        let transfer = match transfer {
            1 | 6 | 14 | 15 => TransferCharacteristics::Srgb as u8,
            other => other,
        };
        let mut profile = ColorProfile::new_srgb();
        // The update below sets the curve only if it knows the transfer function: a curve that
        // is still missing tells that it does not.
        profile.red_trc = None;
        if let (Ok(color_primaries), Ok(transfer_characteristics)) = (
            CicpColorPrimaries::try_from(primaries),
            TransferCharacteristics::try_from(transfer),
        ) {
            // Its return value does not tell whether it set anything.
            profile.update_rgb_colorimetry_from_cicp(CicpProfile {
                color_primaries,
                transfer_characteristics,
                matrix_coefficients: MatrixCoefficients::Identity,
                full_range: true,
            });
        }
        if profile.red_trc.is_some() {
            Self::Profile(Box::new(profile))
        } else {
            Self::Unknown
        }
    }

    /// sRGB with the given changes.
    pub(crate) fn from_modified_srgb(change: impl FnOnce(&mut ColorProfile)) -> Self {
        let mut profile = ColorProfile::new_srgb();
        profile.cicp = None;
        change(&mut profile);
        Self::Profile(Box::new(profile))
    }

    /// Converts `samples` of `channels` (1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha) to sRGB.
    /// Returns whether the colours stay as they are because they are not understood.
    pub(crate) fn convert(self, samples: &mut [u8], channels: usize) -> bool {
        match self {
            Self::Srgb => false,
            Self::Unknown => true,
            Self::Profile(profile) => {
                file::catch_panic(|| try_convert(&profile, samples, channels)).is_err()
            }
        }
    }
}

/// Sets all curves of `profile` to `samples` to the power of `exponent`.
pub(crate) fn set_power(profile: &mut ColorProfile, exponent: f32) {
    let curve = ToneReprCurve::Parametric(vec![exponent]);
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
}

fn try_convert(
    profile: &ColorProfile,
    samples: &mut [u8],
    channels: usize,
) -> Result<(), DecodeCause> {
    let is_hdr = profile.cicp.is_some_and(|cicp| {
        matches!(
            cicp.transfer_characteristics,
            TransferCharacteristics::Smpte2084 | TransferCharacteristics::Hlg
        )
    });
    // Mapping PQ or HLG to sRGB is a matter of taste (tone mapping), not of conversion.
    if is_hdr {
        return Err("the brightness of HDR".into());
    }
    match (profile.color_space, channels) {
        (DataColorSpace::Gray, 3 | 4) => {
            if !samples
                .chunks_exact(channels)
                .all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2])
            {
                return Err("a grey profile for colours".into());
            }
            by_table(profile, samples, channels, 3)
        }
        (_, 1 | 2) => by_table(profile, samples, channels, 1),
        _ => by_matrix(profile, samples, channels),
    }
}

/// Converts the first `greys` of each `channels`, which are equal.
fn by_table(
    profile: &ColorProfile,
    samples: &mut [u8],
    channels: usize,
    greys: usize,
) -> Result<(), DecodeCause> {
    // An 8-bit grey has 256 values: convert each once, then look them up.
    let levels: Vec<u8> = (0..=u8::MAX).collect();
    let (layout, levels) = match profile.color_space {
        DataColorSpace::Gray => (Layout::Gray, levels),
        _ => (
            Layout::Rgb,
            levels.iter().flat_map(|&one| [one; 3]).collect(),
        ),
    };
    let mut table = [0; 3 * 256];
    transform(profile, layout, Layout::Rgb)?(&levels, &mut table)?;
    let table: Vec<u8> = table.iter().skip(1).step_by(3).copied().collect();
    for pixel in samples.chunks_exact_mut(channels) {
        for sample in &mut pixel[..greys] {
            *sample = table[usize::from(*sample)];
        }
    }
    Ok(())
}

fn by_matrix(
    profile: &ColorProfile,
    samples: &mut [u8],
    channels: usize,
) -> Result<(), DecodeCause> {
    if changes_nothing(profile)? {
        return Ok(());
    }
    let layout = match channels {
        4 => Layout::Rgba,
        _ => Layout::Rgb,
    };
    let transform = transform(profile, layout, layout)?;
    let mut before = Vec::new();
    // In pieces, because the conversion cannot work in place and a second full-size image would
    // exceed the memory budget.
    for piece in samples.chunks_mut(PIXELS_AT_ONCE * channels) {
        before.clear();
        before.extend_from_slice(piece);
        transform(&before, piece)?;
    }
    Ok(())
}

/// Whether the profile is sRGB in other words.
fn changes_nothing(profile: &ColorProfile) -> Result<bool, DecodeCause> {
    // A grid of 9 x 9 x 9 colours. Most profiles in photos are sRGB, and for these the
    // conversion of every pixel is saved.
    let step = u8::MAX / (PROBE_LEVELS - 1);
    let levels = || (0..PROBE_LEVELS).map(move |level| level * step);
    let pairs = levels().flat_map(|red| levels().map(move |green| (red, green)));
    let probes = pairs.flat_map(|(red, green)| levels().map(move |blue| [red, green, blue]));
    let probes: Vec<u8> = probes.flatten().collect();
    let mut results = vec![0; probes.len()];
    transform(profile, Layout::Rgb, Layout::Rgb)?(&probes, &mut results)?;
    let mut pairs = probes.iter().zip(&results);
    Ok(pairs.all(|(before, after)| before.abs_diff(*after) <= 1))
}

/// Converts one row of samples to another.
type RowConversion = Box<dyn Fn(&[u8], &mut [u8]) -> Result<(), DecodeCause>>;

/// The conversion from `profile` to sRGB.
fn transform(
    profile: &ColorProfile,
    from: Layout,
    to: Layout,
) -> Result<RowConversion, DecodeCause> {
    let options = TransformOptions::default();
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_8bit(from, &srgb, to, options)?;
    Ok(Box::new(move |before, after| {
        Ok(transform.transform(before, after)?)
    }))
}
