//! Parses a JSON object strictly: valid UTF-8, no duplicate names at any level, bounded depth
//! (`serde_json` stops at 128). Error messages never quote the input.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::error::{ErrorCode, Refusal};

/// Reads `body` as one JSON object.
///
/// # Errors
/// `invalid_json`, with the position.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let fields = reader
        .deserialize_any(UniqueFields)
        .map_err(|error| refusal(&error))?;
    reader.end().map_err(|error| refusal(&error))?;
    Ok(fields)
}

fn refusal(error: &serde_json::Error) -> Refusal {
    let place = format!("line {} column {}", error.line(), error.column());
    let message = match error.classify() {
        serde_json::error::Category::Eof => format!("The JSON body ends too early, at {place}."),
        serde_json::error::Category::Data => {
            format!("The body must be one JSON object without duplicate names (at {place}).")
        }
        _ => format!("The body is not valid JSON, at {place}."),
    };
    Refusal::new(ErrorCode::InvalidJson, message)
}

/// An object without duplicate names.
struct UniqueFields;

impl<'de> Visitor<'de> for UniqueFields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, Unique(value))) = map.next_entry::<String, Unique>()? {
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate name"));
            }
        }
        Ok(fields)
    }
}

/// A value without duplicate names at any level; `Value` itself keeps only the last duplicate and
/// would silently drop the others.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueValue).map(Self)
    }
}

struct UniqueValue;

impl<'de> Visitor<'de> for UniqueValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        let finite = Number::from_f64(number).ok_or_else(|| E::custom("not a finite number"))?;
        Ok(Value::Number(finite))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        UniqueFields.visit_map(map).map(Value::Object)
    }
}
