//! The store for commands that run beside the serving processes. It connects on first use.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, ManualClock};
use tokio::sync::OnceCell;

use super::address::ServerAddress;
use super::connect::ServerConnector;
use super::fault::{PostgresFault, unavailable};
use super::lane::WriteLane;
use super::reads::StoreReader;
use super::session::SqlStatement;
use super::shared::SharedState;
use super::{schema, script};
use crate::backend::StoreTables;
use crate::sql::{SqlDialect, SqlScript, TypedQuery};
use crate::tables::{keys, operators};
use crate::{
    KeyAction, OpenError, OperatorStore, PostgresOptions, ServiceOverview, StoreError,
    TallyRequest, TallyRow,
};

/// A store's database.
#[derive(Debug)]
pub(crate) struct PostgresTables {
    connector: Arc<ServerConnector>,
    options: PostgresOptions,
    connected: OnceCell<CommandConnection>,
}

/// A connected store: the lane for changes, and the reader.
#[derive(Debug)]
struct CommandConnection {
    lane: WriteLane,
    reader: Arc<StoreReader>,
}

impl PostgresTables {
    /// The database at `url`.
    pub(crate) fn new(url: &str) -> Result<Self, OpenError> {
        let options = PostgresOptions::default();
        let connector = Arc::new(ServerConnector::new(ServerAddress::parse(url, &options)?)?);
        Ok(Self {
            connector,
            options,
            connected: OnceCell::new(),
        })
    }

    /// The connection.
    ///
    /// # Errors
    /// If the connection fails, or the schema is not this program's.
    async fn connected(&self) -> Result<&CommandConnection, StoreError> {
        self.connected.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<CommandConnection, StoreError> {
        let client = self.connector.connect().await?;
        let checked = schema::check(&client).await;
        checked.map_err(|error| unavailable(&error.to_string()))?;
        let id = SqlStatement::new("SELECT nextval('lane_ids')")
            .run(&client)
            .await;
        let id = id.map_err(PostgresFault::from)?;
        let id = id.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        let id = id
            .map_err(PostgresFault::from)?
            .unwrap_or_default()
            .unsigned_abs();
        // A clock that stands still: commands use no cache, so nothing here has an age.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let shared = Arc::new(SharedState::new(&self.options, &clock));
        Ok(CommandConnection {
            lane: WriteLane::start(self.connector.clone(), shared.clone(), id),
            reader: Arc::new(StoreReader::start(self.connector.clone(), shared)),
        })
    }
}

impl StoreTables for PostgresTables {
    const DIALECT: SqlDialect = SqlDialect::Postgres;

    async fn ask<T: Send + 'static>(&self, question: TypedQuery<T>) -> Result<Vec<T>, StoreError> {
        script::ask(&self.connected().await?.reader, question).await
    }

    async fn run<S: SqlScript>(&self, script: S) -> Result<S::Output, StoreError> {
        self.connected().await?.lane.call(script).await
    }
}

/// A store opened for viewing. It reconnects after its connection breaks.
#[derive(Debug)]
pub(crate) struct PostgresOperations(StoreReader);

impl PostgresOperations {
    /// The store in the database at `url`.
    pub(crate) async fn open(url: &str, clock: &Arc<dyn Clock>) -> Result<Self, OpenError> {
        let options = PostgresOptions::default();
        let connector = Arc::new(ServerConnector::new(ServerAddress::parse(url, &options)?)?);
        schema::check(&connector.connect().await?).await?;
        let shared = Arc::new(SharedState::new(&options, clock));
        Ok(Self(StoreReader::start(connector, shared)))
    }
}

#[async_trait]
impl OperatorStore for PostgresOperations {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        script::ask(&self.0, operators::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        script::ask(&self.0, keys::log(project)).await
    }

    async fn overview(&self) -> Result<ServiceOverview, StoreError> {
        script::overview(&self.0).await
    }
}
