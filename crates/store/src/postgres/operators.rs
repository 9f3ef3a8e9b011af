//! Views for operators, beside the serving processes.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use super::address::Address;
use super::connect::Connector;
use super::reads::Reader;
use super::shared::Shared;
use super::{overview, schema, script};
use crate::tables::{keys, tallies};
use crate::{
    KeyAction, OpenError, Operations, Overview, PostgresOptions, StoreError, TallyRequest, TallyRow,
};

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
        script::ask(&self.0, tallies::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        script::ask(&self.0, keys::log(project)).await
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        overview::read(&self.0, &self.0.present().await?).await
    }
}
