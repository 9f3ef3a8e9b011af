//! A store in PostgreSQL, read by cursors in one transaction, while writers continue.

use async_trait::async_trait;
use tokio_postgres::Client;

use super::connect::Connector;
use super::fault::Done;
use super::statement::Statement;
use super::{rows, schema, script};
use crate::sql::Dialect;
use crate::tables::copied::{COPIED_AT_ONCE, RowCheck};
use crate::{CopiedRow, CopiedTable, Export, OpenError, StoreError};

/// A store to read.
pub(crate) struct PostgresExport {
    client: Client,
    /// The table whose cursor is open.
    table: &'static str,
    check: RowCheck,
}

impl PostgresExport {
    /// The store of this connector at this moment.
    pub(super) async fn open(connector: &Connector) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        schema::check(&client).await?;
        Self::begin(client).await
    }

    /// The same for a store with an unfinished import.
    pub(super) async fn unfinished(connector: &Connector) -> Result<Self, OpenError> {
        Self::begin(connector.connect().await?).await
    }

    /// Takes the snapshot. None of the server's timeouts ends it.
    async fn begin(client: Client) -> Result<Self, OpenError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0; SELECT 1 FROM queue";
        let begun = client.batch_execute(begin).await;
        begun.map_err(schema::unavailable)?;
        Ok(Self {
            client,
            table: "",
            check: RowCheck::default(),
        })
    }

    async fn read(
        &mut self,
        table: &'static CopiedTable,
    ) -> Done<Vec<Result<CopiedRow, StoreError>>> {
        if self.table != table.name {
            let record = match table.is_tasks() {
                true => rows::columns("tasks") + ", ",
                false => String::new(),
            };
            let select = table.select(Dialect::Postgres, &record);
            let key = table.key(Dialect::Postgres);
            let declare = format!(
                "DECLARE {} NO SCROLL CURSOR FOR {select} ORDER BY {key}",
                table.name
            );
            self.client.batch_execute(&declare).await?;
            self.table = table.name;
        }
        let page = format!("FETCH {COPIED_AT_ONCE} FROM {}", table.name);
        let page = Statement::new(page).run(&self.client).await?;
        let copied = page.iter().map(|found| {
            let values = script::row(found)?.0;
            let own = values.len() - table.width();
            let values = values.into_iter().skip(own).map(Ok).collect();
            let read = |_: &CopiedRow| Ok(rows::read(found).map(drop)?);
            Ok(self.check.check(table, values, read))
        });
        copied.collect()
    }
}

#[async_trait]
impl Export for PostgresExport {
    async fn rows(
        &mut self,
        table: &'static CopiedTable,
    ) -> Result<Vec<Result<CopiedRow, StoreError>>, StoreError> {
        Ok(self.read(table).await?)
    }
}
