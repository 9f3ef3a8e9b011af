//! The boxes of a whole file: its index, the ranges of its media data, and its tracks. No size is
//! trusted: every box must fit in its parent, every sample in the media data, and
//! [`MOOV_BYTES_MAX`] limits memory. There is no recursion, so nesting cannot be abused either.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::MediaError;
use crate::boxes::{BoxFields, child, children, optional_child};
use crate::sample_table::SampleTable;

/// More than the index of an hour needs.
pub(crate) const MOOV_BYTES_MAX: u64 = 16 << 20;
/// Our own files have 4. Fragmented files have many, and are rewritten before they are read; see `fragments.rs`.
pub(crate) const TOP_LEVEL_BOXES_MAX: usize = 64;

/// A box of a file's top level.
pub(crate) struct TopBox {
    pub kind: [u8; 4],
    /// File offset of its header.
    pub start: u64,
    pub body: Range<u64>,
}

/// The top level of a file: its index and the ranges of its media data.
pub(crate) struct MovieIndex {
    pub moov: Vec<u8>,
    media: Vec<Range<u64>>,
    pub file_bytes: u64,
}

impl MovieIndex {
    pub(crate) fn read(file: &mut File) -> Result<Self, MediaError> {
        let mut moov = None;
        let mut media = Vec::new();
        let mut file_bytes = 0;
        for TopBox { kind, body, .. } in top_level(file)? {
            file_bytes = body.end;
            match &kind {
                // Players disagree about which of two indexes counts, so a checked one might not
                // be the one shown.
                b"moov" if moov.is_some() => return Err(MediaError::Malformed("two indexes")),
                b"moov" => moov = Some(read_body(file, &body)?),
                b"mdat" => media.push(body),
                _ => {}
            }
        }
        let moov = moov.ok_or(MediaError::Malformed("it has no index"))?;
        Ok(Self {
            moov,
            media,
            file_bytes,
        })
    }

    /// The tracks in file order.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = Result<MovieTrack<'_>, MediaError>> {
        let entries = children(&self.moov)
            .filter(|entry| entry.as_ref().map_or(true, |(kind, _)| kind == b"trak"));
        entries.map(|entry| MovieTrack::read(entry?.1, &self.media))
    }

    /// The first picture track, the only one played.
    pub(crate) fn picture_track(&self) -> Result<MovieTrack<'_>, MediaError> {
        for track in self.tracks() {
            let track = track?;
            if &track.handler == b"vide" {
                return Ok(track);
            }
        }
        Err(MediaError::Malformed("it has no picture track"))
    }
}

/// The boxes of an MP4's top level, which fill the file.
pub(crate) fn top_level(file: &mut File) -> Result<Vec<TopBox>, MediaError> {
    top_level_up_to(file, TOP_LEVEL_BOXES_MAX)
}

/// Like `top_level`, with a limit on the number of boxes.
pub(crate) fn top_level_up_to(
    file: &mut File,
    boxes_max: usize,
) -> Result<Vec<TopBox>, MediaError> {
    let file_bytes = file.seek(SeekFrom::End(0))?;
    if file_bytes == 0 {
        return Err(MediaError::Malformed("the file is empty"));
    }
    if let Some(format) = other_format(file)? {
        return Err(MediaError::Malformed(format));
    }
    let mut boxes: Vec<TopBox> = Vec::new();
    let mut start = 0;
    while start < file_bytes {
        if boxes.len() == boxes_max {
            return Err(MediaError::Malformed("too many top-level boxes"));
        }
        let (kind, body) = read_header(file, start, file_bytes)?;
        if boxes.is_empty() && &kind != b"ftyp" {
            return Err(MediaError::Malformed("it does not start as MP4"));
        }
        let end = body.end;
        boxes.push(TopBox { kind, start, body });
        start = end;
    }
    Ok(boxes)
}

/// Names the format of a file that is not MP4, by its first bytes.
fn other_format(file: &mut File) -> Result<Option<&'static str>, MediaError> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(12).read_to_end(&mut head)?;
    Ok(match &head[..] {
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some("it is WebM or Matroska"),
        [b'G', b'I', b'F', b'8', ..] => Some("it is a GIF"),
        [b'R', b'I', b'F', b'F', ..] => Some("it is AVI or WebP"),
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => Some("it is a still picture"),
        [b'{' | b'[', ..] => Some("it is JSON"),
        [b'<', ..] => Some("it is HTML or XML"),
        [_, _, _, _, b's', b't', b'y', b'p', ..] | [_, _, _, _, b'm', b'o', b'o', b'f', ..] => {
            Some("it is a part of a fragmented film, without its beginning")
        }
        _ => None,
    })
}

