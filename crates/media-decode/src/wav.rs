//! Repairs WAV files with wrong sizes: finds format and samples, and rewrites the sizes. Programs
//! that stream or crash leave 0, the maximum or a guess there. Samples are counted anyway, so an
//! impossible size means the rest of the file. Formats: Microsoft,
//! "Multimedia Programming Interface and Data Specifications 1.0" (1991), and EBU Tech 3306 (RF64).

use crate::DecodeCause;

/// Format tag of MPEG layer III (RFC 2361).
const FORMAT_MP3: u16 = 0x55;
/// An unknown size, or one that RF64 states elsewhere.
const UNKNOWN: u32 = u32::MAX;
/// Maximum number of chunks behind samples without a usable size.
const TRAILING_CHUNKS_MAX: usize = 16;
/// Chunks that real files have, but for `data`.
const USUAL: [&[u8; 4]; 26] = [
    b"fmt ", b"fact", b"LIST", b"JUNK", b"junk", b"PAD ", b"FLLR", b"ds64", b"bext", b"iXML",
    b"axml", b"chna", b"cart", b"id3 ", b"ID3 ", b"cue ", b"smpl", b"inst", b"plst", b"PEAK",
    b"_PMX", b"acid", b"strc", b"aXML", b"minf", b"elm1",
];

/// Format and samples of one file.
pub(crate) struct WavFile {
    /// The body of the `fmt ` chunk.
    format: Vec<u8>,
    samples: Vec<u8>,
}

impl WavFile {
    /// Reads the chunks of `file`.
    pub(crate) fn parse(mut file: Vec<u8>) -> Result<Self, DecodeCause> {
        let mut at = 12;
        let mut format = None;
        let mut long_size = None;
        loop {
            let (kind, size) = chunk(&file, at).ok_or("no samples")?;
            let body = at + 8;
            match kind {
                b"data" => break,
                b"fmt " if format.is_none() => {
                    format = file.get(body..body.saturating_add(size as usize));
                }
                b"ds64" => long_size = file.get(body + 8..body + 16),
                _ => {}
            }
            at = next_chunk(&file, body, size).ok_or("no samples")?;
        }
        let format = format.ok_or("no format")?.to_vec();
        let long_size = long_size.and_then(|eight| eight.try_into().ok());
        let long_size = long_size.map(u64::from_le_bytes);
        let start = at + 8;
        let rest = &file[start..];
        let stated = chunk(&file, at).map_or(UNKNOWN, |(_, size)| size);
        // RF64 puts the real size into `ds64`, because the usual field has 32 bits.
        let stated = match (stated, long_size) {
            (UNKNOWN, Some(size)) => size,
            (size, _) => size.into(),
        };
        let there = rest.len() as u64;
        let length = match usize::try_from(stated) {
            Ok(stated) if (1..=there).contains(&(stated as u64)) => stated,
            // Impossible or unknown: a writer that died or streamed. All of the rest is sound,
            // except chunks at its end.
            _ => trailer(rest),
        };
        file.truncate(start + length);
        file.drain(..start);
        let samples = file;
        Ok(Self { format, samples })
    }

    /// The MP3 stream that some programs put into a WAV.
    pub(crate) fn into_mp3(self) -> Result<Vec<u8>, Self> {
        let tag = self.format.first_chunk().copied().map(u16::from_le_bytes);
        match tag {
            Some(FORMAT_MP3) => Ok(self.samples),
            _ => Err(self),
        }
    }

    /// Writes a WAV with these samples only, and with correct sizes.
    pub(crate) fn rewritten(self) -> Result<Vec<u8>, DecodeCause> {
        let Self { format, samples } = self;
        let padded = format.len() + format.len() % 2;
        let mut file = Vec::with_capacity(28 + padded + samples.len());
        file.extend(b"RIFF");
        file.extend(u32::try_from(20 + padded + samples.len())?.to_le_bytes());
        file.extend(b"WAVEfmt ");
        file.extend(u32::try_from(format.len())?.to_le_bytes());
        file.extend(&format);
        file.resize(20 + padded, 0);
        file.extend(b"data");
        file.extend(u32::try_from(samples.len())?.to_le_bytes());
        file.extend(samples);
        Ok(file)
    }
}

/// Kind and size of the chunk at `at`.
fn chunk(file: &[u8], at: usize) -> Option<(&[u8; 4], u32)> {
    let kind = file.get(at..)?.first_chunk()?;
    let size = file.get(at + 4..)?.first_chunk()?;
    Some((kind, u32::from_le_bytes(*size)))
}

fn is_usual(file: &[u8], at: usize) -> bool {
    chunk(file, at).is_some_and(|(kind, _)| kind == b"data" || USUAL.contains(&kind))
}

/// Where the chunk behind the one with this `body` begins. If its size leads nowhere, the samples
/// are searched for.
fn next_chunk(file: &[u8], body: usize, size: u32) -> Option<usize> {
    let end = body.saturating_add(size as usize);
    let padded = end.saturating_add(size as usize % 2);
    // Some programs leave out the pad byte of an odd chunk.
    if is_usual(file, end) {
        return Some(end);
    }
    let is_chunk = chunk(file, padded).is_some_and(|(kind, size)| {
        let printable = kind.iter().all(|&one| matches!(one, b' '..=b'~'));
        printable && (size as usize) < file.len() - padded
    });
    if is_usual(file, padded) || is_chunk {
        return Some(padded);
    }
    // The chunk itself may be none.
    let from = body - 7;
    let found = file[from..].windows(4).position(|four| four == b"data")?;
    Some(from + found)
}

/// The length of samples without a usable size: all of `rest` but the usual chunks that end it.
fn trailer(rest: &[u8]) -> usize {
    let starts = (0..rest.len()).step_by(2);
    let mut starts = starts.filter(|&at| rest[at].is_ascii_alphabetic() || rest[at] == b'_');
    starts
        .find(|&at| ends_with_chunks(rest, at))
        .unwrap_or(rest.len())
}

/// Whether `rest` from `at` on is a row of usual chunks, such as `LIST` and `id3 `, up to the end of the file.
fn ends_with_chunks(rest: &[u8], mut at: usize) -> bool {
    for _ in 0..TRAILING_CHUNKS_MAX {
        let Some((_, size)) = chunk(rest, at).filter(|_| is_usual(rest, at)) else {
            break;
        };
        at = (at + 8).saturating_add(size as usize);
        at = at.saturating_add(at % 2);
        if at == rest.len() || at == rest.len() + 1 {
            return true;
        }
    }
    false
}
