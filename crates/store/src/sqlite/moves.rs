//! A store in SQLite that is moved: read in one transaction, or filled.

pub(super) mod export;
pub(super) mod import;
mod rows;
mod webhooks;
