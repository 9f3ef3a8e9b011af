//! Moving a SQLite store: reads it in one transaction, or fills it.

pub(super) mod export;
pub(super) mod import;
mod rows;
