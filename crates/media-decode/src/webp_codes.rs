//! Measures the memory needed by the prefix codes of a lossless WebP. A few megabytes can declare
//! 65,536 groups of five codes, over a gigabyte of tables, before the first pixel, so this counts
//! them before decoding. It skips pixels without storing them. Format: RFC 9649, sections 3.4 to
//! 3.7.

use crate::DecodeCause;

/// Alphabet sizes of green, red, blue, alpha and distance in every group.
const ALPHABETS: [usize; 5] = [280, 256, 256, 256, 40];
/// The order in which the lengths of the code-length code are stored.
const LENGTH_ORDER: [usize; 19] = [
    17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
];
const LENGTH_BITS_MAX: usize = 15;
/// Codes up to this length cost the decoder a table entry of 4 bytes; longer ones cost tree nodes.
const TABLE_BITS_MAX: usize = 10;
const NODE_BYTES: u64 = 32;
/// The cost of a code itself, or of a whole code with a single symbol.
const CODE_BYTES: u64 = 96;

/// Maximum bytes of tables that decoding the lossless streams of `file` needs at a time.
pub(crate) fn table_bytes(file: &[u8], canvas: (u32, u32)) -> Result<u64, DecodeCause> {
    let mut most = 0;
    for (kind, body) in chunks(file.get(12..).unwrap_or(&[])) {
        let bytes = match kind {
            b"ANMF" => {
                let (frame, inner) = body.split_at_checked(16).ok_or("a frame without header")?;
                let mut bytes = 0;
                for (kind, body) in chunks(inner) {
                    bytes = bytes.max(chunk_table_bytes(
                        kind,
                        body,
                        (frame_side(frame, 6), frame_side(frame, 9)),
                    )?);
                }
                // Only the first frame is decoded.
                return Ok(bytes.max(most));
            }
            _ => chunk_table_bytes(kind, body, canvas)?,
        };
        most = most.max(bytes);
    }
    Ok(most)
}

/// A side in the header of `ANMF`: 24 bits, minus one.
fn frame_side(frame: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], 0]) + 1
}

/// The chunks in `bytes`, with their kinds; the last may be truncated.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let kind = bytes.get(..4)?;
        let size = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
        let body = &bytes[8..bytes.len().min(size.saturating_add(8))];
        let next = size.saturating_add(8).saturating_add(size % 2);
        bytes = bytes.get(next..).unwrap_or(&[]);
        Some((kind, body))
    })
}

fn chunk_table_bytes(kind: &[u8], body: &[u8], frame: (u32, u32)) -> Result<u64, DecodeCause> {
    match kind {
        b"VP8L" => {
            let mut bits = BitReader::new(body);
            bits.read(8)?;
            let size = (bits.read(14)? + 1, bits.read(14)? + 1);
            bits.read(4)?;
            stream_table_bytes(&mut bits, size)
        }
        // Compressed alpha is a lossless stream without a header.
        b"ALPH" if body.first().is_some_and(|flags| flags & 3 == 1) => {
            stream_table_bytes(&mut BitReader::new(&body[1..]), frame)
        }
        _ => Ok(0),
    }
}

fn stream_table_bytes(bits: &mut BitReader<'_>, size: (u32, u32)) -> Result<u64, DecodeCause> {
    let (mut width, height) = size;
    while bits.read(1)? == 1 {
        match bits.read(2)? {
            0 | 1 => {
                let shift = bits.read(3)? + 2;
                largest_code(
                    bits,
                    reduced_side(width, shift),
                    reduced_side(height, shift),
                )?;
            }
            2 => {}
            _ => {
                let colors = bits.read(8)? + 1;
                largest_code(bits, colors, 1)?;
                width = match colors {
                    0..=2 => reduced_side(width, 3),
                    3..=4 => reduced_side(width, 2),
                    5..=16 => reduced_side(width, 1),
                    _ => width,
                };
            }
        }
    }
    let cache = color_cache(bits)?;
    let mut groups = 1;
    if bits.read(1)? == 1 {
        let shift = bits.read(3)? + 2;
        groups += largest_code(
            bits,
            reduced_side(width, shift),
            reduced_side(height, shift),
        )?;
    }
    let mut bytes = 0;
    for _ in 0..groups {
        bytes += group(bits, cache)?
            .iter()
            .map(PrefixCode::table_bytes_of_code)
            .sum::<u64>();
    }
    Ok(bytes)
}

fn reduced_side(side: u32, shift: u32) -> u32 {
    side.div_ceil(1 << shift)
}

fn color_cache(bits: &mut BitReader<'_>) -> Result<usize, DecodeCause> {
    if bits.read(1)? == 0 {
        return Ok(0);
    }
    let size_bits = bits.read(4)?;
    if !(1..=11).contains(&size_bits) {
        return Err("a colour cache of no size".into());
    }
    Ok(1 << size_bits)
}

/// Skips an image within the stream and returns its largest group number, `red << 8 | green`.
/// Copies and cached colours repeat earlier pixels, so only literals count.
fn largest_code(bits: &mut BitReader<'_>, width: u32, height: u32) -> Result<u32, DecodeCause> {
    let cache = color_cache(bits)?;
    let [green, red, blue, alpha, distance] = group(bits, cache)?;
    let pixels = u64::from(width) * u64::from(height);
    let mut at = 0;
    let mut largest = 0;
    while at < pixels {
        // The green alphabet has three parts (RFC 9649): literals, lengths of copies, and
        // indices of the colour cache. Only literals carry a group number.
        let symbol = green.read_symbol(bits)?;
        if symbol < 256 {
            largest = largest.max((red.read_symbol(bits)? << 8) | symbol);
            blue.read_symbol(bits)?;
            alpha.read_symbol(bits)?;
            at += 1;
        } else if symbol < 280 {
            at += u64::from(prefixed(bits, symbol - 256)?);
            let prefix = distance.read_symbol(bits)?;
            prefixed(bits, prefix)?;
        } else {
            at += 1;
        }
    }
    Ok(largest)
}

