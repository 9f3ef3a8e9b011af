//! A store in PostgreSQL, read by a cursor in one transaction, while writers continue.

use std::collections::HashMap;

use async_trait::async_trait;
use tokio_postgres::{Client, Row};

use crate::postgres::connect::Connector;
use crate::postgres::fault::{Done, Fault, corrupt};
use crate::postgres::rows::{self, moved};
use crate::postgres::statement::Statement;
use crate::postgres::{opening, schema, script};
use crate::tables::{keys, secrets, tallies, webhooks};
use crate::{
    Export, Hex, MOVED_AT_ONCE, MovedBinding, MovedChore, MovedKey, MovedStore, MovedTask,
    OpenError, StoreError, TallyRequest,
};

/// A store to read.
pub(crate) struct PostgresExport {
    client: Client,
}

impl PostgresExport {
    /// The store of this connector at this moment.
    pub(in crate::postgres) async fn open(connector: &Connector) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        schema::check(&client).await?;
        begin(&client).await.map_err(schema::unavailable)?;
        Ok(Self { client })
    }

    /// The same for a store with an unfinished import.
    pub(super) async fn unfinished(connector: &Connector) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        begin(&client).await.map_err(schema::unavailable)?;
        Ok(Self { client })
    }

    async fn run(&self, text: impl Into<String>) -> Done<Vec<Row>> {
        Ok(Statement::new(text).run(&self.client).await?)
    }

    async fn read_store(&self) -> Done<MovedStore> {
        let ask =
            "SELECT identity, greatest(token, (SELECT max(lease_token) FROM tasks)) FROM queue";
        let found = self.run(ask).await?;
        let missing = || corrupt("the row of the queue is missing".to_owned());
        let queue = found.first().ok_or_else(missing)?;
        let gaps = "SELECT after_ms, before_ms FROM gaps WHERE before_ms < 9223372036854775807 ORDER BY after_ms";
        let gaps = self.run(gaps).await?;
        let key = script::ask_of(&self.client, secrets::signing_key())
            .await?
            .pop();
        let tallies = tallies::sums(&TallyRequest::default());
        let tallies = script::ask_of(&self.client, tallies).await?;
        let mut key_log = script::ask_of(&self.client, keys::log(None)).await?;
        key_log.reverse();
        let webhooks = script::ask_of(&self.client, webhooks::all()).await?;
        Ok(MovedStore {
            identity: queue.try_get::<_, i64>(0)?.unsigned_abs(),
            token: queue.try_get::<_, i64>(1)?.unsigned_abs(),
            newest_ms: opening::newest_ms(&self.client).await?,
            gaps: gaps.iter().map(opening::read_gap).collect::<Done<_>>()?,
            signing_key: key.map(|key| Hex(key.0)),
            tallies,
            key_log,
            webhooks: webhooks.into_iter().map(Into::into).collect(),
            deliveries: script::ask_of(&self.client, webhooks::unsettled()).await?,
        })
    }

    async fn read_tasks(&self) -> Done<Vec<Result<MovedTask, StoreError>>> {
        let page = self
            .run(format!("FETCH {MOVED_AT_ONCE} FROM moved"))
            .await?;
        let mut bindings = self.bindings(&page).await?;
        let mut tasks = Vec::with_capacity(page.len());
        for row in &page {
            let task = moved::read(row).map(|task| MovedTask {
                idempotency: bindings.remove(&task.id.to_string()).unwrap_or_default(),
                ..task
            });
            tasks.push(match task {
                Err(Fault::Sql(error)) => return Err(error.into()),
                task => task.map_err(StoreError::from),
            });
        }
        Ok(tasks)
    }

    /// Idempotency keys of the tasks in these rows.
    async fn bindings(&self, page: &[Row]) -> Done<HashMap<String, Vec<MovedBinding>>> {
        let ids: Vec<String> = page
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        let ask = "SELECT task, key, fingerprint, expires_at_ms FROM idempotency WHERE task = ANY($1) ORDER BY key";
        let ask = Statement::new(ask).texts(ids);
        let mut found: HashMap<String, Vec<MovedBinding>> = HashMap::new();
        for row in &ask.run(&self.client).await? {
            let fingerprint: Vec<u8> = row.try_get(2)?;
            let damaged = |_| corrupt("the fingerprint of a request is damaged".to_owned());
            let binding = MovedBinding {
                key: row.try_get(1)?,
                fingerprint: Hex(fingerprint.try_into().map_err(damaged)?),
                expires_at_ms: row.try_get::<_, i64>(3)?.unsigned_abs(),
            };
            found.entry(row.try_get(0)?).or_default().push(binding);
        }
        Ok(found)
    }

    async fn read_keys(&self) -> Done<Vec<MovedKey>> {
        let newest_first = script::ask_of(&self.client, keys::all("number")).await?;
        Ok(newest_first.into_iter().rev().map(Into::into).collect())
    }

    async fn read_chores(&self) -> Done<Vec<MovedChore>> {
        let ask = "SELECT kind, subject, model, ticket FROM chores WHERE kind <> 'look_for_orphans' ORDER BY number";
        let found = self.run(ask).await?;
        let chores = found.iter().map(|row| {
            let ticket: Option<Vec<u8>> = row.try_get(3)?;
            Ok(MovedChore {
                kind: row.try_get(0)?,
                subject: row.try_get(1)?,
                model: row.try_get(2)?,
                ticket: ticket.map(|ticket| String::from_utf8_lossy(&ticket).into_owned()),
            })
        });
        chores.collect()
    }
}

/// Takes the snapshot. None of the server's timeouts ends it.
async fn begin(client: &Client) -> Result<(), tokio_postgres::Error> {
    let columns = rows::columns("t");
    client
        .batch_execute(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
             SET LOCAL idle_in_transaction_session_timeout = 0; \
             DECLARE moved NO SCROLL CURSOR FOR SELECT {columns} FROM tasks t ORDER BY seq"
        ))
        .await
}

#[async_trait]
impl Export for PostgresExport {
    async fn store(&mut self) -> Result<MovedStore, StoreError> {
        Ok(self.read_store().await?)
    }

    async fn tasks(&mut self) -> Result<Vec<Result<MovedTask, StoreError>>, StoreError> {
        Ok(self.read_tasks().await?)
    }

    async fn keys(&mut self) -> Result<Vec<MovedKey>, StoreError> {
        Ok(self.read_keys().await?)
    }

    async fn chores(&mut self) -> Result<Vec<MovedChore>, StoreError> {
        Ok(self.read_chores().await?)
    }
}
