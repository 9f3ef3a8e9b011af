//! Reads the case tables under `tests/data`; their `about` says what the columns mean.
//! It judges nothing, so that tests over HTTP can include this file and send the same cases.

use serde_json::{Map, Value};

/// Refused requests.
pub(crate) const REFUSALS: &str = include_str!("../data/refusals.json");
/// Accepted requests.
pub(crate) const ACCEPTED: &str = include_str!("../data/accepted.json");

/// One row of a table.
#[derive(Debug)]
pub(crate) struct Case {
    /// What it shows.
    pub(crate) name: String,
    /// The bytes of the JSON body, when the case can be sent as JSON.
    pub(crate) json: Option<Vec<u8>>,
    /// Name and text of each part, when the case can be sent as a form.
    pub(crate) parts: Option<Vec<(String, String)>>,
    row: Map<String, Value>,
}

/// The code and param that a refusal must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The exact code.
    pub(crate) code: String,
    /// The exact param.
    pub(crate) param: Option<String>,
}

impl Case {
    /// How it is refused on the models of the contract; `None` when it is accepted.
    pub(crate) fn full(&self) -> Option<Expected> {
        self.expected("expect_full")
    }

    /// How it is refused where a deployment takes text only; `None` when it is accepted.
    pub(crate) fn text_only(&self) -> Option<Expected> {
        self.expected("expect_text_only").or_else(|| self.full())
    }

    /// A further column of the table.
    pub(crate) fn column(&self, name: &str) -> Option<&Value> {
        self.row.get(name)
    }

    fn expected(&self, column: &str) -> Option<Expected> {
        let expected = self.row.get(column)?;
        Some(Expected {
            code: expected["code"].as_str().unwrap().to_owned(),
            param: expected["param"].as_str().map(str::to_owned),
        })
    }
}

/// All cases of a table.
pub(crate) fn load(table: &str) -> Vec<Case> {
    let table: Value = serde_json::from_str(table).unwrap();
    let rows = table["cases"].as_array().unwrap();
    rows.iter().map(|row| case(expand(row))).collect()
}

fn case(row: Value) -> Case {
    let Value::Object(row) = row else {
        panic!("a case is an object, not {row}");
    };
    let json = match (row.get("body"), row.get("raw"), row.get("raw_hex")) {
        (Some(body), ..) => Some(serde_json::to_vec(body).unwrap()),
        (_, Some(raw), _) => Some(raw.as_str().unwrap().as_bytes().to_vec()),
        (.., Some(hex)) => Some(from_hex(hex.as_str().unwrap())),
        _ => None,
    };
    let parts = match (row.get("parts"), row.get("body")) {
        (Some(parts), _) => Some(serde_json::from_value(parts.clone()).unwrap()),
        (_, Some(body)) if row.get("forms") != Some(&Value::Bool(false)) => {
            Some(form_parts(body.as_object().unwrap()))
        }
        _ => None,
    };
    let name = row["name"].as_str().unwrap().to_owned();
    assert!(json.is_some() || parts.is_some(), "{name}: nothing to send");
    Case {
        name,
        json,
        parts,
        row,
    }
}

/// The parts in which a form sends `body`: lists as repeated `name[]`, objects as `name[key]` (as JSON where a
/// key has brackets of its own), everything else as text.
pub(crate) fn form_parts(body: &Map<String, Value>) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    for (name, value) in body {
        match value {
            Value::Array(items) => {
                parts.extend(
                    items
                        .iter()
                        .map(|item| (format!("{name}[]"), text_of(item))),
                );
            }
            Value::Object(pairs) if pairs.keys().any(|key| key.contains(['[', ']'])) => {
                parts.push((name.clone(), value.to_string()));
            }
            Value::Object(pairs) => {
                let part = |(key, item)| (format!("{name}[{key}]"), text_of(item));
                parts.extend(pairs.iter().map(part));
            }
            plain => parts.push((name.clone(), text_of(plain))),
        }
    }
    parts
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes out `$text` and `$times` wherever they stand.
fn expand(value: &Value) -> Value {
    match value {
        Value::Object(object) if object.contains_key("$text") => {
            let pieces = object["$text"].as_array().unwrap();
            Value::String(pieces.iter().map(piece).collect())
        }
        Value::Object(object) if object.contains_key("$times") => {
            let count = object["$times"][1].as_u64().unwrap() as usize;
            Value::Array(vec![expand(&object["$times"][0]); count])
        }
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), expand(value)))
            .collect(),
        Value::Array(items) => items.iter().map(expand).collect(),
        plain => plain.clone(),
    }
}

fn piece(piece: &Value) -> String {
    match piece {
        Value::String(text) => text.clone(),
        repeated => {
            let count = repeated[1].as_u64().unwrap() as usize;
            repeated[0].as_str().unwrap().repeat(count)
        }
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}
