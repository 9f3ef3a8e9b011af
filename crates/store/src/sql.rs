//! Statements in the SQL that SQLite and PostgreSQL both speak (`$1` parameters, `RETURNING`,
//! `ON CONFLICT`, window functions, common table expressions), their values and their answers. What
//! differs between the two stays with the store.

use std::borrow::Cow;

use kinora_contract::UnixMs;

use crate::stored::int;

/// A statement with its values.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) text: Cow<'static, str>,
    /// Those of `$1`, `$2` and so on.
    pub(crate) values: Vec<Value>,
}

/// A value of a parameter or of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl Query {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            values: Vec::new(),
        }
    }

    /// Sets the value of the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Some(number).into()
    }
}

impl From<Option<u64>> for Value {
    fn from(number: Option<u64>) -> Self {
        Self::Int(number.map(int))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8; 32]> for Value {
    fn from(bytes: &[u8; 32]) -> Self {
        Some(bytes).into()
    }
}

impl From<Option<&[u8; 32]>> for Value {
    fn from(bytes: Option<&[u8; 32]>) -> Self {
        Self::Bytes(bytes.map(|bytes| bytes.to_vec()))
    }
}

/// A row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Value>);

/// A stored value that this program does not understand.
#[derive(Debug)]
pub(crate) struct Unreadable(pub(crate) String);

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl Row {
    /// The value in column `at`.
    pub(crate) fn get<T: FromValue>(&self, at: usize) -> Result<T, Unreadable> {
        let value = self.0.get(at).and_then(T::from_value);
        value.ok_or_else(|| Unreadable(format!("column {at} has an unexpected value")))
    }
}

/// A type that columns are read as. Numbers are stored as signed ones; a negative one is damage, and
/// counts as 0: the end of a key is past then.
pub(crate) trait FromValue: Sized {
    /// `None` if it is another type's.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Int(Some(number)) => Some(Self::try_from(*number).unwrap_or(0)),
            _ => None,
        }
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value).map(|number| Self::try_from(number).unwrap_or(Self::MAX))
    }
}

impl FromValue for u16 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => text.clone(),
            _ => None,
        }
    }
}

impl FromValue for [u8; 32] {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(Some(bytes)) => bytes.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Int(None) | Value::Text(None) | Value::Bytes(None) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A query of a reader, with what its rows are read as.
pub(crate) struct Question<T> {
    pub(crate) query: Query,
    pub(crate) read: fn(&Row) -> Result<T, Unreadable>,
}

/// A change by statements that are known before any of them has run, in one transaction. Each says
/// by its rows (`RETURNING`) whether it changed something.
pub(crate) trait Script: Send + Sync + 'static {
    type Output: Send + 'static;

    /// A table that others must not write to meanwhile. (SQLite has one writer.)
    fn locked_table(&self) -> Option<&'static str> {
        None
    }

    /// The statements, in order; `now_ms` is the wall time of the transaction.
    fn statements(&self, now_ms: UnixMs) -> Vec<Query>;

    /// The outcome, by the rows of each statement.
    fn output(&self, answers: &[Vec<Row>]) -> Result<Self::Output, Unreadable>;
}
