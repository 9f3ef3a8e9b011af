//! PNG, including the default image of an animated one. Text and colour profiles, which may inflate
//! to hundreds of megabytes, are never inflated; 16-bit samples are reduced to 8 bits row by row.

use std::io::Cursor;

use png::{Decoder, Limits, Reader, Transformations};

use crate::Cause;
use crate::canvas::Canvas;
use crate::header::Header;
use crate::orientation::Orientation;
use crate::pixels::Samples;

/// Maximum memory for chunks while reading pixels.
const CHUNK_BYTES_MAX: usize = 4 << 20;

pub(crate) fn header(bytes: &[u8]) -> Result<Header, Cause> {
    let reader = reader(bytes)?;
    let info = reader.info();
    Ok(Header {
        width: info.width,
        height: info.height,
        orientation: Orientation::from_exif(info.exif_metadata.as_deref()),
    })
}

/// The pixels of an image; `size` comes from its header.
pub(crate) fn decode(bytes: &[u8], size: (u32, u32)) -> Result<Samples, Cause> {
    let mut reader = reader(bytes)?;
    let (color, _) = reader.output_color_type();
    let channels = color.samples();
    let expected = size.0 as usize * size.1 as usize * channels;
    if reader.output_buffer_size() != Some(expected) {
        return Err("the samples do not fill the image".into());
    }
    let mut data = Canvas::zeroed(expected)?;
    reader.next_frame(&mut data)?;
    // Read to the end, so that a truncated file is not accepted as complete.
    reader.finish()?;
    Ok(Samples { channels, data })
}

fn reader(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, Cause> {
    let limits = Limits {
        bytes: CHUNK_BYTES_MAX,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::normalize_to_color8());
    Ok(decoder.read_info()?)
}
