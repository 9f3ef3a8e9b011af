//! The store in a PostgreSQL database, which any number of processes serve together. The `backend` sends
//! an operation to a `lane`, which takes all queued ones into one transaction: a `batch` locks and reads the rows
//! that they need in one round trip, they change records in memory (`transaction`, `claims`), and
//! `commit` writes the `rows`. Then `shared` shows the changes to this process, and a listener notifies
//! the others. Reads (`backend`, `reads`, `cache`, `snapshots`) query the database, or reuse a recent
//! answer.

mod address;
mod allowances;
mod backend;
mod batch;
mod cache;
mod claims;
mod commands;
mod commit;
mod connect;
mod driver;
mod fault;
mod key_cache;
mod lane;
mod moves;
mod notice_listener;
mod notices;
mod opening;
mod options;
mod reads;
mod rows;
mod schema;
mod script;
mod server_clock;
mod session;
mod shared;
mod snapshots;
mod transaction;

pub(crate) use driver::PostgresDriver;
pub use options::{DirectAddress, PostgresOptions, TimeSource};

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::{AllowanceStore, OpenError, OpenOptions, Store, StoreContents, StoreError};
use address::ServerAddress;
use connect::ServerConnector;
use key_cache::KeyCache;
use lane::WriteLane;
use moves::{PostgresExport, PostgresImport};
use notice_listener::NoticeListener;
use reads::StoreReader;
use shared::SharedState;
use snapshots::SnapshotRefresher;

/// Lanes that accept tasks.
const INSERT_LANES: usize = 2;
/// Lanes of a store.
const LANES: u64 = INSERT_LANES as u64 + 2;

/// Tasks and keys in one database, served by this process and others.
#[derive(Debug)]
pub struct PostgresStore {
    identity: u64,
    holds: StoreContents,
    shared: Arc<SharedState>,
    reader: Arc<StoreReader>,
    snapshots: SnapshotRefresher,
    keys: KeyCache,
    /// Lanes that accept tasks, so that no other work delays them; a project always uses the same
    /// one, since its row is locked.
    inserts: [WriteLane; INSERT_LANES],
    /// Lane for changes to single tasks and chores.
    acts: WriteLane,
    /// Lane for claims and sweeps, which may have to wait for other processes.
    queue: WriteLane,
}

/// Brings the schema up to date; returns the version before and after.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub(crate) async fn migrate(url: &str) -> Result<(u32, u32), OpenError> {
    let connector = ServerConnector::new(ServerAddress::parse(url, &PostgresOptions::default())?)?;
    schema::migrate(&connector).await
}

/// Reads the store in the database at `url`, to move it.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub(crate) async fn export(url: &str) -> Result<PostgresExport, OpenError> {
    let connector = ServerConnector::new(ServerAddress::parse(url, &PostgresOptions::default())?)?;
    PostgresExport::open(&connector).await
}

/// Fills the empty store in the database at `url` with the export of this name.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub(crate) async fn import(url: &str, name: &str) -> Result<PostgresImport, OpenError> {
    let connector = ServerConnector::new(ServerAddress::parse(url, &PostgresOptions::default())?)?;
    PostgresImport::begin(connector, name).await
}

impl PostgresStore {
    /// Opens the store in the database at `url`, whose schema must be that of this program.
    ///
    /// # Errors
    /// [`OpenError`], with a message for operators.
    pub async fn open(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let OpenOptions {
            clock,
            postgres: options,
            ..
        } = options;
        let connector = ServerConnector::new(ServerAddress::parse(url, options)?)?;
        // A separate address for notifications means that a pooler is in front of the database, through
        // which statements cannot have names.
        let connector = Arc::new(connector.with_names(options.listen_at.is_none()));
        let listening = match &options.listen_at {
            None => connector.clone(),
            Some(direct) => Arc::new(ServerConnector::new(ServerAddress::parse(
                &direct.0, options,
            )?)?),
        };
        let client = connector.connect().await?;
        schema::check(&client).await?;
        for setting in opening::unsafe_settings(&client).await? {
            tracing::warn!(
                setting,
                "PostgreSQL may lose acknowledged tasks in a power loss; change its configuration"
            );
        }
        let opened = opening::register(&client, LANES, options).await;
        let opened =
            opened.map_err(|fault| OpenError::Unavailable(StoreError::from(fault).into()))?;
        let [one, other, acts, queue] = opened.lanes[..] else {
            return Err(OpenError::Unavailable("the database gives no ids".into()));
        };
        let shared = Arc::new(SharedState::new(options, clock));
        let reader = Arc::new(StoreReader::start(connector.clone(), shared.clone()));
        // The first reading of the server's clock, with which later ones are compared to notice a step.
        let first = reader.present().await;
        first.map_err(|error| OpenError::Unavailable(error.into()))?;
        let [one, other, acts, queue] = [one, other, acts, queue]
            .map(|id| WriteLane::start(connector.clone(), shared.clone(), id));
        let listener = NoticeListener {
            connector: listening,
            channel: format!("kinora_{:x}", opened.identity),
            origin: opened.lanes.first().copied().unwrap_or_default(),
        };
        listener.start(&shared).await;
        Ok(Self {
            identity: opened.identity,
            holds: opened.holds,
            keys: KeyCache::default(),
            snapshots: SnapshotRefresher::default(),
            shared,
            reader,
            inserts: [one, other],
            acts,
            queue,
        })
    }

    /// The lane that accepts the tasks of this project.
    fn insert_lane(&self, project: &str) -> &WriteLane {
        // The same project always gets the same lane of this process: in two lanes, one transaction would
        // wait for the other's lock on the project's row, and hold up everybody else in its lane.
        let [one, other] = &self.inserts;
        let mut hasher = DefaultHasher::new();
        project.hash(&mut hasher);
        match hasher.finish() % 2 {
            0 => one,
            _ => other,
        }
    }
}

impl Store for PostgresStore {
    fn holds(&self) -> StoreContents {
        self.holds.clone()
    }

    fn allowances(self: Arc<Self>) -> Option<Arc<dyn AllowanceStore>> {
        Some(self)
    }
}
