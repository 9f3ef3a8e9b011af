//! Tables that both databases have in the same form: their statements and rows, once, and the changes
//! that consist of statements alone. No rules about tasks: those are in [`crate::operations`].

pub(crate) mod chores;
pub(crate) mod copied;
pub(crate) mod keys;
pub(crate) mod operators;
pub(crate) mod pauses;
pub(crate) mod spending;
pub(crate) mod uploads;
pub(crate) mod webhooks;
pub(crate) mod workers;
