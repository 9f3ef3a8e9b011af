//! JPEG, baseline and progressive, grey, YCbCr, RGB and CMYK. Walks the segments first, to refuse
//! truncated files, files with too many scans, and files whose coefficients would exceed the memory
//! budget before decoding them. Formats: ITU-T T.81, annex B.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::DecodeCause;
use crate::colour::ColourSpace;
use crate::error::FileDefect;
use crate::header::{CameraOrientation, ImageHeader, MEMORY_BYTES_MAX};
use crate::pixels::{ImageSamples, MappedCanvas};

/// Maximum number of scans: encoders write about ten, and each costs a pass over all pixels.
const SCANS_MAX: usize = 32;

pub(crate) fn header(bytes: &[u8]) -> Result<ImageHeader, DecodeCause> {
    let mut decoder = decoder(bytes);
    decoder.decode_headers()?;
    let (width, height) = decoder.dimensions().ok_or("no size")?;
    Ok(ImageHeader {
        width: u32::try_from(width)?,
        height: u32::try_from(height)?,
        orientation: CameraOrientation::from_exif(decoder.exif().map(Vec::as_slice)),
    })
}

/// The pixels of an image; `size`, `(width, height)`, comes from its header.
pub(crate) fn decode(bytes: &[u8], size: (u32, u32)) -> Result<ImageSamples, DecodeCause> {
    let structure = JpegStructure::parse(bytes)?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    // Without an end marker, the file is copied to append one.
    let copies = if structure.has_end_marker { 1 } else { 2 };
    let needed = bytes.len() as u64 * copies + pixels * 3 + structure.coefficient_bytes(size);
    if needed > MEMORY_BYTES_MAX {
        return Err("a progressive JPEG of this size needs too much memory".into());
    }
    let expected = usize::try_from(pixels * 3)?;
    let (data, profile) = if structure.has_end_marker {
        read(bytes, expected)?
    } else {
        read_without_end(bytes, expected)?
    };
    let colours = match profile {
        Some(profile) => ColourSpace::from_icc(&profile),
        None if structure.has_profile => ColourSpace::Unknown,
        None => ColourSpace::Srgb,
    };
    Ok(ImageSamples {
        channels: 3,
        data,
        colours,
    })
}

/// The pixels, and the colour profile.
fn read(bytes: &[u8], expected: usize) -> Result<(MappedCanvas, Option<Vec<u8>>), DecodeCause> {
    let mut decoder = decoder(bytes);
    decoder.decode_headers()?;
    if decoder.output_buffer_size() != Some(expected) {
        return Err("the samples do not fill the image".into());
    }
    let mut rgb = MappedCanvas::zeroed(expected)?;
    decoder.decode_into(&mut rgb)?;
    Ok((rgb, decoder.icc_profile()))
}

/// Reads a file without its end marker, which is complete if what would follow changes nothing:
/// the decoder fills what is missing, and does not tell.
fn read_without_end(
    bytes: &[u8],
    expected: usize,
) -> Result<(MappedCanvas, Option<Vec<u8>>), DecodeCause> {
    let mut file = without_padding(bytes).to_vec();
    let end = file.len();
    let mut with = |continuation: u8| {
        file.truncate(end);
        file.resize(end + CONTINUATION_BYTES, continuation);
        file.extend([0xff, 0xd9]);
        read(&file, expected)
    };
    // Decode twice with different bits behind the file's end. If both give the same picture,
    // nothing of it depended on the missing bits. Only a checksum of the first is kept, because
    // two full-size pictures would exceed the memory budget.
    let (rgb, _) = with(0b0101_0101)?;
    let sum = sum(&rgb);
    drop(rgb);
    let (rgb, profile) = with(0b1010_1010)?;
    if self::sum(&rgb) != sum {
        return Err(FileDefect::EndsEarly.into());
    }
    Ok((rgb, profile))
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The file without the padding of zero bytes or the half of a marker behind its last scan. A scan
/// itself may end with a few zero bytes.
fn without_padding(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    match &bytes[last..] {
        [0xff] => &bytes[..last],
        _ => &bytes[..bytes.len().min(last + 1 + SCAN_ZEROS_MAX)],
    }
}

fn decoder(bytes: &[u8]) -> JpegDecoder<ZCursor<&[u8]>> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(SCANS_MAX)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options)
}

/// Zero bytes that may belong to the end of a scan.
const SCAN_ZEROS_MAX: usize = 8;

/// Number of bytes appended to a scan that may be cut.
const CONTINUATION_BYTES: usize = 32;