/// The kind of the box at `position` and the range of its body (ISO/IEC 14496-12, 4.2). Its parent, or the file, ends at
/// `end`.
pub(crate) fn read_header(
    file: &mut File,
    position: u64,
    end: u64,
) -> Result<([u8; 4], Range<u64>), MediaError> {
    const CUT_OFF: MediaError = MediaError::Malformed("a box is cut off");
    let left = end - position;
    let mut header = [0; 16];
    // Read both possible header sizes at once; near the end of the parent there is room for the
    // short one only.
    let header_bytes = if left < 16 { 8 } else { 16 };
    if left < header_bytes {
        return Err(CUT_OFF);
    }
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(&mut header[..header_bytes as usize])?;
    let mut fields = BoxFields::new(&header);
    let (size, kind) = (fields.u32()?, fields.array::<4>()?);
    let (header_bytes, size) = match size {
        0 => (8, left),
        1 if left < 16 => return Err(CUT_OFF),
        1 => (16, fields.u64()?),
        size => (8, u64::from(size)),
    };
    if size < header_bytes || size > left {
        return Err(CUT_OFF);
    }
    Ok((kind, position + header_bytes..position + size))
}

pub(crate) fn read_body(file: &mut File, body: &Range<u64>) -> Result<Vec<u8>, MediaError> {
    let bytes = body.end - body.start;
    if bytes > MOOV_BYTES_MAX {
        return Err(MediaError::Malformed("its index is too large"));
    }
    file.seek(SeekFrom::Start(body.start))?;
    let mut content = Vec::new();
    // Grows with the bytes that arrive: a stated size alone allocates nothing.
    file.take(bytes).read_to_end(&mut content)?;
    if content.len() as u64 != bytes {
        return Err(MediaError::Malformed("its index is cut off"));
    }
    Ok(content)
}

/// The relevant parts of a `trak`.
pub(crate) struct MovieTrack<'a> {
    pub handler: [u8; 4],
    pub timescale: u32,
    /// The body of `trak`.
    pub trak: &'a [u8],
    stbl: &'a [u8],
    media: &'a [Range<u64>],
}

/// The stated coding of an H.264 track.
pub(crate) struct PictureEntry<'a> {
    pub width: u32,
    pub height: u32,
    /// The body of `avcC`.
    pub avcc: &'a [u8],
    /// The body of `colr`.
    pub colr: Option<&'a [u8]>,
    /// Total number of entries: samples may refer to any of them.
    pub entries: usize,
}

impl<'a> MovieTrack<'a> {
    pub(crate) fn read(trak: &'a [u8], media: &'a [Range<u64>]) -> Result<Self, MediaError> {
        let mdia = child(trak, b"mdia")?;
        let handler = BoxFields::new(child(mdia, b"hdlr")?).skip(8)?.array()?;
        let mut mdhd = BoxFields::new(child(mdia, b"mdhd")?);
        let version = mdhd.u32()? >> 24;
        let timescale = mdhd.skip(if version == 1 { 16 } else { 8 })?.u32()?;
        if timescale == 0 {
            return Err(MediaError::Malformed("a track has no time scale"));
        }
        let stbl = child(child(mdia, b"minf")?, b"stbl")?;
        Ok(Self {
            handler,
            timescale,
            trak,
            stbl,
            media,
        })
    }

    pub(crate) fn table(&self) -> Result<SampleTable<'a>, MediaError> {
        SampleTable::read(self.stbl, self.media)
    }

    /// The first sample entry, which must be `avc1` or `avc3` (ISO/IEC 14496-15, 5.4.2).
    pub(crate) fn picture_entry(&self) -> Result<PictureEntry<'a>, MediaError> {
        let entries = child(self.stbl, b"stsd")?;
        let entries = entries
            .get(8..)
            .ok_or(MediaError::Malformed("a box is too short"))?;
        let (kind, entry) = children(entries)
            .next()
            .ok_or(MediaError::Malformed("the picture track is not described"))??;
        let other_coding = match &kind {
            b"avc1" | b"avc3" => None,
            b"hvc1" | b"hev1" => Some("the picture track is H.265 (HEVC), and not H.264"),
            b"av01" => Some("the picture track is AV1, and not H.264"),
            b"vp08" | b"vp09" => Some("the picture track is VP8 or VP9, and not H.264"),
            b"mp4v" => Some("the picture track is MPEG-4 part 2, and not H.264"),
            b"encv" => Some("the picture track is encrypted"),
            _ => Some("the picture track is not H.264"),
        };
        if let Some(coding) = other_coding {
            return Err(MediaError::Malformed(coding));
        }
        let mut fields = BoxFields::new(entry);
        // `VisualSampleEntry` (ISO/IEC 14496-12, 12.1.3.2): 24 bytes before the size, 50 after
        // it.
        fields.skip(24)?;
        let (width, height) = (u32::from(fields.u16()?), u32::from(fields.u16()?));
        let extensions = fields.skip(50)?.rest();
        let avcc = child(extensions, b"avcC")?;
        let parameter_sets = BoxFields::new(avcc).skip(5)?.u8()? & 0x1f;
        if parameter_sets == 0 || width == 0 || height == 0 {
            return Err(MediaError::Malformed("the picture track cannot be decoded"));
        }
        Ok(PictureEntry {
            width,
            height,
            avcc,
            colr: optional_child(extensions, b"colr")?,
            entries: children(entries).count(),
        })
    }
}
