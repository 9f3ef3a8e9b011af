//! A store in PostgreSQL during an import. A table that exists only meanwhile keeps all other users
//! out, and a lock of this connection keeps out other imports.

use async_trait::async_trait;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::export::PostgresExport;
use super::sums;
use crate::postgres::batch::NewBinding;
use crate::postgres::commit::bind_keys;
use crate::postgres::connect::Connector;
use crate::postgres::durability::SYNCED;
use crate::postgres::fault::{Done, Fault, corrupt, is_refusal};
use crate::postgres::rows::Written;
use crate::postgres::statement::{BEGIN, Statement, run_all};
use crate::postgres::{schema, tallies};
use crate::stored::int;
use crate::tables::{keys, secrets, webhooks};
use crate::{
    ApiKey, Export, Import, MovedChore, MovedKey, MovedStore, MovedTask, OpenError, SecretKey,
    StoreError,
};

/// Lock for one import at a time into each schema.
const LOCK: i32 = 0x6b69_6e6f;
/// Contents that a store must not have.
const HELD: &str = "SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM api_keys) \
     OR EXISTS (SELECT 1 FROM secrets) OR EXISTS (SELECT 1 FROM webhooks)";
/// Live workers, by their announcements.
const SERVED: &str = "SELECT EXISTS (SELECT 1 FROM workers WHERE until_ms > \
     (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// A store during an import.
pub(crate) struct PostgresImport {
    connector: Connector,
    client: Client,
    stored: u64,
}

impl PostgresImport {
    /// Begins to fill the store of this connector with the export of this name, or continues.
    pub(in crate::postgres) async fn begin(
        connector: Connector,
        export: &str,
    ) -> Result<Self, OpenError> {
        let client = connector.connect().await?;
        schema::check_version(&client).await?;
        let lock = format!("SELECT pg_try_advisory_lock({LOCK}, hashtext(current_schema()))");
        if !is(&client, &lock).await? {
            return Err(OpenError::Unavailable(
                "another import into it is in progress".into(),
            ));
        }
        if is(&client, SERVED).await? {
            return Err(OpenError::Served);
        }
        match schema::unfinished_import(&client).await? {
            Some(found) if found == export => {}
            Some(_) => return Err(OpenError::OtherImport),
            None => mark(&client, export).await?,
        }
        let stored = Statement::new("SELECT coalesce(max(seq), 0) FROM tasks");
        let stored = stored.run(&client).await.map_err(schema::unavailable)?;
        let stored = stored.first().map(|row| row.try_get::<_, i64>(0));
        let stored = stored.transpose().map_err(schema::unavailable)?;
        Ok(Self {
            connector,
            client,
            stored: stored.unwrap_or(0).unsigned_abs(),
        })
    }

    /// Runs all of these or none.
    async fn within(&self, statements: Vec<Statement>) -> Done<()> {
        let mut all = vec![
            Statement::new(BEGIN),
            Statement::new(format!("SELECT {SYNCED}")),
        ];
        all.extend(statements);
        all.push(Statement::new("COMMIT"));
        let done = run_all(&self.client, &all).await;
        if done.as_ref().is_err_and(is_refusal) && !self.client.is_closed() {
            Statement::new("ROLLBACK").run(&self.client).await?;
        }
        done?;
        Ok(())
    }
}

async fn is(client: &Client, question: &str) -> Result<bool, OpenError> {
    let found = Statement::new(question).run(client).await;
    let found = found.map_err(schema::unavailable)?;
    let answer = found.first().map(|row| row.try_get(0)).transpose();
    Ok(answer.map_err(schema::unavailable)?.unwrap_or(false))
}

/// Marks an empty store as being filled. Nothing can be added between the check and the mark.
async fn mark(client: &Client, export: &str) -> Result<(), OpenError> {
    let begin = format!(
        "{BEGIN}; LOCK TABLE tasks, api_keys, secrets, webhooks IN SHARE ROW EXCLUSIVE MODE; \
         CREATE TABLE unfinished_import (export text NOT NULL)"
    );
    client
        .batch_execute(&begin)
        .await
        .map_err(schema::unavailable)?;
    if is(client, HELD).await? {
        client
            .batch_execute("ROLLBACK")
            .await
            .map_err(schema::unavailable)?;
        return Err(OpenError::NotEmpty);
    }
    let note = Statement::new("INSERT INTO unfinished_import VALUES ($1)").text(export);
    let noted = run_all(client, &[note, Statement::new("COMMIT")]).await;
    noted.map(|_| ()).map_err(schema::unavailable)
}

