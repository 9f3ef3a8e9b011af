//! The data of a finished span.

use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};

use kinora_contract::UnixMs;

/// The role of a span in an exchange, by its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Internal work.
    Internal = 1,
    /// The answer to a request.
    Server = 2,
    /// A request to another service.
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Count(u32),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

/// The data of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    pub(crate) trace: NonZeroU128,
    pub(crate) id: NonZeroU64,
    pub(crate) parent: Option<NonZeroU64>,
    pub(crate) begun_ms: UnixMs,
    pub(crate) ended_ms: UnixMs,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) is_error: bool,
}
