//! A SQLite store in a temporary folder, for tests of code that uses a store. It has no threads: the
//! caller does all the work, so that a test's clock may stand still.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

use std::sync::Arc;

use kinora_contract::Clock;
use tempfile::TempDir;

use super::SqliteStore;
use crate::{OpenOptions, SqliteOptions, StoreHandles};

/// The store, and its folder.
#[derive(Debug)]
pub struct EmbeddedStore {
    /// The interfaces of the store.
    pub stores: StoreHandles,
    _folder: TempDir,
}

impl EmbeddedStore {
    /// Creates an empty store.
    pub fn open(clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            sqlite: SqliteOptions {
                on_the_spot: true,
                ..SqliteOptions::default()
            },
            ..OpenOptions::new(clock)
        };
        let store = SqliteStore::open(&folder.path().join("kinora.db"), &options).unwrap();
        Self {
            stores: StoreHandles::from_store(Arc::new(store)),
            _folder: folder,
        }
    }
}
