//! Removes what the maker of a film says about it in words: ComfyUI writes its whole graph there, prompts and names of
//! models included, and whoever gets a link to a video would read them. Nothing moves: the boxes become free space.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::MediaError;
use crate::movie::{TopBox, read_header};

/// Blanks the `meta` and `udta` boxes of a film, of its index and of its tracks (ISO/IEC 14496-12, 8.10.1 and 8.11.1).
pub(super) fn blank(file: &mut File, boxes: &[TopBox]) -> Result<(), MediaError> {
    let mut open = Vec::new();
    for one in boxes {
        // Tracks are in the index, whose length is bounded.
        if &one.kind != b"trak" {
            look_at(file, one, &mut open)?;
        }
    }
    while let Some(parent) = open.pop() {
        let mut start = parent.start;
        // QuickTime ends some lists with four zero bytes.
        while parent.end - start >= 8 {
            let (kind, body) = read_header(file, start, parent.end)?;
            let one = TopBox { kind, start, body };
            start = one.body.end;
            look_at(file, &one, &mut open)?;
        }
    }
    Ok(())
}

/// Blanks a box of words, and opens one that may have some in it.
fn look_at(file: &mut File, one: &TopBox, open: &mut Vec<Range<u64>>) -> Result<(), MediaError> {
    match &one.kind {
        b"moov" | b"trak" => open.push(one.body.clone()),
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
