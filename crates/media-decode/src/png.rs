//! PNG, including the default image of an animated one. Text, which may inflate to hundreds of
//! megabytes, is never inflated, and colour profiles only up to a bound; 16-bit samples are reduced to
//! 8 bits row by row.

use std::borrow::Cow;
use std::io::Cursor;

use moxcms::{Chromaticity, ColorPrimaries, XyY};
use png::{Decoder, Info, Limits, Reader, ScaledFloat, Transformations};

use crate::DecodeCause;
use crate::colour::{ColourSpace, set_power};
use crate::header::{CameraOrientation, ImageHeader};
use crate::pixels::{ImageSamples, MappedCanvas};

/// Maximum memory for chunks while reading pixels.
const CHUNK_BYTES_MAX: usize = 4 << 20;
/// Maximum length of a compressed colour profile that is read.
const PROFILE_CHUNK_BYTES_MAX: usize = 1 << 20;

/// An empty private chunk of a PNG that was made of an image whose colour profile was ignored.
pub const PROFILE_IGNORED_CHUNK: [u8; 4] = *b"kcPI";

/// The last chunk of every PNG.
const END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";

/// Values of `gAMA` (PNG, third edition, section 11.3.2.2) that stand for the curve of sRGB: 45,455, and
/// 50,994, which FFmpeg writes for a frame of a film, whose curve players show alike.
const GAMMA_OF_SRGB: std::ops::RangeInclusive<u32> = 44_000..=51_500;
/// Values of `gAMA` that a file may mean.
const GAMMA_RANGE: std::ops::RangeInclusive<u32> = 10_000..=1_000_000;

pub(crate) fn header(bytes: &[u8]) -> Result<ImageHeader, DecodeCause> {
    let reader = reader(bytes, false)?;
    let info = reader.info();
    Ok(ImageHeader {
        width: info.width,
        height: info.height,
        orientation: CameraOrientation::from_exif(info.exif_metadata.as_deref()),
    })
}

/// The pixels of an image; `size` comes from its header.
pub(crate) fn decode(bytes: &[u8], size: (u32, u32)) -> Result<ImageSamples, DecodeCause> {
    // If only the end chunk is missing, append it: every row may still be there.
    let bytes = &*with_end_chunk(bytes);
    let profile_bytes = chunk_length(bytes, b"iCCP");
    let read_profile = profile_bytes.is_some_and(|bytes| bytes <= PROFILE_CHUNK_BYTES_MAX);
    let mut reader = reader(bytes, read_profile)?;
    let (color, _) = reader.output_color_type();
    let channels = color.samples();
    let expected = size.0 as usize * size.1 as usize * channels;
    if reader.output_buffer_size() != Some(expected) {
        return Err("the samples do not fill the image".into());
    }
    let mut data = MappedCanvas::zeroed(expected)?;
    reader.next_frame(&mut data)?;
    // Read to the end, so that a truncated file is not accepted as complete.
    reader.finish()?;
    let colours = match chunk_length(bytes, &PROFILE_IGNORED_CHUNK) {
        Some(_) => ColourSpace::Unknown,
        None => colours(reader.info(), profile_bytes.is_some()),
    };
    Ok(ImageSamples {
        channels,
        data,
        colours,
    })
}

fn reader(bytes: &[u8], read_profile: bool) -> Result<Reader<Cursor<&[u8]>>, DecodeCause> {
    let limits = Limits {
        bytes: CHUNK_BYTES_MAX,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    // Compressed text and profiles are bombs of a few kilobytes that inflate to hundreds of
    // megabytes.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(!read_profile);
    decoder.set_transformations(Transformations::normalize_to_color8());
    Ok(decoder.read_info()?)
}

/// The file with its end, if only that is missing. Whether every row is there, the decoder tells.
fn with_end_chunk(file: &[u8]) -> Cow<'_, [u8]> {
    let mut at = 8;
    while let Some((kind, end)) = chunk(file, at) {
        match kind {
            b"IDAT" if end > file.len() => return Cow::Borrowed(file),
            b"IEND" if file[at..].starts_with(END) => return Cow::Borrowed(file),
            b"IEND" => break,
            _ if end > file.len() => break,
            _ => at = end,
        }
    }
    Cow::Owned([&file[..at.min(file.len())], END].concat())
}

/// Kind and end of the chunk at `at`.
fn chunk(file: &[u8], at: usize) -> Option<(&[u8; 4], usize)> {
    let length = u32::from_be_bytes(*file.get(at..)?.first_chunk()?);
    let kind: &[u8; 4] = file.get(at + 4..)?.first_chunk()?;
    let end = at.checked_add(12)?.checked_add(length as usize)?;
    kind.iter()
        .all(u8::is_ascii_alphabetic)
        .then_some((kind, end))
}

/// The length of the first chunk of this `kind` before the pixels.
fn chunk_length(file: &[u8], kind: &[u8; 4]) -> Option<usize> {
    let mut at = 8;
    loop {
        match chunk(file, at)? {
            (found, end) if found == kind => return Some(end - at - 12),
            (b"IDAT", _) => return None,
            (_, end) => at = end,
        }
    }
}

/// The meaning of the samples, by the chunk that precedes the others (PNG, third edition, section
/// 4.3): code points, profile, sRGB, and gamma with primaries.
fn colours(info: &Info<'_>, has_profile: bool) -> ColourSpace {
    if let Some(points) = &info.coding_independent_code_points {
        return if points.is_video_full_range_image {
            ColourSpace::from_code_points(points.color_primaries, points.transfer_function)
        } else {
            ColourSpace::Unknown
        };
    }
    match (&info.icc_profile, has_profile) {
        (Some(profile), _) => return ColourSpace::from_icc(profile),
        (None, true) => return ColourSpace::Unknown,
        (None, false) => {}
    }
    let (gamma, primaries) = (info.gama_chunk, info.chrm_chunk);
    if info.srgb.is_some() || (gamma.is_none() && primaries.is_none()) {
        return ColourSpace::Srgb;
    }
    let gamma = gamma.map(ScaledFloat::into_scaled);
    if gamma.is_some_and(|gamma| !GAMMA_RANGE.contains(&gamma)) {
        return ColourSpace::Unknown;
    }
    ColourSpace::from_modified_srgb(|profile| {
        if let Some(gamma) = gamma.filter(|gamma| !GAMMA_OF_SRGB.contains(gamma)) {
            set_power(profile, 100_000.0 / gamma as f32);
        }
        if let Some(chunk) = primaries {
            let white = chromaticity(chunk.white);
            let white = XyY {
                x: white.x.into(),
                y: white.y.into(),
                yb: 1.0,
            };
            let primaries = ColorPrimaries {
                red: chromaticity(chunk.red),
                green: chromaticity(chunk.green),
                blue: chromaticity(chunk.blue),
            };
            profile.update_rgb_colorimetry(white, primaries);
        }
    })
}

fn chromaticity((x, y): (ScaledFloat, ScaledFloat)) -> Chromaticity {
    Chromaticity {
        x: x.into_value(),
        y: y.into_value(),
    }
}
