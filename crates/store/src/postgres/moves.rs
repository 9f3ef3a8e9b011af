//! Export and import. An export reads a store by cursors in one transaction while writers continue. An
//! import marks its store by a table that exists only meanwhile, which keeps all other programs out;
//! an advisory lock of its connection keeps out other imports.

use async_trait::async_trait;
use kinora_contract::VideoSpec;
use tokio_postgres::Client;

use super::connect::ServerConnector;
use super::fault::{PostgresFault, PostgresResult, is_refusal};
use super::rows::{CLAIMABLE, UNFETCHED};
use super::session::{BEGIN, SYNCED, SqlStatement, run_all};
use super::{rows, schema, script};
use crate::sql::to_sql_int;
use crate::sql::{SqlDialect, SqlValue, UnreadableValue};
use crate::tables::copied::{COPIED_AT_ONCE, HAS_CONTENTS, RowCheck};
use crate::{CopiedRow, CopiedTable, OpenError, StoreError, StoreExport, StoreImport};

/// A store to read.
pub(crate) struct PostgresExport {
    client: Client,
    /// The table whose cursor is open.
    table: &'static str,
    check: RowCheck,
}

impl PostgresExport {
    /// The store of this connector at this moment.
    pub(super) async fn open(connector: &ServerConnector) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        schema::check(&client).await?;
        Self::begin(client).await
    }

    /// Opens a store that may have an unfinished import.
    async fn unfinished(connector: &ServerConnector) -> Result<Self, OpenError> {
        Self::begin(connector.connect().await?).await
    }

    /// Takes the snapshot, and switches off the server's timeouts for it.
    async fn begin(client: Client) -> Result<Self, OpenError> {
        // The snapshot is taken by the first query, not by BEGIN: hence the SELECT.
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
    ) -> PostgresResult<Vec<Result<CopiedRow, StoreError>>> {
        if self.table != table.name {
            // Tasks are also read as records, to find damage now and not after the move.
            let record = if table.is_tasks() {
                rows::columns("tasks") + ", "
            } else {
                String::new()
            };
            let select = table.select(SqlDialect::Postgres, &record);
            let key = table.key(SqlDialect::Postgres);
            let declare = format!(
                "DECLARE {} NO SCROLL CURSOR FOR {select} ORDER BY {key}",
                table.name
            );
            self.client.batch_execute(&declare).await?;
            self.table = table.name;
        }
        let page = format!("FETCH {COPIED_AT_ONCE} FROM {}", table.name);
        let page = SqlStatement::new(page).run(&self.client).await?;
        let copied = page.iter().map(|found| {
            let values = script::row(found)?.0;
            let own = values.len() - table.width();
            let values = values.into_iter().skip(own).map(Ok).collect();
            Ok(self
                .check
                .check(table, values, |_| Ok(rows::read(found).map(drop)?)))
        });
        copied.collect()
    }
}

#[async_trait]
impl StoreExport for PostgresExport {
    async fn rows(
        &mut self,
        table: &'static CopiedTable,
    ) -> Result<Vec<Result<CopiedRow, StoreError>>, StoreError> {
        Ok(self.read(table).await?)
    }
}

/// The cost of a task with a spec that this program cannot read: the minimum.
const COST_UNKNOWN: u64 = 1;
/// Lock for one import at a time into each schema.
const LOCK: i32 = 0x6b69_6e6f;
/// Live workers, by their announcements.
const SERVED: &str = "SELECT EXISTS (SELECT 1 FROM workers WHERE until_ms > \
     (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// A store during an import.
pub(crate) struct PostgresImport {
    connector: ServerConnector,
    client: Client,
}

impl PostgresImport {
    /// Begins to fill the store of this connector with the export of this name, or continues.
    pub(super) async fn begin(connector: ServerConnector, export: &str) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        schema::check_version(&client).await?;
        let lock = format!("SELECT pg_try_advisory_lock({LOCK}, hashtext(current_schema()))");
        if !query_bool(&client, &lock).await? {
            return Err(OpenError::Unavailable(
                "another import into it is in progress".into(),
            ));
        }
        if query_bool(&client, SERVED).await? {
            return Err(OpenError::Served);
        }
        match schema::unfinished_import(&client).await? {
            Some(found) if found == export => {}
            Some(_) => return Err(OpenError::OtherImport),
            None => mark_import(&client, export).await?,
        }
        Ok(Self { connector, client })
    }

    /// Runs all of these statements in one transaction.
    async fn run_transaction(&self, statements: Vec<SqlStatement>) -> PostgresResult<()> {
        let mut all = vec![
            SqlStatement::new(BEGIN),
            SqlStatement::new(format!("SELECT {SYNCED}")),
        ];
        all.extend(statements);
        all.push(SqlStatement::new("COMMIT"));
        let done = run_all(&self.client, &all).await;
        if done.as_ref().is_err_and(is_refusal) && !self.client.is_closed() {
            SqlStatement::new("ROLLBACK").run(&self.client).await?;
        }
        done?;
        Ok(())
    }
}

async fn query_bool(client: &Client, question: &str) -> Result<bool, OpenError> {
    let found = SqlStatement::new(question).run(client).await;
    let found = found.map_err(schema::unavailable)?;
    let answer = found.first().map(|row| row.try_get(0)).transpose();
    Ok(answer.map_err(schema::unavailable)?.unwrap_or(false))
}

