//! The subjects that a text names, with their properties.

use super::reading::{Role, Tint};
use crate::subject::Act;

/// A subject of the text, the item that names it, and its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) item: usize,
    pub(super) role: Role,
    pub(super) counted: bool,
}

/// The subjects, colours and actions of a text.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) mentions: Vec<Mention>,
    pub(super) tints: Vec<Tint>,
    /// Actions, and as written, without a subject here: a subject of another shot may do them.
    pub(super) loose: Vec<(Act, String)>,
    /// Actions, as written, that no subject here can do.
    pub(super) idle: Vec<String>,
    /// Colours, sizes and numbers, as written, of things without a drawing.
    pub(super) unowned: Vec<String>,
}
