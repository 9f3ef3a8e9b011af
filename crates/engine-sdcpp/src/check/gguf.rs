//! Parses the header of a GGUF file, versions 2 and 3
//! (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>). Skips all metadata except the
//! alignment and the shapes before flattening.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Read};

use super::header::{FileProblem, TENSORS_MAX, TensorInfo, WeightFormat, WeightHeader};

pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// A tokenizer's words take the most space in a header: about 10 MB.
const HEADER_BYTES_MAX: u64 = 256 << 20;
const KEYS_MAX: u64 = 1 << 16;
const NAME_BYTES_MAX: u64 = 1 << 10;
const DIMENSIONS_MAX: u32 = 8;
const ALIGNMENT_DEFAULT: u64 = 32;
const ALIGNMENT_MAX: u64 = 1 << 20;
/// Maximum nesting of arrays.
const DEPTH_MAX: u32 = 4;
/// Written by converters for tensors with more than four dimensions, which GGUF does not support.
const SHAPE_PREFIX: &str = "comfy.gguf.orig_shape.";

const ARRAY: u32 = 9;
const STRING: u32 = 8;

fn broken<T>(why: impl Display) -> Result<T, FileProblem> {
    Err(FileProblem::broken_header(why))
}

/// `type: (elements, bytes)` of one block, by the numbers of `enum ggml_type`.
fn block(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        20 => (32, 18),
        22 => (256, 82),
        23 => (256, 136),
        24 => (1, 1),
        27 | 28 => (1, 8),
        29 => (256, 56),
        34 => (256, 54),
        35 => (256, 66),
        39 => (32, 17),
        40 => (64, 36),
        41 => (128, 18),
        _ => return None,
    })
}

struct GgufParser<R> {
    reader: io::Take<R>,
}

impl<R: Read> GgufParser<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FileProblem> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, FileProblem> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FileProblem> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), FileProblem> {
        let skipped = io::copy(&mut (&mut self.reader).take(bytes), &mut io::sink())?;
        if skipped == bytes {
            Ok(())
        } else {
            broken("it is truncated, or longer than any known header")
        }
    }

    fn name(&mut self) -> Result<String, FileProblem> {
        let length = self.u64()?;
        if length > NAME_BYTES_MAX {
            return broken(format!("a name of {length} bytes"));
        }
        let mut name = vec![0; length as usize];
        self.reader.read_exact(&mut name)?;
        String::from_utf8(name).or_else(|_| broken("a name that is not UTF-8"))
    }

    /// Skips a value of type `kind`.
    fn value(&mut self, kind: u32, depth: u32) -> Result<(), FileProblem> {
        match (scalar(kind), kind) {
            (Some(bytes), _) => self.skip(bytes),
            (None, STRING) => {
                let length = self.u64()?;
                self.skip(length)
            }
            (None, ARRAY) if depth < DEPTH_MAX => {
                let (inner, count) = (self.u32()?, self.u64()?);
                if let Some(bytes) = scalar(inner) {
                    return match count.checked_mul(bytes) {
                        Some(bytes) => self.skip(bytes),
                        None => broken("an array that is too long"),
                    };
                }
                // Each turn consumes bytes of a bounded reader, so this ends.
                (0..count).try_for_each(|_| self.value(inner, depth + 1))
            }
            _ => broken(format!("a value of unknown type {kind}")),
        }
    }

    /// Reads a shape recorded by a converter, as an array of four-byte numbers.
    fn shape(&mut self, kind: u32) -> Result<Option<Vec<u64>>, FileProblem> {
        if kind != ARRAY {
            return self.value(kind, 0).map(|()| None);
        }
        let (inner, count) = (self.u32()?, self.u64()?);
        if scalar(inner) != Some(4) || count > u64::from(DIMENSIONS_MAX) {
            return broken("an invalid shape");
        }
        let sides = (0..count).map(|_| self.u32().map(u64::from));
        sides.collect::<Result<Vec<u64>, _>>().map(Some)
    }

    /// Reads the entry of a tensor; also returns its end, from the beginning of the data.
    fn tensor(&mut self) -> Result<(TensorInfo, u64), FileProblem> {
        let name = self.name()?;
        let dimensions = self.u32()?;
        if dimensions > DIMENSIONS_MAX {
            return broken(format!("{name} has {dimensions} dimensions"));
        }
        let sides = (0..dimensions).map(|_| self.u64());
        let mut shape = sides.collect::<Result<Vec<u64>, _>>()?;
        shape.reverse();
        let (kind, offset) = (self.u32()?, self.u64()?);
        let Some((elements, bytes)) = block(kind) else {
            return broken(format!("{name} is of unknown type {kind}"));
        };
        // All of this arithmetic is on numbers from the file, hence checked: an overflow would
        // make a huge tensor look small.
        let count = shape
            .iter()
            .try_fold(1_u64, |all, side| all.checked_mul(*side));
        let bytes = count.and_then(|count| count.div_ceil(elements).checked_mul(bytes));
        let Some(end) = bytes.and_then(|bytes| offset.checked_add(bytes)) else {
            return broken(format!("{name} is too large"));
        };
        Ok((TensorInfo { name, shape }, end))
    }
}

/// Size of a scalar value in bytes.
fn scalar(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

pub(super) fn parse(reader: impl Read) -> Result<WeightHeader, FileProblem> {
    let mut parser = GgufParser {
        reader: reader.take(HEADER_BYTES_MAX),
    };
    parser.skip(MAGIC.len() as u64)?;
    let version = parser.u32()?;
    if !(2..=3).contains(&version) {
        return broken(format!("unknown version {version}"));
    }
    let (tensors, keys) = (parser.u64()?, parser.u64()?);
    if tensors > TENSORS_MAX as u64 || keys > KEYS_MAX {
        return broken(format!("{tensors} tensors and {keys} keys"));
    }
    let mut alignment = ALIGNMENT_DEFAULT;
    let mut shapes = HashMap::new();
    for _ in 0..keys {
        let (key, kind) = (parser.name()?, parser.u32()?);
        // The only key that changes where the data begins.
        if key == "general.alignment" && scalar(kind) == Some(4) {
            alignment = u64::from(parser.u32()?);
        } else if let Some(tensor) = key.strip_prefix(SHAPE_PREFIX) {
            if let Some(shape) = parser.shape(kind)? {
                shapes.insert(tensor.to_owned(), shape);
            }
        } else {
            parser.value(kind, 0)?;
        }
    }
    if alignment == 0 || alignment > ALIGNMENT_MAX {
        return broken(format!("an alignment of {alignment}"));
    }
    let mut longest = 0;
    let mut infos = Vec::with_capacity(tensors as usize);
    for _ in 0..tensors {
        let (mut tensor, end) = parser.tensor()?;
        longest = longest.max(end);
        if let Some(shape) = shapes.remove(&tensor.name) {
            tensor.shape = shape;
        }
        infos.push(tensor);
    }
    let header = HEADER_BYTES_MAX - parser.reader.limit();
    let data = header.next_multiple_of(alignment);
    let Some(data_end) = data.checked_add(longest) else {
        return broken("its tensors are too large");
    };
    Ok(WeightHeader {
        format: WeightFormat::Gguf,
        tensors: infos,
        data_end,
    })
}
