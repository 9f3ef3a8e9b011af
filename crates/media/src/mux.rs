//! Writes encoded tracks to an MP4 with its index first (fast start), samples interleaved every
//! half second, and a packet of metadata last, so that the bytes before it do not depend on it.
//! Format: ISO/IEC 14496-12. Copies from the spools; never holds the clip in memory.

mod chunks;
mod entries;
mod index;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use mp4_atom::{Encode, FourCC, Ftyp, Header};

use crate::audio::AudioTrack;
use crate::provenance::uuid_box;
use crate::video::VideoTrack;
use crate::written::{HashingWriter, Written};
use crate::{ClipFormat, MediaError};
use chunks::{ChunkTrack, Interleaving};
use index::Index;

/// Writes the whole file to `path`, from first byte to last, replacing an existing one.
pub(crate) fn write(
    path: &Path,
    format: &ClipFormat,
    mut video: VideoTrack,
    mut audio: Option<AudioTrack>,
    packet: Option<&str>,
) -> Result<Written, MediaError> {
    let interleaving = Interleaving::plan(format, &video.spooled.sizes, audio.as_ref());
    let mdat_bytes = usize::try_from(interleaving.bytes).map_err(|_| too_large())?;
    let mut head = Vec::new();
    encode(&file_type(), &mut head)?;
    let media_header = {
        let mut header = Vec::new();
        encode(
            &Header {
                kind: FourCC::new(b"mdat"),
                size: Some(mdat_bytes),
            },
            &mut header,
        )?;
        header
    };
    let index = Index {
        format,
        video: &video,
        audio: audio.as_ref(),
        interleaving: &interleaving,
    };
    // Offsets count from the start of the file, past the index that contains them. The size of the
    // index does not depend on their values, so it is built twice.
    let mut moov = Vec::new();
    encode(&index.moov(0)?, &mut moov)?;
    let media_start = (head.len() + moov.len() + media_header.len()) as u64;
    let moov_bytes = moov.len();
    moov.clear();
    encode(&index.moov(media_start)?, &mut moov)?;
    if moov.len() != moov_bytes {
        return Err(MediaError::Mux("the index changed its size".into()));
    }
    let file = HashingWriter::new(File::create(path)?);
    let mut file = BufWriter::with_capacity(256 << 10, file);
    file.write_all(&head)?;
    file.write_all(&moov)?;
    file.write_all(&media_header)?;
    for chunk in &interleaving.chunks {
        let source = match (chunk.track, &mut audio) {
            (ChunkTrack::Video, _) => &mut video.spooled.samples,
            (ChunkTrack::Audio, Some(audio)) => &mut audio.spooled.samples,
            (ChunkTrack::Audio, None) => return Err(MediaError::Mux("no sound track".into())),
        };
        let copied = io::copy(&mut source.take(chunk.bytes), &mut file)?;
        if copied != chunk.bytes {
            return Err(MediaError::Mux("a spool is shorter than its sizes".into()));
        }
    }
    if let Some(packet) = packet {
        file.write_all(&uuid_box(packet)?)?;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.finish())
}

fn file_type() -> Ftyp {
    Ftyp {
        major_brand: b"isom".into(),
        minor_version: 512,
        compatible_brands: vec![
            b"isom".into(),
            b"iso2".into(),
            b"avc1".into(),
            b"mp41".into(),
        ],
    }
}

fn encode(atom: &impl Encode, bytes: &mut Vec<u8>) -> Result<(), MediaError> {
    atom.encode(bytes)
        .map_err(|cause| MediaError::Mux(cause.to_string()))
}

fn too_large() -> MediaError {
    MediaError::Mux("the clip is too large for this machine".into())
}
