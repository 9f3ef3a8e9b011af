//! The fields of a submit request: their names, and how each is read from a JSON value.
//! A wrong type is refused here; a wrong value is not this file's business.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::error::{ErrorCode, Refusal};

/// How a field's text part of a form becomes a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Stays text; `null` means absent.
    Text,
    /// Stays text, even `null`: a prompt may say so.
    Prose,
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// Repeated parts, with or without `[]`.
    Texts,
    /// Parts named `field[key]`, or one part holding a JSON object.
    Pairs,
    /// Text, parts named `field[image_url]`, or one part holding a JSON object.
    InputReference,
}

/// Every field that some model takes.
pub(crate) const KNOWN: &[(&str, Kind)] = &[
    ("model", Kind::Text),
    ("prompt", Kind::Prose),
    ("negative_prompt", Kind::Prose),
    ("seconds", Kind::Text),
    ("size", Kind::Text),
    ("resolution", Kind::Text),
    ("aspect_ratio", Kind::Text),
    ("input_reference", Kind::InputReference),
    ("first_frame", Kind::Text),
    ("last_frame", Kind::Text),
    ("reference_images", Kind::Texts),
    ("reference_audios", Kind::Texts),
    ("generate_audio", Kind::Flag),
    ("seed", Kind::Number),
    ("draft", Kind::Flag),
    ("draft_task_id", Kind::Text),
    ("edit_task_id", Kind::Text),
    ("edit_strength", Kind::Number),
    ("metadata", Kind::Pairs),
];

/// Fields of other services for what no model here does: refused as unsupported, not as unknown.
pub(crate) const NEVER_SUPPORTED: &[&str] = &[
    "reference_videos",
    "reference_video",
    "video",
    "video_url",
    "extend",
    "extend_task_id",
    "source_task_id",
    "parent_task_id",
];

/// `seconds` as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum SecondsField {
    /// A whole number, in range or not.
    Number(i64),
    /// `"auto"` or -1.
    Auto,
    /// Something else; refused with the other ranges, not as a wrong type.
    Other(String),
}

pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == name) || NEVER_SUPPORTED.contains(&name)
}

/// How a form's part of this name is read. `video` is known to `edits` alone, which takes an object.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    if name == "video" {
        return Some(Kind::Pairs);
    }
    KNOWN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
}

pub(crate) fn wrong_type(param: impl Into<String>, expected: &str) -> Refusal {
    let param = param.into();
    let message = format!("'{param}' must be {expected}.");
    Refusal::of(ErrorCode::InvalidType, param, message)
}

pub(crate) fn text(sent: &Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match sent.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong_type(name, "a string")),
    }
}

pub(crate) fn flag(sent: &Map<String, Value>, name: &str) -> Result<Option<bool>, Refusal> {
    match sent.get(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(wrong_type(name, "true or false")),
    }
}

/// A whole number; like JSON Schema, `9.0` is one. Numbers past `i64` are clamped: every range
/// refuses them all the same.
fn whole(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else {
        return None;
    };
    if let Some(whole) = number.as_i64() {
        return Some(whole);
    }
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let real = number.as_f64()?;
    (real.fract() == 0.0).then_some(real as i64)
}

pub(crate) fn integer(sent: &Map<String, Value>, name: &str) -> Result<Option<i64>, Refusal> {
    let Some(value) = sent.get(name) else {
        return Ok(None);
    };
    whole(value)
        .map(Some)
        .ok_or_else(|| wrong_type(name, "an integer"))
}

pub(crate) fn number(sent: &Map<String, Value>, name: &str) -> Result<Option<f64>, Refusal> {
    let Some(value) = sent.get(name) else {
        return Ok(None);
    };
    value
        .as_f64()
        .map(Some)
        .ok_or_else(|| wrong_type(name, "a number"))
}

/// `seconds` is a number or a string that holds one; what neither counts nor says "auto" is a
/// wrong value. A form sends text for both, so text takes exactly what a number may be.
pub(crate) fn seconds(sent: &Map<String, Value>) -> Result<Option<SecondsField>, Refusal> {
    let Some(value) = sent.get("seconds") else {
        return Ok(None);
    };
    let field = match value {
        Value::Number(number) => whole(value).map_or_else(
            || SecondsField::Other(number.to_string()),
            SecondsField::Number,
        ),
        Value::String(text) if text == "auto" => SecondsField::Auto,
        Value::String(text) => text
            .parse::<Number>()
            .ok()
            .and_then(|number| whole(&Value::Number(number)))
            .map_or_else(|| SecondsField::Other(text.clone()), SecondsField::Number),
        _ => return Err(wrong_type("seconds", "an integer or a numeric string")),
    };
    Ok(Some(match field {
        SecondsField::Number(-1) => SecondsField::Auto,
        other => other,
    }))
}

/// A URL, or OpenAI's object `{"image_url": URL}`.
pub(crate) fn input_reference(sent: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    const NAME: &str = "input_reference";
    match sent.get(NAME) {
        None => Ok(None),
        Some(Value::String(url)) => Ok(Some(url.clone())),
        Some(Value::Object(object)) => {
            if let Some(other) = object.keys().find(|key| *key != "image_url") {
                let param = format!("{NAME}.{}", other.chars().take(64).collect::<String>());
                let message = format!("'{NAME}' takes only 'image_url'.");
                return Err(Refusal::of(ErrorCode::UnknownParameter, param, message));
            }
            match object.get("image_url") {
                Some(Value::String(url)) => Ok(Some(url.clone())),
                _ => Err(wrong_type(format!("{NAME}.image_url"), "a URL string")),
            }
        }
        Some(_) => Err(wrong_type(
            NAME,
            "a URL string or an object with 'image_url'",
        )),
    }
}

pub(crate) fn texts(sent: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, Refusal> {
    let Some(value) = sent.get(name) else {
        return Ok(None);
    };
    let Value::Array(items) = value else {
        return Err(wrong_type(name, "an array of URL strings"));
    };
    let read = |(index, item): (usize, &Value)| match item {
        Value::String(text) => Ok(text.clone()),
        _ => Err(wrong_type(format!("{name}[{index}]"), "a URL string")),
    };
    items
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()
        .map(Some)
}

pub(crate) fn pairs(
    sent: &Map<String, Value>,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, Refusal> {
    let Some(value) = sent.get(name) else {
        return Ok(None);
    };
    let Value::Object(object) = value else {
        return Err(wrong_type(name, "an object of strings"));
    };
    let read = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        _ => Err(wrong_type(name, "an object whose values are strings")),
    };
    object.iter().map(read).collect::<Result<_, _>>().map(Some)
}
