//! Reads a file's own boxes back: what is really in it, not what it was to be.
//! Trusts no size: every box must fit in its parent, every sample in the media data, and memory
//! is bounded by [`MOOV_BYTES_MAX`]. There is no recursion, so depth cannot be abused either.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::MediaError;
use crate::boxes::{Fields, child, children};
use crate::sample_table::SampleTable;

/// More than an hour's index needs.
const MOOV_BYTES_MAX: u64 = 16 << 20;
/// Ours have 3; fragmented files have many, and are not accepted anyway.
const TOP_LEVEL_BOXES_MAX: usize = 64;

/// What a file holds, measured on the file itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeInfo {
    /// Length of the picture track in seconds.
    pub duration_seconds: f64,
    /// Mean frames per second.
    pub fps: f64,
    /// Coded frames.
    pub frames: u32,
    /// Picture width in pixels.
    pub width: u32,
    /// Picture height in pixels.
    pub height: u32,
    /// Whether there is a sound track with samples.
    pub has_audio: bool,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// Reads back an MP4 with one H.264 track and possibly sound (ISO/IEC 14496-12 and -15).
/// Any other or malformed file is an error.
pub fn probe(path: &Path) -> Result<ProbeInfo, MediaError> {
    let mut file = File::open(path)?;
    let file_bytes = file.seek(SeekFrom::End(0))?;
    let layout = Layout::read(&mut file, file_bytes)?;
    let mut video = None;
    let mut has_audio = false;
    for trak in children(&layout.moov) {
        let (kind, trak) = trak?;
        if &kind != b"trak" {
            continue;
        }
        let track = Track::read(trak)?;
        match &track.handler {
            b"vide" if video.is_none() => video = Some(track.video(&layout.media)?),
            b"soun" => has_audio |= track.table(&layout.media)?.samples > 0,
            _ => {}
        }
    }
    let video = video.ok_or(MediaError::Malformed("it has no picture track"))?;
    let duration_seconds = video.ticks as f64 / f64::from(video.timescale);
    Ok(ProbeInfo {
        duration_seconds,
        fps: f64::from(video.frames) / duration_seconds,
        frames: video.frames,
        width: video.width,
        height: video.height,
        has_audio,
        file_bytes,
    })
}

/// The top level of a file: its index and where its media data lie.
struct Layout {
    moov: Vec<u8>,
    media: Vec<Range<u64>>,
}

impl Layout {
    fn read(file: &mut File, file_bytes: u64) -> Result<Self, MediaError> {
        let mut moov = None;
        let mut media = Vec::new();
        let mut position = 0;
        for index in 0.. {
            if position == file_bytes {
                break;
            }
            if index == TOP_LEVEL_BOXES_MAX {
                return Err(MediaError::Malformed("too many top-level boxes"));
            }
            let (kind, body) = read_header(file, position, file_bytes)?;
            match &kind {
                b"ftyp" => {}
                _ if index == 0 => return Err(MediaError::Malformed("it does not start as MP4")),
                b"moov" if moov.is_some() => return Err(MediaError::Malformed("two indexes")),
                b"moov" => moov = Some(read_body(file, &body)?),
                b"mdat" => media.push(body.clone()),
                _ => {}
            }
            position = body.end;
        }
        let moov = moov.ok_or(MediaError::Malformed("it has no index"))?;
        Ok(Self { moov, media })
    }
}

/// A top-level box's kind and where its body lies (ISO/IEC 14496-12, 4.2).
fn read_header(
    file: &mut File,
    position: u64,
    file_bytes: u64,
) -> Result<([u8; 4], Range<u64>), MediaError> {
    const CUT_OFF: MediaError = MediaError::Malformed("a top-level box is cut off");
    let left = file_bytes - position;
    let mut header = [0; 16];
    let header_bytes = if left < 16 { 8 } else { 16 };
    if left < header_bytes {
        return Err(CUT_OFF);
    }
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(&mut header[..header_bytes as usize])?;
    let mut fields = Fields::new(&header);
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

fn read_body(file: &mut File, body: &Range<u64>) -> Result<Vec<u8>, MediaError> {
    let bytes = body.end - body.start;
    if bytes > MOOV_BYTES_MAX {
        return Err(MediaError::Malformed("its index is too large"));
    }
    file.seek(SeekFrom::Start(body.start))?;
    let mut content = Vec::new();
    file.take(bytes).read_to_end(&mut content)?;
    if content.len() as u64 != bytes {
        return Err(MediaError::Malformed("its index is cut off"));
    }
    Ok(content)
}

/// The parts of a `trak` that matter here.
struct Track<'a> {
    handler: [u8; 4],
    timescale: u32,
    stbl: &'a [u8],
}

/// The picture track's figures.
struct Video {
    width: u32,
    height: u32,
    frames: u32,
    ticks: u64,
    timescale: u32,
}

impl<'a> Track<'a> {
    fn read(trak: &'a [u8]) -> Result<Self, MediaError> {
        let mdia = child(trak, b"mdia")?;
        let handler = Fields::new(child(mdia, b"hdlr")?).skip(8)?.array()?;
        let mut mdhd = Fields::new(child(mdia, b"mdhd")?);
        let version = mdhd.u32()? >> 24;
        let timescale = mdhd.skip(if version == 1 { 16 } else { 8 })?.u32()?;
        if timescale == 0 {
            return Err(MediaError::Malformed("a track has no time scale"));
        }
        let stbl = child(child(mdia, b"minf")?, b"stbl")?;
        Ok(Self {
            handler,
            timescale,
            stbl,
        })
    }

    fn table(&self, media: &[Range<u64>]) -> Result<SampleTable, MediaError> {
        SampleTable::read(self.stbl, media)
    }

    /// Size and length of an `avc1` or `avc3` track (ISO/IEC 14496-15, 5.4.2).
    fn video(&self, media: &[Range<u64>]) -> Result<Video, MediaError> {
        let entries = child(self.stbl, b"stsd")?;
        let entries = entries
            .get(8..)
            .ok_or(MediaError::Malformed("a box is too short"))?;
        let (kind, entry) = children(entries)
            .next()
            .ok_or(MediaError::Malformed("the picture track is not described"))??;
        if !matches!(&kind, b"avc1" | b"avc3") {
            return Err(MediaError::Malformed("the picture track is not H.264"));
        }
        let mut fields = Fields::new(entry);
        fields.skip(24)?;
        let (width, height) = (u32::from(fields.u16()?), u32::from(fields.u16()?));
        let extensions = fields.skip(50)?.rest();
        let parameter_sets = Fields::new(child(extensions, b"avcC")?).skip(5)?.u8()? & 0x1f;
        if parameter_sets == 0 || width == 0 || height == 0 {
            return Err(MediaError::Malformed("the picture track cannot be decoded"));
        }
        let table = self.table(media)?;
        if table.samples == 0 || table.ticks == 0 {
            return Err(MediaError::Malformed("the picture track is empty"));
        }
        Ok(Video {
            width,
            height,
            frames: table.samples,
            ticks: table.ticks,
            timescale: self.timescale,
        })
    }
}
