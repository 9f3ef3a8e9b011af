//! Options for opening a store.

use std::sync::Arc;

use kinora_contract::Clock;

use crate::{PostgresOptions, SqliteOptions};

/// Options for opening a store. Each implementation reads its own part.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Determines all times of a store that serves one process.
    pub clock: Arc<dyn Clock>,
    /// For SQLite.
    pub sqlite: SqliteOptions,
    /// For PostgreSQL.
    pub postgres: PostgresOptions,
}

impl OpenOptions {
    /// The default options with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sqlite: SqliteOptions::default(),
            postgres: PostgresOptions::default(),
        }
    }
}
