//! Removes everything but sound from a Matroska or `WebM` file: tags, attachments and indexes,
//! which would take thirty times their length in memory, and the description, which some recorders
//! omit. Format: RFC 9559, and RFC 8794 for its elements.

use std::ops::Range;

use crate::DecodeCause;

const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const CLUSTER: u32 = 0x1f43_b675;

/// Maximum length of the header of a file.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Maximum length of the descriptions of the tracks.
const TRACKS_BYTES_MAX: usize = 1 << 20;

/// The begin of a segment of unknown length, and its description: a tick is a millisecond.
const SEGMENT_BEGIN: &[u8] = b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\
    \x15\x49\xa9\x66\x8f\x2a\xd7\xb1\x83\x0f\x42\x40\x4d\x80\x81k\x57\x41\x81k";

/// Reduces the file to header, tracks and clusters.
pub(crate) fn rewritten(mut file: Vec<u8>) -> Result<Vec<u8>, DecodeCause> {
    let (header, clusters) = minimal_header(&file).ok_or("no tracks before the clusters")?;
    file.splice(..clusters, header);
    Ok(file)
}

/// Bytes that replace everything before the first cluster, and the offset of that cluster.
fn minimal_header(file: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (_, header) = element(file, 0)?;
    let header = header.end.filter(|&end| end <= HEADER_BYTES_MAX)?;
    // Everything before the first cluster is replaced by a minimal header, the tracks, and a
    // segment of unknown length; the clusters stay byte for byte.
    let (SEGMENT, segment) = element(file, header)? else {
        return None;
    };
    let mut at = segment.begin;
    let mut tracks: Option<Range<usize>> = None;
    loop {
        let (kind, body) = element(file, at)?;
        match kind {
            CLUSTER => break,
            TRACKS if tracks.is_none() => tracks = Some(at..body.end?),
            _ => {}
        }
        at = body.end?;
    }
    let tracks = tracks.filter(|tracks| tracks.len() <= TRACKS_BYTES_MAX)?;
    let header = [&file[..header], SEGMENT_BEGIN, file.get(tracks)?].concat();
    Some((header, at))
}

/// The body of an element.
struct ElementBody {
    begin: usize,
    /// `None` if the length is unknown.
    end: Option<usize>,
}

/// Kind and body of the element at `at`.
fn element(file: &[u8], at: usize) -> Option<(u32, ElementBody)> {
    let (kind, kind_bytes) = number(file, at)?;
    let kind = u32::try_from(kind).ok()?;
    let (size, size_bytes) = number(file, at + kind_bytes)?;
    let begin = at + kind_bytes + size_bytes;
    // Strip the marker bit, which encodes the number of bytes.
    let value_bits = 7 * size_bytes;
    let unknown = (1 << value_bits) - 1;
    let size = size & unknown;
    let end = usize::try_from(size).ok()?.checked_add(begin);
    let end = end.filter(|_| size != unknown);
    Some((kind, ElementBody { begin, end }))
}

/// Reads a number of one to eight bytes, including its marker bit; returns it with its length in
/// bytes.
fn number(file: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *file.get(at)?;
    // The number of leading zero bits of the first byte is the number of bytes that follow it
    // (RFC 8794, 4.1).
    let bytes = first.leading_zeros() as usize + 1;
    let digits = file.get(at..at.checked_add(bytes)?)?;
    let value = digits
        .iter()
        .fold(0, |all, &byte| all << 8 | u64::from(byte));
    (bytes <= 8).then_some((value, bytes))
}
