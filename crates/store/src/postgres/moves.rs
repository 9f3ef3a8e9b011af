//! A store in PostgreSQL that is moved: read in one transaction, or filled.

pub(super) mod export;
pub(super) mod import;
mod sums;
mod webhooks;
