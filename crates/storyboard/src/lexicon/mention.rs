//! The subjects that a text names, with what it says of each.

use super::super::subject::Act;
use super::reading::{Role, Tint};

/// A subject of the text, the item that names it, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) item: usize,
    pub(super) role: Role,
    pub(super) counted: bool,
}

/// What the text binds together.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) mentions: Vec<Mention>,
    pub(super) tints: Vec<Tint>,
    /// An action that nobody was found for: someone of another shot may do it.
    pub(super) loose: Option<Act>,
    /// Actions, as written, that nobody named here can do.
    pub(super) idle: Vec<String>,
}
