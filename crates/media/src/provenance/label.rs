//! Labels a film made elsewhere: appends our packet as its last box, and turns its maker's packet
//! and text metadata into free space. Nothing moves. A film signed by its maker is not changed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use super::{Provenance, in_jpeg, in_webp, uuid_box};
use crate::movie::{TOP_LEVEL_BOXES_MAX, TopBox, read_header, top_level};
use crate::provenance::XMP_UUID;
use crate::{MediaError, Recording};

/// Identifies the `uuid` box of a C2PA manifest (C2PA specification 2.1, A.5.1).
const C2PA_UUID: [u8; 16] = [
    0xd8, 0xfe, 0xc3, 0xd6, 0x1b, 0x0e, 0x48, 0x3c, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7e, 0xc4, 0x81,
];

/// Labels the examined film at `path`, and its stills, with `provenance`. Pictures, sound and index
/// keep their bytes and places; what the maker wrote about the film in words becomes free space.
/// Returns whether the film was labelled: a film with a C2PA manifest is not, since the signature
/// covers every byte, nor is one without room for another box; their stills are labelled anyway.
///
/// # Errors
/// [`MediaError::Malformed`] for a file that is not an MP4, and errors of reading and writing.
pub fn label(
    path: &Path,
    recording: &mut Recording,
    provenance: &Provenance,
) -> Result<bool, MediaError> {
    let packet = provenance.packet();
    recording.poster_webp = in_webp(&recording.poster_webp, &packet)?;
    recording.spritesheet_jpeg = in_jpeg(&recording.spritesheet_jpeg, &packet)?;
    let frames = [
        &mut recording.first_frame_jpeg,
        &mut recording.last_frame_jpeg,
    ];
    for jpeg in frames.into_iter().flatten() {
        *jpeg = in_jpeg(jpeg, &packet)?;
    }
    let mut file = File::options().read(true).write(true).open(path)?;
    let boxes = top_level(&mut file)?;
    let mut earlier = Vec::new();
    for one in boxes.iter().filter(|one| &one.kind == b"uuid") {
        match uuid(&mut file, one)? {
            Some(C2PA_UUID) => return Ok(false),
            Some(XMP_UUID) => earlier.push(one.start),
            _ => {}
        }
    }
    // After the search for a C2PA manifest, because this changes bytes that its signature
    // covers.
    blank_tags(&mut file, &boxes)?;
    let is_full = boxes.len() == TOP_LEVEL_BOXES_MAX;
    let Some(last) = boxes.last().filter(|_| !is_full) else {
        return Ok(false);
    };
    if !close(&mut file, last)? {
        return Ok(false);
    }
    for start in earlier {
        // Renaming a box to `free` disables it and moves nothing, so no offset in the index
        // changes.
        file.seek(SeekFrom::Start(start + 4))?;
        file.write_all(b"free")?;
    }
    let added = uuid_box(&packet)?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(&added)?;
    recording.info.file_bytes += added.len() as u64;
    Ok(true)
}

/// The identifier of a `uuid` box; `None` if it is too short for one.
fn uuid(file: &mut File, one: &TopBox) -> Result<Option<[u8; 16]>, MediaError> {
    if one.body.end - one.body.start < 16 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(one.body.start))?;
    let mut uuid = [0; 16];
    file.read_exact(&mut uuid)?;
    Ok(Some(uuid))
}

/// Sets the size of the last box if it extends to the end of the file. False if the size does not
/// fit.
fn close(file: &mut File, last: &TopBox) -> Result<bool, MediaError> {
    let mut size = [0; 4];
    file.seek(SeekFrom::Start(last.start))?;
    file.read_exact(&mut size)?;
    // Size 0 means "to the end of the file": the last box would swallow the one appended after
    // it.
    if size != [0; 4] {
        return Ok(true);
    }
    let Ok(size) = u32::try_from(last.body.end - last.start) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(last.start))?;
    file.write_all(&size.to_be_bytes())?;
    Ok(true)
}

/// Blanks the `meta` and `udta` boxes of a film, of its index and of its tracks (ISO/IEC 14496-12, 8.10.1 and 8.11.1).
fn blank_tags(file: &mut File, boxes: &[TopBox]) -> Result<(), MediaError> {
    // A work list instead of recursion: a hostile file may nest boxes deeply.
    let mut open = Vec::new();
    for one in boxes {
        // Tracks are in the index, whose length is bounded.
        if &one.kind != b"trak" {
            blank_or_open(file, one, &mut open)?;
        }
    }
    while let Some(parent) = open.pop() {
        let mut start = parent.start;
        // QuickTime ends some lists with four zero bytes.
        while parent.end - start >= 8 {
            let (kind, body) = read_header(file, start, parent.end)?;
            let one = TopBox { kind, start, body };
            start = one.body.end;
            blank_or_open(file, &one, &mut open)?;
        }
    }
    Ok(())
}

/// Blanks a box of text metadata, or queues a box that may contain some.
fn blank_or_open(
    file: &mut File,
    one: &TopBox,
    open: &mut Vec<Range<u64>>,
) -> Result<(), MediaError> {
    match &one.kind {
        b"moov" | b"trak" => open.push(one.body.clone()),
        // ComfyUI, for example, writes its whole graph here, with prompts and model names, which
        // a client with a link could read. The content is overwritten, not only hidden.
        b"meta" | b"udta" => {
            file.seek(SeekFrom::Start(one.start + 4))?;
            file.write_all(b"free")?;
            file.seek(SeekFrom::Start(one.body.start))?;
            let bytes = one.body.end - one.body.start;
            io::copy(&mut io::repeat(0).take(bytes), file)?;
        }
        _ => {}
    }
    Ok(())
}
