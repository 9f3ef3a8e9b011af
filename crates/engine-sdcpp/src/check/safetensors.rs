//! Parses the header of a safetensors file (<https://github.com/huggingface/safetensors#format>):
//! an eight-byte length, then JSON. Refuses headers above the format's own limit.

use std::fmt;
use std::io::Read;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::header::{FileProblem, TENSORS_MAX, TensorInfo, WeightFormat, WeightHeader};

/// The limit of the reference implementation.
const HEADER_BYTES_MAX: u64 = 100_000_000;
const LENGTH_BYTES: u64 = 8;
const METADATA: &str = "__metadata__";

#[derive(serde::Deserialize)]
struct TensorEntry {
    #[serde(rename = "dtype")]
    _kind: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The entries in order, without the metadata.
struct TensorEntries(Vec<(String, TensorEntry)>);

impl<'de> Deserialize<'de> for TensorEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = TensorEntries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TensorEntries, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    if entries.len() == TENSORS_MAX {
                        return Err(serde::de::Error::custom("too many tensors"));
                    }
                    entries.push((name, map.next_value()?));
                }
                Ok(TensorEntries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor)
    }
}

pub(super) fn parse(mut reader: impl Read, bytes: u64) -> Result<WeightHeader, FileProblem> {
    let mut length = [0; LENGTH_BYTES as usize];
    if reader.read_exact(&mut length).is_err() {
        return Err(FileProblem::unknown_format());
    }
    let length = u64::from_le_bytes(length);
    // Any other kind of file gives an excessive length, or no JSON object.
    let mut brace = [0];
    if length > HEADER_BYTES_MAX || reader.read_exact(&mut brace).is_err() || brace != *b"{" {
        return Err(FileProblem::unknown_format());
    }
    let data = LENGTH_BYTES + length;
    if data > bytes {
        return Err(FileProblem::broken_header("it is truncated"));
    }
    let text = brace.as_slice().chain(reader.take(length - 1));
    let TensorEntries(entries) =
        serde_json::from_reader(text).map_err(FileProblem::broken_header)?;
    let mut data_end = data;
    let mut tensors = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let (begin, end) = entry.data_offsets;
        let Some(end) = data.checked_add(end).filter(|_| begin <= end) else {
            let why = format!("{name} ends before it begins");
            return Err(FileProblem::broken_header(why));
        };
        data_end = data_end.max(end);
        tensors.push(TensorInfo {
            name,
            shape: entry.shape,
        });
    }
    Ok(WeightHeader {
        format: WeightFormat::Safetensors,
        tensors,
        data_end,
    })
}
