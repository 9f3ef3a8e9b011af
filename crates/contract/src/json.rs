//! Parses a JSON object strictly: valid UTF-8, no duplicate names at any level, bounded depth
//! (`serde_json` stops at 128) and a bounded number of values. Reading ends where a bound is
//! reached, so that a hostile body costs no more than a large honest one. Error messages quote
//! nothing of the input but the beginning of names. Skips a byte order mark of UTF-8, which some
//! Windows programs put before every text.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};

use crate::error::{ErrorCode, RequestRefusal};
use crate::limits::JSON_VALUES_MAX;

/// Reads `text` as one JSON object whose names `check_name` accepts. Reading stops at the first
/// name that it refuses, unless the value is `null`, and at [`JSON_VALUES_MAX`] values: the rest of
/// the body costs nothing.
///
/// # Errors
/// `invalid_json`, with the position; `invalid_value` for too many values; the error of `check_name`.
pub(crate) fn parse_object(
    text: &[u8],
    check_name: fn(&str) -> Result<(), RequestRefusal>,
) -> Result<Map<String, Value>, RequestRefusal> {
    let mut bounds = ReadBounds {
        values_left: JSON_VALUES_MAX,
        refusal: None,
    };
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if is_utf16(text) {
        let message = "The body is in UTF-16; send JSON in UTF-8.";
        return Err(RequestRefusal::new(ErrorCode::InvalidJson, message));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let fields = reader.deserialize_any(ObjectVisitor {
        bounds: &mut bounds,
        check_name,
    });
    // A bound ends the reading by an error of serde, which cannot carry a refusal: `bounds` does.
    let fields = fields.map_err(|error| bounds.refusal.unwrap_or_else(|| refusal(&error)))?;
    reader.end().map_err(|error| refusal(&error))?;
    Ok(fields)
}

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Whether `text` begins as an object does in UTF-16: with its byte order mark, or with a brace of
/// two bytes.
fn is_utf16(text: &[u8]) -> bool {
    matches!(
        text,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{', 0, ..] | [0, b'{', ..]
    )
}

fn refusal(error: &serde_json::Error) -> RequestRefusal {
    let place = format!("line {} column {}", error.line(), error.column());
    let message = match error.classify() {
        Category::Eof => format!("The JSON body ends too early, at {place}."),
        Category::Data => {
            format!("The body must be one JSON object without duplicate names (at {place}).")
        }
        _ => format!("The body is not valid JSON, at {place}."),
    };
    RequestRefusal::new(ErrorCode::InvalidJson, message)
}

/// The number of values that may still be read, and the refusal that stopped the reading.
struct ReadBounds {
    values_left: usize,
    refusal: Option<RequestRefusal>,
}

impl ReadBounds {
    /// Counts one more value within the field `name`.
    fn count_value<E: Error>(&mut self, name: &str) -> Result<(), E> {
        match self.values_left.checked_sub(1) {
            Some(left) => self.values_left = left,
            None => {
                let shown: String = name.chars().take(64).collect();
                let message = format!(
                    "'{shown}' has too many entries; a body may hold {JSON_VALUES_MAX} values in all."
                );
                self.refusal = Some(RequestRefusal::for_param(
                    ErrorCode::InvalidValue,
                    shown,
                    message,
                ));
                return Err(E::custom("too many values"));
            }
        }
        Ok(())
    }
}

/// Reads the whole object: fields without duplicate names.
struct ObjectVisitor<'b> {
    bounds: &'b mut ReadBounds,
    check_name: fn(&str) -> Result<(), RequestRefusal>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { bounds, check_name } = self;
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match check_name(&name) {
                Ok(()) => map.next_value_seed(UniqueValue {
                    bounds: &mut *bounds,
                    field: &name,
                })?,
                Err(refusal) => {
                    bounds.count_value(&name)?;
                    // `null` means absent; of any other value nothing is read.
                    // `()` reads `null` and nothing else. An array of a million items under an
                    // unknown name fails at its first byte.
                    if let Err(error) = map.next_value::<()>() {
                        bounds.refusal = Some(refusal);
                        return Err(error);
                    }
                    Value::Null
                }
            };
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate name"));
            }
        }
        Ok(fields)
    }
}