/// The contents of the store besides tasks, keys and chores.
fn write_store(store: &MovedStore) -> Vec<Statement> {
    let remove = [
        "DELETE FROM gaps",
        "DELETE FROM secrets",
        "DELETE FROM api_keys",
        "DELETE FROM tallies",
        "DELETE FROM key_log",
        "DELETE FROM chores WHERE kind <> 'look_for_orphans'",
    ];
    let mut statements: Vec<Statement> = remove.into_iter().map(Statement::new).collect();
    let queue = Statement::new("UPDATE queue SET identity = $1, token = $2");
    statements.push(queue.int(store.identity).int(store.token));
    let gaps = "INSERT INTO gaps (after_ms, before_ms, current) \
                SELECT after_ms, before_ms, false FROM unnest($1, $2) AS g(after_ms, before_ms)";
    let begin = store.gaps.iter().map(|gap| int(gap.after_ms)).collect();
    let end = store.gaps.iter().map(|gap| int(gap.before_ms)).collect();
    statements.push(Statement::new(gaps).ints(begin).ints(end));
    statements.extend(tallies::add(&store.tallies));
    statements.extend(
        store
            .key_log
            .iter()
            .map(|entry| keys::log_entry(entry).into()),
    );
    let key = store.signing_key.map(|key| SecretKey(key.0));
    statements.extend(key.map(|key| secrets::insert(&key).into()));
    statements
}

fn write_chores(chores: &[MovedChore]) -> Vec<Statement> {
    let add = |one: &MovedChore| {
        let ticket = one.ticket.clone().map(String::into_bytes);
        Statement::new("INSERT INTO chores (kind, subject, model, ticket) VALUES ($1, $2, $3, $4)")
            .text(one.kind.clone())
            .text(one.subject.clone())
            .bind(one.model.clone(), Type::TEXT)
            .bind(ticket, Type::BYTEA)
    };
    chores.iter().map(add).collect()
}

fn write_keys(moved: &[MovedKey]) -> Done<Vec<Statement>> {
    let add = |key: &MovedKey| Ok(keys::insert(&ApiKey::try_from(key).map_err(corrupt)?).into());
    moved.iter().map(add).collect()
}

fn write_tasks(tasks: &[MovedTask]) -> Done<Vec<Statement>> {
    let (mut written, mut bindings) = (Written::default(), Vec::new());
    for task in tasks {
        written.add_moved(task)?;
        bindings.extend(task.idempotency.iter().map(|one| NewBinding {
            project: task.project.clone(),
            key: one.key.clone(),
            fingerprint: one.fingerprint.0.to_vec(),
            expires_at_ms: one.expires_at_ms,
            task: task.id,
        }));
    }
    Ok(vec![written.insert(), bind_keys(bindings)])
}

#[async_trait]
impl Import for PostgresImport {
    fn stored_up_to(&self) -> u64 {
        self.stored
    }

    async fn put_tasks(&mut self, tasks: &[MovedTask]) -> Result<(), StoreError> {
        self.within(write_tasks(tasks)?).await?;
        self.stored = tasks.last().map_or(self.stored, |task| task.seq);
        Ok(())
    }

    async fn put_rest(
        &mut self,
        store: &MovedStore,
        keys: &[MovedKey],
        chores: &[MovedChore],
    ) -> Result<(), StoreError> {
        let mut statements = sums::write(&self.client, store.newest_ms).await?;
        statements.extend(write_store(store));
        statements.extend(write_keys(keys)?);
        statements.extend(write_chores(chores));
        statements.extend(webhooks::replace_all(store).into_iter().map(Into::into));
        Ok(self.within(statements).await?)
    }

    async fn read_back(&mut self) -> Result<Box<dyn Export>, OpenError> {
        Ok(Box::new(PostgresExport::unfinished(&self.connector).await?))
    }

    async fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let unmark = || Statement::new("DROP TABLE IF EXISTS unfinished_import");
        match self.within(vec![unmark()]).await {
            // The mark may be gone. Whoever repeated the import would be told that the store is not empty.
            Err(Fault::Sql(error)) if !is_refusal(&error) => {
                let client = self.connector.connect().await?;
                unmark().run(&client).await.map_err(Fault::from)?;
            }
            done => done?,
        }
        Ok(())
    }
}
