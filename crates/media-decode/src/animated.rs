//! WebP and GIF; of animations, the first frame. Refuses a WebP whose canvas, frame, copy and code
//! tables together would exceed the memory budget.

use std::io::Cursor;

use image_webp::WebPDecoder;

use crate::colour::{ColourSpace, PROFILE_BYTES_MAX};
use crate::error::FileDefect;
use crate::header::{CameraOrientation, ImageHeader, MEMORY_BYTES_MAX};
use crate::pixels::{ImageSamples, MappedCanvas};
use crate::{DecodeCause, webp_codes};

/// Memory per pixel for reading an animated WebP: canvas, frame and copy (RGBA each), and the
/// planes of the frame.
const WEBP_ANIMATED_PIXEL_BYTES: u64 = 16;

/// Memory per pixel for a still WebP: RGBA and the RGB copied from it, which also covers the planes
/// of a lossy one.
const WEBP_PIXEL_BYTES: u64 = 7;

/// GIF pixels are read as RGBA.
const GIF_CHANNELS: usize = 4;

/// Maximum bytes of a GIF frame beside the canvas, which may itself take 144 MB.
const GIF_FRAME_BYTES_MAX: u64 = 100_000_000;

pub(crate) fn webp_header(bytes: &[u8]) -> Result<ImageHeader, DecodeCause> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes))?;
    let exif = decoder.exif_metadata().ok().flatten();
    let (width, height) = decoder.dimensions();
    Ok(ImageHeader {
        width,
        height,
        orientation: CameraOrientation::from_exif(exif.as_deref()),
    })
}

pub(crate) fn gif_header(bytes: &[u8]) -> Result<ImageHeader, DecodeCause> {
    let reader = gif::DecodeOptions::new().read_info(bytes)?;
    Ok(ImageHeader {
        width: reader.width().into(),
        height: reader.height().into(),
        orientation: CameraOrientation::default(),
    })
}

/// The pixels of a WebP; `size` comes from its header.
pub(crate) fn webp(bytes: &[u8], size: (u32, u32)) -> Result<ImageSamples, DecodeCause> {
    // The RIFF header states the file's length: a shorter file was cut.
    let claimed = bytes.get(4..8).and_then(|four| four.try_into().ok());
    let body_bytes = u64::from(u32::from_le_bytes(claimed.unwrap_or([0xff; 4])));
    if body_bytes + 8 > bytes.len() as u64 {
        return Err(FileDefect::EndsEarly.into());
    }
    let mut decoder = WebPDecoder::new(Cursor::new(bytes))?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    let pixel_bytes = if decoder.is_animated() {
        WEBP_ANIMATED_PIXEL_BYTES
    } else {
        WEBP_PIXEL_BYTES
    };
    // The decoder allocates its code tables from the file's word and has no limit for them, so
    // they are measured first.
    let tables = webp_codes::table_bytes(bytes, size)?;
    if pixels * pixel_bytes + tables + bytes.len() as u64 > MEMORY_BYTES_MAX {
        return Err("a WebP of this size needs too much memory".into());
    }
    if decoder.dimensions() != size {
        return Err("the size changed".into());
    }
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut data = MappedCanvas::zeroed(size.0 as usize * size.1 as usize * channels)?;
    decoder.read_image(&mut data)?;
    // After the pixels, whose memory is bounded above.
    decoder.set_memory_limit(PROFILE_BYTES_MAX);
    let colours = match decoder.icc_profile() {
        Ok(None) => ColourSpace::Srgb,
        Ok(Some(profile)) => ColourSpace::from_icc(&profile),
        Err(_) => ColourSpace::Unknown,
    };
    Ok(ImageSamples {
        channels,
        data,
        colours,
    })
}

/// The first frame of a GIF on an otherwise transparent canvas; `size` comes from its header.
pub(crate) fn gif(bytes: &[u8], size: (u32, u32)) -> Result<ImageSamples, DecodeCause> {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut reader = options.read_info(bytes)?;
    if (u32::from(reader.width()), u32::from(reader.height())) != size {
        return Err("the size changed".into());
    }
    let frame = reader.next_frame_info()?.ok_or("no frame")?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (usize::from(frame.width), usize::from(frame.height));
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut data = MappedCanvas::zeroed(width * height * GIF_CHANNELS)?;
    if left == 0 && frame_width == width && top + frame_height <= height {
        // A frame as wide as the canvas is read in place.
        let first = top * width * GIF_CHANNELS;
        let end = first + frame_height * width * GIF_CHANNELS;
        reader.read_into_buffer(&mut data[first..end])?;
    } else {
        let frame_bytes = frame_width * frame_height * GIF_CHANNELS;
        if frame_bytes as u64 > GIF_FRAME_BYTES_MAX {
            return Err("a GIF frame of this size needs too much memory".into());
        }
        // The frame is smaller than the canvas or reaches beyond it: decode it apart, then copy
        // the visible part row by row.
        let mut pixels = MappedCanvas::zeroed(frame_bytes)?;
        reader.read_into_buffer(&mut pixels)?;
        let seen = frame_width.min(width.saturating_sub(left)) * GIF_CHANNELS;
        let rows = pixels.chunks_exact((frame_width * GIF_CHANNELS).max(1));
        let canvas = data.chunks_exact_mut(width * GIF_CHANNELS).skip(top);
        for (to, from) in canvas.zip(rows).filter(|_| seen > 0) {
            let start = left * GIF_CHANNELS;
            to[start..start + seen].copy_from_slice(&from[..seen]);
        }
    }
    Ok(ImageSamples {
        channels: GIF_CHANNELS,
        data,
        colours: ColourSpace::Srgb,
    })
}
