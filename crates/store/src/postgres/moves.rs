//! Moving a store in PostgreSQL: reading it in one transaction, or filling it.

pub(super) mod export;
pub(super) mod import;
mod sums;
