//! The result of one check of `kinora doctor`.

/// How one thing stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// As it should be; what was seen.
    Good(String),
    /// It works, and the operator should know.
    Note(String),
    /// The service would fail, or could not keep its promises; what to do.
    Bad(String),
}