/// Marks an empty store as being filled. Nothing can be added between the check and the mark.
async fn mark_import(client: &Client, export: &str) -> Result<(), OpenError> {
    let begin = format!(
        "{BEGIN}; LOCK TABLE tasks, api_keys, secrets, webhooks, uploads IN SHARE ROW EXCLUSIVE MODE; \
         CREATE TABLE unfinished_import (export text NOT NULL)"
    );
    client
        .batch_execute(&begin)
        .await
        .map_err(schema::unavailable)?;
    if query_bool(client, HAS_CONTENTS).await? {
        client
            .batch_execute("ROLLBACK")
            .await
            .map_err(schema::unavailable)?;
        return Err(OpenError::NotEmpty);
    }
    let note = SqlStatement::new("INSERT INTO unfinished_import VALUES ($1)").text(export);
    let noted = run_all(client, &[note, SqlStatement::new("COMMIT")]).await;
    noted.map(|_| ()).map_err(schema::unavailable)
}

/// The columns of a task that only this database has: model, place in the queue and cost.
fn own_columns(row: &CopiedRow) -> Result<Vec<(&'static str, SqlValue)>, UnreadableValue> {
    let spec = row.spec()?;
    let cost = spec.as_ref().map_or(COST_UNKNOWN, VideoSpec::cost);
    let model = match spec {
        Some(spec) => spec.model,
        None => {
            let spec: serde_json::Value =
                serde_json::from_str(&row.task_column::<String>("spec")?)?;
            spec["model"].as_str().unwrap_or_default().to_owned()
        }
    };
    let place = match row.task_column::<u32>("references_ready")? {
        _ if row.phase() != "waiting" => None,
        0 => Some(UNFETCHED),
        _ => Some(CLAIMABLE),
    };
    Ok(vec![
        ("model", model.into()),
        ("place", SqlValue::Int(place.map(i64::from))),
        ("cost", cost.into()),
        ("fetch_tries", 0.into()),
    ])
}

/// The sums of projects, and the place of the next task.
const SUMS: [&str; 4] = [
    "DELETE FROM projects",
    "INSERT INTO projects (name, bytes, tasks, waiting, unfinished) \
     SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired'), \
     count(*) FILTER (WHERE phase = 'waiting'), count(*) FILTER (WHERE phase IN ('waiting', 'running')) \
     FROM tasks GROUP BY project",
    "INSERT INTO projects AS p (name, bytes) SELECT project, sum(bytes) \
     FROM (SELECT DISTINCT project, blob_key, bytes FROM uploads) u GROUP BY project \
     ON CONFLICT (name) DO UPDATE SET bytes = p.bytes + excluded.bytes",
    "SELECT setval('task_seq', coalesce(max(seq), 0) + 1) FROM tasks",
];

/// The statement that records the last task of each project.
async fn newest_statement(client: &Client) -> PostgresResult<SqlStatement> {
    let last =
        "SELECT DISTINCT ON (project) project, seq, id FROM tasks ORDER BY project, seq DESC";
    let (mut names, mut times, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for row in &SqlStatement::new(last).run(client).await? {
        let id = rows::parse_id(row.try_get(2)?)?;
        names.push(row.try_get::<_, String>(0)?);
        places.push(row.try_get::<_, i64>(1)?);
        times.push(to_sql_int(id.created_at_ms()));
    }
    let update = "UPDATE projects p SET newest_ms = n.newest_ms, newest_seq = n.newest_seq \
                  FROM unnest($1, $2, $3) AS n(name, newest_ms, newest_seq) WHERE p.name = n.name";
    Ok(SqlStatement::new(update)
        .texts(names)
        .ints(times)
        .ints(places))
}

#[async_trait]
impl StoreImport for PostgresImport {
    async fn stored(&mut self, table: &CopiedTable) -> Result<u64, StoreError> {
        let Some(count) = table.count() else {
            return Ok(0);
        };
        let found = SqlStatement::new(count).run(&self.client).await;
        let found = found.map_err(PostgresFault::from)?;
        let count = script::rows(&found)?.first().map(|row| row.get(0));
        Ok(count.transpose()?.unwrap_or(0))
    }

    async fn put(&mut self, table: &CopiedTable, rows: &[CopiedRow]) -> Result<(), StoreError> {
        let statements = rows.iter().map(|row| {
            let own = if table.is_tasks() {
                own_columns(row)?
            } else {
                Vec::new()
            };
            Ok(table.write(SqlDialect::Postgres, &row.0, &own).into())
        });
        let statements = statements.collect::<Result<_, UnreadableValue>>()?;
        Ok(self.run_transaction(statements).await?)
    }

    async fn put_sums(&mut self) -> Result<(), StoreError> {
        let mut statements: Vec<SqlStatement> = SUMS.into_iter().map(SqlStatement::new).collect();
        statements.push(newest_statement(&self.client).await?);
        Ok(self.run_transaction(statements).await?)
    }

    async fn read_back(&mut self) -> Result<Box<dyn StoreExport>, OpenError> {
        Ok(Box::new(PostgresExport::unfinished(&self.connector).await?))
    }

    async fn finish(self: Box<Self>) -> Result<(), StoreError> {
        const UNMARK: &str = "DROP TABLE IF EXISTS unfinished_import";
        match self.run_transaction(vec![SqlStatement::new(UNMARK)]).await {
            // The answer was lost, so the mark may be gone. Reporting a failure would be wrong then: a
            // repeated import would find a store that is complete and therefore not empty.
            Err(PostgresFault::Sql(error)) if !is_refusal(&error) => {
                let client = self.connector.connect().await?;
                let unmark = SqlStatement::new(UNMARK);
                unmark.run(&client).await.map_err(PostgresFault::from)?;
            }
            done => done?,
        }
        Ok(())
    }
}
