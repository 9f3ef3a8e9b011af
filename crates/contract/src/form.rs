//! A form becomes the same request as JSON: each field's kind decides how its text part is read.
//! The official OpenAI SDKs always send forms, with lists as repeated `name[]` and objects as
//! `name[key]`. The body's parser has already refused file parts.

use serde_json::{Map, Number, Value};

use crate::error::{ErrorCode, RequestRefusal};
use crate::fields::{FieldKind, wrong_type};
use crate::json;
use crate::request::{SubmitRequest, is_known, kind};

/// Collects text parts in the order sent.
#[derive(Debug, Default)]
pub struct FormFields {
    fields: Map<String, Value>,
}

impl FormFields {
    /// Adds one text part. The text `null` means absent, like `null` in JSON, except in prose.
    ///
    /// # Errors
    /// `invalid_value` if a field that is not a list is sent twice; `invalid_type` for a key within
    /// a key.
    pub fn push(&mut self, name: &str, text: String) -> Result<(), RequestRefusal> {
        let (field, index) = split(name);
        if is_known(field) && index.is_some_and(|key| key.contains("][")) {
            return Err(wrong_type(
                field,
                "an object of strings without objects in it",
            ));
        }
        // A form has only text, so this word stands for JSON's null. A prompt may be the word
        // itself, so prose is never absent by its text.
        if text == "null" && kind(field) != Some(FieldKind::Prose) && index.is_none() {
            return self.insert_once(name, Value::Null);
        }
        match (kind(field), index) {
            (Some(FieldKind::Texts), None | Some("")) => self.append(field, text),
            (Some(FieldKind::Pairs | FieldKind::InputReference), Some(key)) => {
                self.insert_pair(field, key, text)
            }
            (Some(kind), None) => self.insert_once(field, read(field, kind, text)?),
            // A known name without a kind: unsupported, or a field of another endpoint.
            (None, Some("")) if is_known(field) => self.append(field, text),
            (None, Some(key)) if is_known(field) => self.insert_pair(field, key, text),
            _ => self.insert_once(name, Value::String(text)),
        }
    }

    fn append(&mut self, field: &str, text: String) -> Result<(), RequestRefusal> {
        let list = self.fields.entry(field);
        match list.or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(items) => items.push(Value::String(text)),
            _ => return Err(sent_twice(field)),
        }
        Ok(())
    }

    fn insert_pair(&mut self, field: &str, key: &str, text: String) -> Result<(), RequestRefusal> {
        let object = self.fields.entry(field);
        let Value::Object(pairs) = object.or_insert_with(|| Value::Object(Map::new())) else {
            return Err(sent_twice(field));
        };
        match pairs.insert(key.to_owned(), Value::String(text)) {
            Some(_) => Err(sent_twice(&format!("{field}[{key}]"))),
            None => Ok(()),
        }
    }

    fn insert_once(&mut self, name: &str, value: Value) -> Result<(), RequestRefusal> {
        match self.fields.insert(name.to_owned(), value) {
            Some(_) => Err(sent_twice(name)),
            None => Ok(()),
        }
    }

    /// The request that consists of these parts.
    ///
    /// # Errors
    /// As [`SubmitRequest::from_fields`].
    pub fn into_request(self) -> Result<SubmitRequest, RequestRefusal> {
        SubmitRequest::from_fields(self.fields)
    }

    /// The parts as fields, for endpoints with other fields.
    pub fn into_fields(self) -> Map<String, Value> {
        self.fields
    }
}

fn sent_twice(name: &str) -> RequestRefusal {
    let shown: String = name.chars().take(64).collect();
    let message = format!("'{shown}' was sent more than once.");
    RequestRefusal::for_param(ErrorCode::InvalidValue, shown, message)
}

/// Splits `metadata[take]` into `metadata` and `take`.
fn split(name: &str) -> (&str, Option<&str>) {
    let inner = name.strip_suffix(']').and_then(|open| open.split_once('['));
    inner.map_or((name, None), |(field, key)| (field, Some(key)))
}

/// Converts text to the JSON value that it stands for. Text that stands for none remains a string,
/// which is then refused as a wrong type, like its JSON counterpart.
fn read(field: &str, kind: FieldKind, text: String) -> Result<Value, RequestRefusal> {
    Ok(match kind {
        FieldKind::Flag => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        FieldKind::Number => match text.parse::<Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text),
        },
        FieldKind::Pairs | FieldKind::InputReference => {
            match json::parse_object(text.as_bytes(), |_| Ok(())) {
                Ok(object) => Value::Object(object),
                // Text that is no object. As a string it is refused as a wrong type, in the words of
                // the field.
                Err(refusal) if refusal.code == ErrorCode::InvalidJson => Value::String(text),
                Err(refusal) => {
                    return Err(RequestRefusal {
                        param: Some(field.to_owned()),
                        ..refusal
                    });
                }
            }
        }
        FieldKind::Text | FieldKind::Prose | FieldKind::Texts => Value::String(text),
    })
}