/// Reads a length or distance with this prefix.
fn prefixed(bits: &mut BitReader<'_>, prefix: u32) -> Result<u32, DecodeCause> {
    if prefix < 4 {
        return Ok(prefix + 1);
    }
    let extra = (prefix - 2) >> 1;
    Ok(((2 + (prefix & 1)) << extra) + bits.read(extra)? + 1)
}

fn group(bits: &mut BitReader<'_>, cache: usize) -> Result<[PrefixCode; 5], DecodeCause> {
    let mut codes: [PrefixCode; 5] = Default::default();
    for (index, code) in codes.iter_mut().enumerate() {
        let symbols = ALPHABETS[index] + if index == 0 { cache } else { 0 };
        *code = PrefixCode::read(bits, symbols)?;
    }
    Ok(codes)
}

/// A canonical prefix code.
#[derive(Default)]
struct PrefixCode {
    /// How many symbols have a code of each length.
    counts: [u32; LENGTH_BITS_MAX + 1],
    /// The symbols, by length and then by value.
    symbols: Vec<u16>,
}

impl PrefixCode {
    fn read(bits: &mut BitReader<'_>, alphabet: usize) -> Result<Self, DecodeCause> {
        if bits.read(1)? == 1 {
            let two = bits.read(1)? == 1;
            let width = if bits.read(1)? == 1 { 8 } else { 1 };
            let mut lengths = vec![0; alphabet.max(256)];
            let first = bits.read(width)? as usize;
            lengths[first] = 1;
            if two {
                lengths[bits.read(8)? as usize] = 1;
            }
            return Ok(Self::from_lengths(&lengths));
        }
        let mut lengths = [0; 19];
        let stored = bits.read(4)? as usize + 4;
        for &index in &LENGTH_ORDER[..stored] {
            lengths[index] = bits.read(3)? as usize;
        }
        Self::read_lengths(bits, &Self::from_lengths(&lengths), alphabet)
    }

    fn read_lengths(
        bits: &mut BitReader<'_>,
        code: &Self,
        alphabet: usize,
    ) -> Result<Self, DecodeCause> {
        let mut left = alphabet;
        if bits.read(1)? == 1 {
            let width = 2 + 2 * bits.read(3)?;
            left = bits.read(width)? as usize + 2;
        }
        let mut lengths = Vec::with_capacity(alphabet);
        let mut previous = 8;
        while lengths.len() < alphabet && left > 0 {
            left -= 1;
            let (length, repeat) = match code.read_symbol(bits)? {
                16 => (previous, bits.read(2)? + 3),
                17 => (0, bits.read(3)? + 3),
                18 => (0, bits.read(7)? + 11),
                length => (length as usize, 1),
            };
            if length > 0 {
                previous = length;
            }
            lengths.extend(std::iter::repeat_n(length, repeat as usize));
        }
        if lengths.len() > alphabet {
            return Err("more lengths than symbols".into());
        }
        Ok(Self::from_lengths(&lengths))
    }

    fn from_lengths(lengths: &[usize]) -> Self {
        let mut code = Self::default();
        for length in 1..=LENGTH_BITS_MAX {
            let of_length = lengths.iter().enumerate().filter(|one| *one.1 == length);
            let before = code.symbols.len();
            code.symbols.extend(of_length.map(|one| one.0 as u16));
            code.counts[length] = (code.symbols.len() - before) as u32;
        }
        code
    }

    /// The next symbol; a code with a single symbol takes no bits.
    fn read_symbol(&self, bits: &mut BitReader<'_>) -> Result<u32, DecodeCause> {
        if let [only] = self.symbols[..] {
            return Ok(only.into());
        }
        // Canonical decoding, one bit at a time: codes of one length are consecutive numbers, so
        // `first` is the smallest of this length and `index` its symbol.
        let (mut code, mut first, mut index) = (0, 0, 0);
        for &count in &self.counts[1..] {
            code |= bits.read(1)?;
            if code < first + count {
                let symbol = self.symbols.get((index + code - first) as usize);
                return Ok(u32::from(*symbol.ok_or("a broken code")?));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err("a broken code".into())
    }

    /// The memory that the decoder uses for this code.
    fn table_bytes_of_code(&self) -> u64 {
        if self.symbols.len() < 2 {
            return CODE_BYTES;
        }
        let longest = self
            .counts
            .iter()
            .rposition(|&count| count > 0)
            .unwrap_or(0);
        let long: u32 = self.counts[TABLE_BITS_MAX + 1..].iter().sum();
        CODE_BYTES + (4 << longest.min(TABLE_BITS_MAX)) + u64::from(long) * NODE_BYTES
    }
}

/// A bit reader, lowest bit of each byte first.
struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the next `count` bits, at most 24.
    fn read(&mut self, count: u32) -> Result<u32, DecodeCause> {
        let mut value = 0;
        for index in 0..count {
            let byte = self.bytes.get(self.at / 8).ok_or("the stream ends early")?;
            value |= u32::from(byte >> (self.at % 8) & 1) << index;
            self.at += 1;
        }
        Ok(value)
    }
}
