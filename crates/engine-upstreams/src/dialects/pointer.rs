//! Where a value is in a JSON answer: JSON pointers (RFC 6901), of which the first that leads to something counts.
//! `null`, an empty text and a pointer through a text lead to nothing.

use serde::Deserialize;
use serde_json::Value;

use crate::servers::OneOrMany;

/// One pointer or more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "OneOrMany<String>")]
pub(crate) struct Pointers(Vec<String>);

impl TryFrom<OneOrMany<String>> for Pointers {
    type Error = String;

    fn try_from(given: OneOrMany<String>) -> Result<Self, String> {
        let all = Vec::from(given);
        match all.iter().find(|one| !one.starts_with('/')) {
            Some(wrong) => Err(format!(
                "{wrong:?} is not a JSON pointer; it begins with a slash: \"/data/task_id\""
            )),
            None => Ok(Self(all)),
        }
    }
}

impl Pointers {
    /// A single pointer.
    pub(crate) fn one(pointer: &str) -> Self {
        Self(vec![pointer.to_owned()])
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first value that is there and that `read` understands.
    pub(crate) fn find<'v, T>(
        &self,
        answer: &'v Value,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let found = self.0.iter().filter_map(|pointer| answer.pointer(pointer));
        found.filter_map(read).next()
    }
}

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