/// Facts from the segments of a JPEG: the cost of decoding it, and whether it is complete.
#[derive(Default)]
struct JpegStructure {
    progressive: bool,
    /// Whether there is an end marker.
    has_end_marker: bool,
    has_profile: bool,
    /// Coefficients whose bits the scans have completely (one bit each), by component.
    complete: HashMap<u8, u64>,
    /// Horizontal and vertical sampling factors by component.
    sampling: Vec<(u64, u64)>,
    /// Components of the first scan.
    first_scan_components: usize,
    scans: usize,
}

impl JpegStructure {
    /// Walks all segments from the start marker to the end marker, or to the end of the last scan.
    fn parse(bytes: &[u8]) -> Result<Self, DecodeCause> {
        let mut structure = Self::default();
        let mut at = 2;
        while let Some((marker, segment_at)) = next_marker(bytes, at) {
            at = segment_at;
            // End of image ends the walk; TEM and a second start of image have no segment.
            match marker {
                0xd9 => {
                    structure.has_end_marker = true;
                    break;
                }
                0x01 | 0xd8 => continue,
                _ => {}
            }
            let segment = segment(bytes, at).ok_or(FileDefect::EndsEarly)?;
            structure.record_segment(marker, segment);
            if structure.scans > SCANS_MAX {
                return Err("too many scans".into());
            }
            at += segment.len();
        }
        if !structure.has_end_marker && !structure.is_complete() {
            return Err(FileDefect::EndsEarly.into());
        }
        if structure.scans == 0 {
            return Err("no scan".into());
        }
        Ok(structure)
    }

    fn record_segment(&mut self, marker: u8, segment: &[u8]) {
        match marker {
            0xda => {
                self.scans += 1;
                if self.scans == 1 {
                    self.first_scan_components = segment.get(2).map_or(0, |&count| count.into());
                }
                self.record_scan(segment);
            }
            // Application segment 2, annex B.4 of ICC.1.
            0xe2 => self.has_profile |= segment[2..].starts_with(b"ICC_PROFILE\0"),
            // Start of frame; C4, C8 and CC in this range are tables and extensions.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                self.progressive |= marker & 3 == 2;
                let components = segment.get(8..).unwrap_or(&[]).chunks_exact(3);
                let factors =
                    components.map(|one| (u64::from(one[1] >> 4), u64::from(one[1] & 15)));
                self.sampling = factors.collect();
            }
            _ => {}
        }
    }

    /// Records which coefficients are complete after a scan with this header (T.81, B.2.3).
    fn record_scan(&mut self, header: &[u8]) {
        let count = header.get(2).map_or(0, |&count| usize::from(count));
        let Some(&[first, last, bits, ..]) = header.get(3 + 2 * count..) else {
            return;
        };
        // A progressive scan refines a range of coefficients, bit by bit. The last pass has a
        // point transform of 0 in its low four bits: only then are they complete.
        let coefficients = match (self.progressive, bits & 15) {
            (false, _) => u64::MAX,
            (true, 0) => (first.min(63)..=last.min(63)).fold(0, |all, one| all | 1 << one),
            (true, _) => 0,
        };
        for component in header[3..3 + 2 * count].chunks_exact(2) {
            *self.complete.entry(component[0]).or_default() |= coefficients;
        }
    }

    fn is_complete(&self) -> bool {
        self.complete.len() == self.sampling.len()
            && self
                .complete
                .values()
                .all(|&coefficients| coefficients == u64::MAX)
    }

    /// Memory for coefficients held until the last scan: none if a single scan has all components.
    /// An upper bound, since the decoder pads single-component scans.
    fn coefficient_bytes(&self, size: (u32, u32)) -> u64 {
        // A baseline file with all components in one scan is decoded row by row and holds no
        // coefficients.
        let whole = self.first_scan_components == self.sampling.len();
        if whole && !self.progressive {
            return 0;
        }
        let (width, height) = (u64::from(size.0), u64::from(size.1));
        let horizontal_max = self
            .sampling
            .iter()
            .map(|one| one.0)
            .max()
            .unwrap_or(1)
            .max(1);
        let vertical_max = self
            .sampling
            .iter()
            .map(|one| one.1)
            .max()
            .unwrap_or(1)
            .max(1);
        let units = if self.progressive {
            width.div_ceil(8 * horizontal_max) * height.div_ceil(8 * vertical_max)
        } else {
            width.div_ceil(8) * height.div_ceil(8)
        };
        let blocks: u64 = self.sampling.iter().map(|one| one.0 * one.1).sum();
        units * blocks * 64 * size_of::<i16>() as u64
    }
}

/// The next marker at or after `at` that is neither stuffing nor a restart, and where its segment
/// begins.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)? + 1;
        match *bytes.get(at)? {
            0x00 | 0xd0..=0xd7 | 0xff => {}
            marker => return Some((marker, at + 1)),
        }
    }
}

/// The segment at `at`, including its two length bytes.
fn segment(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
    bytes.get(at..at + usize::from(length.max(2)))
}
