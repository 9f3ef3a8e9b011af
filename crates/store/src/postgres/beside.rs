//! The store for commands that run beside the serving processes. It connects on first use.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, ManualClock};
use tokio::sync::OnceCell;

use super::address::Address;
use super::connect::Connector;
use super::fault::{Fault, unavailable};
use super::lane::Lane;
use super::reads::Reader;
use super::session::Statement;
use super::shared::Shared;
use super::{schema, script};
use crate::backend::Tables;
use crate::sql::{Dialect, Question, Script};
use crate::tables::{keys, operators};
use crate::{
    KeyAction, OpenError, Operations, Overview, PostgresOptions, StoreError, TallyRequest, TallyRow,
};

/// A store's database.
#[derive(Debug)]
pub(crate) struct PostgresBeside {
    connector: Arc<Connector>,
    options: PostgresOptions,
    connected: OnceCell<Connected>,
}

/// A connected store: the lane for changes, and the reader.
#[derive(Debug)]
struct Connected {
    lane: Lane,
    reader: Arc<Reader>,
}

impl PostgresBeside {
    /// The database at `url`.
    pub(crate) fn of(url: &str) -> Result<Self, OpenError> {
        let options = PostgresOptions::default();
        let connector = Arc::new(Connector::of(Address::parse(url, &options)?)?);
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
    async fn connected(&self) -> Result<&Connected, StoreError> {
        self.connected.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Connected, StoreError> {
        let client = self.connector.connect().await?;
        let checked = schema::check(&client).await;
        checked.map_err(|error| unavailable(&error.to_string()))?;
        let id = Statement::new("SELECT nextval('lane_ids')")
            .run(&client)
            .await;
        let id = id.map_err(Fault::from)?;
        let id = id.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        let id = id.map_err(Fault::from)?.unwrap_or_default().unsigned_abs();
        // A clock that stands still: commands use no cache, so nothing here has an age.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let shared = Arc::new(Shared::new(&self.options, &clock));
        Ok(Connected {
            lane: Lane::start(self.connector.clone(), shared.clone(), id),
            reader: Arc::new(Reader::start(self.connector.clone(), shared)),
        })
    }
}

impl Tables for PostgresBeside {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn ask<T: Send + 'static>(&self, question: Question<T>) -> Result<Vec<T>, StoreError> {
        script::ask(&self.connected().await?.reader, question).await
    }

    async fn run<S: Script>(&self, script: S) -> Result<S::Output, StoreError> {
        self.connected().await?.lane.call(script).await
    }
}

/// A store opened for viewing. It reconnects after its connection breaks.
#[derive(Debug)]
pub(crate) struct PostgresOperations(Reader);

impl PostgresOperations {
    /// The store in the database at `url`.
    pub(crate) async fn open(url: &str, clock: &Arc<dyn Clock>) -> Result<Self, OpenError> {
        let options = PostgresOptions::default();
        let connector = Arc::new(Connector::of(Address::parse(url, &options)?)?);
        schema::check(&connector.connect().await?).await?;
        let shared = Arc::new(Shared::new(&options, clock));
        Ok(Self(Reader::start(connector, shared)))
    }
}

#[async_trait]
impl Operations for PostgresOperations {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        script::ask(&self.0, operators::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        script::ask(&self.0, keys::log(project)).await
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        script::overview(&self.0).await
    }
}
