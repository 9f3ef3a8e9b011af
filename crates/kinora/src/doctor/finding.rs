//! The result of one check of `kinora doctor`.

/// A finding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// As it should be; a description.
    Good(String),
    /// It works, but the operator should know this.
    Note(String),
    /// The service would fail, or could not keep its promises; a remedy.
    Bad(String),
}
