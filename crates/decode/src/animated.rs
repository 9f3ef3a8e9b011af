//! WebP and GIF, of which the first frame is read when they move. Refuses a WebP whose canvas,
//! frame, copy and code tables together would not fit the memory budget.

use std::io::Cursor;

use image::codecs::gif::GifDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, Limits};

use crate::Cause;
use crate::image::{Header, MEMORY_BYTES_MAX};
use crate::pixels::Samples;
use crate::webp_codes;

/// Bytes per pixel that reading an animated WebP holds: canvas, frame, copy (RGBA each) and the
/// planes of the frame.
const WEBP_ANIMATED_PIXEL_BYTES: u64 = 16;

/// The same of a still one: RGBA and the RGB copied from it, which is also room for the planes
/// of a lossy one.
const WEBP_PIXEL_BYTES: u64 = 7;

/// Most bytes of a GIF frame beside the canvas, which is up to 144 MB itself.
const GIF_FRAME_BYTES_MAX: u64 = 100_000_000;

pub(crate) fn webp_header(bytes: &[u8]) -> Result<Header, Cause> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes))?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let (width, height) = decoder.dimensions();
    Ok(Header {
        width,
        height,
        orientation,
    })
}

pub(crate) fn gif_header(bytes: &[u8]) -> Result<Header, Cause> {
    let (width, height) = GifDecoder::new(Cursor::new(bytes))?.dimensions();
    Ok(Header {
        width,
        height,
        orientation: Orientation::NoTransforms,
    })
}

/// The pixels of a WebP whose header gave `size`.
pub(crate) fn webp(bytes: &[u8], size: (u32, u32)) -> Result<Samples, Cause> {
    let claimed = bytes.get(4..8).and_then(|four| four.try_into().ok());
    let body_bytes = u64::from(u32::from_le_bytes(claimed.unwrap_or([0xff; 4])));
    if body_bytes + 8 > bytes.len() as u64 {
        return Err("the file ends early".into());
    }
    let decoder = WebPDecoder::new(Cursor::new(bytes))?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    let pixel_bytes = if decoder.has_animation() {
        WEBP_ANIMATED_PIXEL_BYTES
    } else {
        WEBP_PIXEL_BYTES
    };
    let tables = webp_codes::table_bytes(bytes, size)?;
    if pixels * pixel_bytes + tables + bytes.len() as u64 > MEMORY_BYTES_MAX {
        return Err("a WebP of this size needs too much memory".into());
    }
    samples(decoder, size)
}

/// The first frame of a GIF whose header gave `size`, on its canvas.
pub(crate) fn gif(bytes: &[u8], size: (u32, u32)) -> Result<Samples, Cause> {
    let mut decoder = GifDecoder::new(Cursor::new(bytes))?;
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(size.0);
    limits.max_image_height = Some(size.1);
    limits.max_alloc = Some(GIF_FRAME_BYTES_MAX);
    decoder.set_limits(limits)?;
    samples(decoder, size)
}

fn samples(decoder: impl ImageDecoder, size: (u32, u32)) -> Result<Samples, Cause> {
    let channels = match decoder.color_type() {
        ColorType::Rgb8 => 3,
        ColorType::Rgba8 => 4,
        other => return Err(format!("unexpected samples: {other:?}").into()),
    };
    if decoder.dimensions() != size {
        return Err("the size changed".into());
    }
    let mut data = vec![0; size.0 as usize * size.1 as usize * channels];
    decoder.read_image(&mut data)?;
    Ok(Samples { channels, data })
}
