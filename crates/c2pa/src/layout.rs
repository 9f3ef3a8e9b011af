//! The place of a manifest in an MP4: a box behind the first one, before index and media data (C2PA specification, A.5).
//! Everything behind it moves, so the index gets other offsets; films whose offsets are elsewhere are left alone.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use kinora_media::MediaError;
use ring::digest::{Context, SHA256};

/// Marks the `uuid` box of a manifest.
pub(crate) const C2PA_UUID: [u8; 16] = [
    0xd8, 0xfe, 0xc3, 0xd6, 0x1b, 0x0e, 0x48, 0x3c, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7e, 0xc4, 0x81,
];
/// Where the identifier of a `uuid` box begins.
pub(crate) const UUID_AT: u64 = 8;

/// More than the index of an hour needs.
const MOOV_BYTES_MAX: u64 = 16 << 20;
const BOXES_MAX: usize = 64;
const COPY_BYTES: usize = 256 << 10;
/// Boxes that hold no offset into the file, but for the index.
const KNOWN: [&[u8; 4]; 7] = [
    b"moov", b"mdat", b"free", b"skip", b"wide", b"uuid", b"udta",
];
/// The way from the index to the tables of offsets.
const TO_TABLES: [&[u8; 4]; 4] = [b"trak", b"mdia", b"minf", b"stbl"];

/// Why a film has no manifest.
#[derive(Debug)]
pub(crate) enum Unsealed {
    /// Its form allows none; the reason.
    Left(&'static str),
    Failed(MediaError),
}

impl From<io::Error> for Unsealed {
    fn from(cause: io::Error) -> Self {
        Self::Failed(cause.into())
    }
}

const CUT_OFF: Unsealed = Unsealed::Left("a box is cut off");

/// A box of the top level.
struct TopBox {
    kind: [u8; 4],
    start: u64,
    bytes: u64,
}

/// The boxes of a film, and its index.
pub(crate) struct Layout {
    boxes: Vec<TopBox>,
    /// With its header.
    moov: Vec<u8>,
}

impl Layout {
    pub(crate) fn read(file: &mut File) -> Result<Self, Unsealed> {
        let boxes = top_level(file)?;
        let [first, rest @ ..] = &*boxes else {
            return Err(Unsealed::Left("it is empty"));
        };
        if &first.kind != b"ftyp" {
            return Err(Unsealed::Left("it does not start as MP4"));
        }
        let mut moov = Vec::new();
        for one in rest {
            if !KNOWN.contains(&&one.kind) {
                return Err(Unsealed::Left("it is fragmented, or of another form"));
            }
            if &one.kind == b"moov" {
                if !moov.is_empty() || one.bytes > MOOV_BYTES_MAX {
                    return Err(Unsealed::Left(
                        "it has two indexes, or one that is too large",
                    ));
                }
                moov = part(file, one.start, one.bytes)?;
            }
            if &one.kind == b"uuid" && is_manifest(file, one)? {
                return Err(Unsealed::Left("its maker has signed it"));
            }
        }
        Ok(Self { boxes, moov })
    }

    /// Makes the index that of a film with `room` more bytes behind its first box.
    pub(crate) fn shift(&mut self, room: u64) -> Result<(), Unsealed> {
        let mut tables = 0;
        each_child(&mut self.moov, &mut |kind, body| match kind {
            b"moov" => descend(body, &TO_TABLES, room, &mut tables),
            _ => Ok(()),
        })?;
        if tables == 0 {
            return Err(Unsealed::Left("its index has no table of offsets"));
        }
        Ok(())
    }

