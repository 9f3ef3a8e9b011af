//! Tables that both databases have in the same form: their statements and rows, once.

pub(crate) mod chores;
pub(crate) mod copied;
pub(crate) mod keys;
pub(crate) mod operators;
pub(crate) mod webhooks;
pub(crate) mod workers;