/// A value within the field `field`, without duplicate names at any level; `Value` itself keeps
/// only the last duplicate and would silently drop the others.
struct UniqueValue<'b> {
    bounds: &'b mut ReadBounds,
    field: &'b str,
}

impl<'de> DeserializeSeed<'de> for UniqueValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.bounds.count_value(self.field)?;
        deserializer.deserialize_any(self)
    }
}

impl UniqueValue<'_> {
    /// The seed of a value within this one.
    fn inner(&mut self) -> UniqueValue<'_> {
        UniqueValue {
            bounds: &mut *self.bounds,
            field: self.field,
        }
    }
}

impl<'de> Visitor<'de> for UniqueValue<'_> {
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

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.inner())?;
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate name"));
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::json_fields;

    /// A body that ends in the middle, so that a reader that goes on to its end says so.
    fn cut(start: &str, entry: impl Fn(usize) -> String, entries: usize) -> RequestRefusal {
        let entries: Vec<String> = (0..entries).map(entry).collect();
        json_fields(format!("{start}{},", entries.join(",")).as_bytes()).unwrap_err()
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_and_utf_16_is_refused_by_name() {
        let body = r#"{"prompt": "x"}"#;
        let read = |text: &[u8]| json_fields(text);
        let marked = format!("\u{feff}{body}");
        assert_eq!(read(marked.as_bytes()), read(body.as_bytes()));
        let twice = format!("\u{feff}{marked}");
        assert_eq!(
            read(twice.as_bytes()).unwrap_err().code,
            ErrorCode::InvalidJson
        );
        let units: Vec<u16> = body.encode_utf16().collect();
        let bytes = |of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            units.iter().flat_map(|unit| of(*unit)).collect()
        };
        let (little, big) = (bytes(u16::to_le_bytes), bytes(u16::to_be_bytes));
        for text in [
            [&[0xff, 0xfe], &*little].concat(),
            [&[0xfe, 0xff], &*big].concat(),
            little,
            big,
        ] {
            let refusal = read(&text).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidJson);
            assert!(refusal.message.contains("UTF-16"), "{}", refusal.message);
        }
    }

    #[test]
    fn p08_reading_stops_at_the_first_unknown_name_and_at_the_bound_on_values() {
        for (start, entry, code, param) in [
            ("{", "\"k#\":1", ErrorCode::UnknownParameter, "k0"),
            ("{", "\"k#\":[1,2", ErrorCode::UnknownParameter, "k0"),
            ("{", "\"k#\":null", ErrorCode::InvalidValue, "k256"),
            (
                "{\"reference_images\":[",
                "1",
                ErrorCode::InvalidValue,
                "reference_images",
            ),
            ("{\"prompt\":[", "[[]]", ErrorCode::InvalidValue, "prompt"),
            (
                "{\"metadata\":{",
                "\"k#\":\"\"",
                ErrorCode::InvalidValue,
                "metadata",
            ),
            (
                "{\"video\":{\"id\":{",
                "\"k#\":{}",
                ErrorCode::InvalidValue,
                "video",
            ),
        ] {
            let refusal = cut(
                start,
                |index| entry.replace('#', &index.to_string()),
                70_000,
            );
            let found = (refusal.code, refusal.param.as_deref());
            assert_eq!(
                found,
                (code, Some(param)),
                "{start}{entry}: {}",
                refusal.message
            );
        }
    }

    #[test]
    fn p08_a_body_at_the_bound_is_read_to_its_end() {
        let images = |count| {
            let images = vec!["1"; count].join(",");
            json_fields(format!("{{\"seed\":1,\"reference_images\":[{images}]}}").as_bytes())
        };
        // The two fields count too.
        assert!(images(JSON_VALUES_MAX - 2).is_ok());
        let refusal = images(JSON_VALUES_MAX - 1).unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some("reference_images"));
        let refusal = cut(
            "{\"reference_images\":[",
            |_| "1".to_owned(),
            JSON_VALUES_MAX - 2,
        );
        assert_eq!(refusal.code, ErrorCode::InvalidJson);
    }
}