    /// Copies the film, with `room` empty bytes behind its first box. Returns where they begin, and the hash that a
    /// manifest there states: SHA-256 over each other box, after its place in eight bytes (18.6.2.1).
    pub(crate) fn copy(
        &self,
        from: &mut File,
        to: &mut File,
        room: u64,
    ) -> Result<(u64, Vec<u8>), Unsealed> {
        let mut hash = Context::new(&SHA256);
        let mut buffer = vec![0; COPY_BYTES];
        let mut gap = 0;
        for (index, one) in self.boxes.iter().enumerate() {
            let is_first = index == 0;
            if !is_first {
                hash.update(&(one.start + room).to_be_bytes());
            }
            if &one.kind == b"moov" {
                hash.update(&self.moov);
                to.write_all(&self.moov)?;
                continue;
            }
            from.seek(SeekFrom::Start(one.start))?;
            let mut left = one.bytes;
            while left > 0 {
                let part = buffer
                    .len()
                    .min(usize::try_from(left).unwrap_or(usize::MAX));
                let part = &mut buffer[..part];
                from.read_exact(part)?;
                to.write_all(part)?;
                if !is_first {
                    hash.update(part);
                }
                left -= part.len() as u64;
            }
            if is_first {
                gap = one.bytes;
                to.seek(SeekFrom::Start(gap + room))?;
            }
        }
        Ok((gap, hash.finish().as_ref().to_vec()))
    }
}

/// A `uuid` box with a manifest store (A.5.1).
pub(crate) fn manifest_box(store: &[u8]) -> Vec<u8> {
    // Version and flags; the purpose; no Merkle trees.
    let head = [&C2PA_UUID[..], &[0; 4], b"manifest\0", &[0; 8]].concat();
    // Manifests have a few thousand bytes.
    let size = u32::try_from(8 + head.len() + store.len()).unwrap_or(u32::MAX);
    [&size.to_be_bytes()[..], b"uuid", &head, store].concat()
}

fn top_level(file: &mut File) -> Result<Vec<TopBox>, Unsealed> {
    let file_bytes = file.seek(SeekFrom::End(0))?;
    let mut boxes: Vec<TopBox> = Vec::new();
    let mut start = 0;
    while start < file_bytes {
        if boxes.len() == BOXES_MAX {
            return Err(Unsealed::Left("it has too many boxes"));
        }
        let left = file_bytes - start;
        let header = part(file, start, 16)?;
        let (kind, head, bytes) = header_of(&header, left).ok_or(CUT_OFF)?;
        if bytes < head || bytes > left {
            return Err(CUT_OFF);
        }
        boxes.push(TopBox { kind, start, bytes });
        start += bytes;
    }
    Ok(boxes)
}

/// A box's kind, and the lengths of its header and the whole (ISO/IEC 14496-12, 4.2), of which `left` are there.
fn header_of(bytes: &[u8], left: u64) -> Option<([u8; 4], u64, u64)> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<4>()?;
    let (head, whole) = match u32::from_be_bytes(*size) {
        0 => (8, left),
        1 => (16, u64::from_be_bytes(*rest.first_chunk()?)),
        size => (8, u64::from(size)),
    };
    Some((*kind, head, whole))
}

fn is_manifest(file: &mut File, one: &TopBox) -> Result<bool, Unsealed> {
    let uuid = part(file, one.start + UUID_AT, 16)?;
    Ok(uuid == C2PA_UUID)
}

/// Up to so many bytes of a file.
fn part(file: &mut File, start: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(bytes).read_to_end(&mut part)?;
    Ok(part)
}

type Visit<'v> = dyn FnMut(&[u8; 4], &mut [u8]) -> Result<(), Unsealed> + 'v;

/// Calls `visit` with each box in `body`, its kind and its own body.
fn each_child(mut body: &mut [u8], visit: &mut Visit<'_>) -> Result<(), Unsealed> {
    // QuickTime ends some lists with four zero bytes.
    while body.len() >= 8 {
        let left = body.len() as u64;
        let (kind, head, whole) = header_of(body, left).ok_or(CUT_OFF)?;
        if whole < head || whole > left {
            return Err(CUT_OFF);
        }
        // Both are at most the length of a slice.
        let (one, rest) = body.split_at_mut(whole as usize);
        visit(&kind, &mut one[head as usize..])?;
        body = rest;
    }
    Ok(())
}

/// Goes down `path`, and adds `room` to each offset in the tables at its end.
fn descend(
    body: &mut [u8],
    path: &[&[u8; 4]],
    room: u64,
    tables: &mut usize,
) -> Result<(), Unsealed> {
    each_child(body, &mut |kind, inside| match (path, kind) {
        ([next, rest @ ..], kind) if kind == *next => descend(inside, rest, room, tables),
        (_, b"cmov" | b"mvex" | b"saio") => Err(Unsealed::Left(
            "its index is compressed, encrypted or in fragments",
        )),
        ([], b"stco") => {
            *tables += 1;
            add::<4>(inside, |offset| {
                let moved = u64::from(u32::from_be_bytes(offset)) + room;
                u32::try_from(moved).ok().map(u32::to_be_bytes)
            })
        }
        ([], b"co64") => {
            *tables += 1;
            add::<8>(inside, |offset| {
                let moved = u64::from_be_bytes(offset).checked_add(room);
                moved.map(u64::to_be_bytes)
            })
        }
        _ => Ok(()),
    })
}

/// Changes each entry of a table (ISO/IEC 14496-12, 8.7.5).
fn add<const N: usize>(
    table: &mut [u8],
    moved: impl Fn([u8; N]) -> Option<[u8; N]>,
) -> Result<(), Unsealed> {
    // Version and flags, then the count.
    let (head, entries) = table.split_at_mut_checked(8).ok_or(CUT_OFF)?;
    let count = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let (entries, rest) = entries.as_chunks_mut::<N>();
    if entries.len() != count || !rest.is_empty() {
        return Err(CUT_OFF);
    }
    for entry in entries {
        *entry = moved(*entry).ok_or(Unsealed::Left("it is too long"))?;
    }
    Ok(())
}
