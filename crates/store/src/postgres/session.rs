//! SQL statements with their values, and the connections that send them. A connection that leads to
//! the server itself names its frequent statements, which the server then parses and plans once. A
//! pooler in transaction mode gives each transaction another server connection, on which the same name
//! may stand for another statement, so connections through one send everything unnamed.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{join_all, join4};
use kinora_contract::UnixMs;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::fault::{PostgresResult, corrupt};

/// The driver's handle of a named statement at the server.
type NamedStatement = tokio_postgres::Statement;

/// A connection of a lane or a reader.
pub(super) struct ServerSession {
    client: Client,
    /// `None`: statements have no names here.
    names: Option<Mutex<StatementNames<NamedStatement>>>,
}

impl Deref for ServerSession {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl ServerSession {
    pub(super) fn new(client: Client, has_names: bool) -> Self {
        Self {
            client,
            names: has_names.then(Mutex::default),
        }
    }

    /// As [`SqlStatement::run`].
    pub(super) async fn run(&self, statement: &SqlStatement) -> Result<Vec<Row>, Error> {
        let name = match self.statement_use(statement) {
            StatementUse::Unnamed => return statement.run(self).await,
            StatementUse::Named(name) => name,
            StatementUse::New => self.prepare_name(statement).await?,
        };
        statement.run_as(self, &name).await
    }

    /// As [`Self::run`], outside a transaction. A connection through a pooler keeps no setting of ours, so the
    /// query brings `jit = off` along in a transaction of its own. Otherwise the server may overestimate a
    /// query over several tables, and spend a second compiling what then runs in a millisecond.
    pub(super) async fn read(&self, statement: &SqlStatement) -> Result<Vec<Row>, Error> {
        if self.names.is_some() {
            return self.run(statement).await;
        }
        let [begin, setting, end] = [BEGIN, "SET LOCAL jit = off", "COMMIT"].map(SqlStatement::new);
        // A statement is sent when its future is first polled, and join4 polls all four in one go. So they
        // leave as one pipeline, and no statement of another caller gets into this transaction.
        let sent = join4(
            begin.run(self),
            setting.run(self),
            statement.run(self),
            end.run(self),
        );
        sent.await.2
    }

    /// Sends all statements at once, and returns the rows of each. They run in order; after a failure in a
    /// transaction the rest fails too.
    pub(super) async fn run_all(
        &self,
        statements: &[SqlStatement],
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut uses: Vec<StatementUse<NamedStatement>> = statements
            .iter()
            .map(|one| self.statement_use(one))
            .collect();
        // Names come first, in a round trip of their own. Preparing in the middle would delay later
        // statements until its answer, and other callers' statements could get in between.
        let new = statements.iter().zip(&mut uses);
        let new = new.filter(|(_, of)| matches!(of, StatementUse::New));
        let named = new.map(async |(statement, of)| {
            *of = StatementUse::Named(self.prepare_name(statement).await?);
            Ok(())
        });
        join_all(named)
            .await
            .into_iter()
            .collect::<Result<(), Error>>()?;
        let sent = statements
            .iter()
            .zip(&uses)
            .map(async |(statement, of)| match of {
                StatementUse::Named(name) => statement.run_as(self, name).await,
                StatementUse::New | StatementUse::Unnamed => statement.run(self).await,
            });
        join_all(sent).await.into_iter().collect()
    }

    fn statement_use(&self, statement: &SqlStatement) -> StatementUse<NamedStatement> {
        let Some(names) = &self.names else {
            return StatementUse::Unnamed;
        };
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.count_use(statement.sql()) {
            StatementUse::Named(name) if !statement.has_types(name.params()) => {
                StatementUse::Unnamed
            }
            found => found,
        }
    }

    async fn prepare_name(&self, statement: &SqlStatement) -> Result<NamedStatement, Error> {
        let name = statement.prepare(self).await?;
        if let Some(names) = &self.names {
            let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
            names.store(statement.sql(), name.clone());
        }
        Ok(name)
    }
}

/// Number of the use at which a statement gets its name: naming costs a round trip, in vain for a statement
/// that is sent once.
const USES_MIN: u32 = 2;
/// Number of uses after which a statement is planned again, since the tables may have grown meanwhile.
const USES_MAX: u32 = 1_000;
/// Maximum number of texts that a connection remembers. A forgotten one is planned again.
const TEXTS_MAX: usize = 128;

/// How a statement is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StatementUse<N> {
    Unnamed,
    /// Without a name so far; it gets one now.
    New,
    Named(N),
}

/// The statements sent on a connection. Dropping a name frees it at the server.
#[derive(Debug)]
struct StatementNames<N>(HashMap<String, KnownText<N>>);

#[derive(Debug)]
struct KnownText<N> {
    uses: u32,
    name: Option<N>,
}

impl<N> Default for StatementNames<N> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<N: Clone> StatementNames<N> {
    /// Counts a use of this text; returns how to send it.
    fn count_use(&mut self, sql: &str) -> StatementUse<N> {
        let Some(known) = self.0.get_mut(sql) else {
            self.evict();
            let first = KnownText {
                uses: 1,
                name: None,
            };
            self.0.insert(sql.to_owned(), first);
            return StatementUse::Unnamed;
        };
        known.uses += 1;
        if known.uses > USES_MAX {
            *known = KnownText {
                uses: USES_MIN,
                name: None,
            };
        }
        known
            .name
            .clone()
            .map_or(StatementUse::New, StatementUse::Named)
    }

    fn store(&mut self, sql: &str, name: N) {
        if let Some(known) = self.0.get_mut(sql) {
            known.name = Some(name);
        }
    }

    /// Forgets texts without a name first, then all.
    fn evict(&mut self) {
        if self.0.len() >= TEXTS_MAX {
            self.0.retain(|_, known| known.name.is_some());
        }
        if self.0.len() >= TEXTS_MAX {
            self.0.clear();
        }
    }
}

/// Threads of the runtime. They mostly wait for the network.
const THREADS: usize = 2;

/// The runtime of all connections. It is never shut down: lanes end by themselves after their queued jobs,
/// once their store is dropped.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime, started at the first call.
pub(super) fn runtime() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*runtime {
        return Ok(running.handle().clone());
    }
    let started = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("postgres")
        .enable_all()
        .build()?;
    let handle = started.handle().clone();
    *runtime = Some(started);
    Ok(handle)
}

/// Statements to send together. Each has a place, at which its answer is found.
#[derive(Default)]
pub(super) struct QueryPipeline(Vec<SqlStatement>);

impl QueryPipeline {
    pub(super) fn add(&mut self, statement: SqlStatement) -> usize {
        self.0.push(statement);
        self.0.len() - 1
    }

    /// Adds a statement if it is needed: each costs the server some work.
    pub(super) fn add_if(
        &mut self,
        is_needed: bool,
        statement: impl FnOnce() -> SqlStatement,
    ) -> Option<usize> {
        is_needed.then(|| self.add(statement()))
    }

    pub(super) async fn send(self, session: &ServerSession) -> Result<PipelineAnswers, Error> {
        session.run_all(&self.0).await.map(PipelineAnswers)
    }
}

/// The rows that statements returned.
pub(super) struct PipelineAnswers(Vec<Vec<Row>>);

impl PipelineAnswers {
    /// The rows of one statement; none of one that was not sent.
    pub(super) fn take(&mut self, place: Option<usize>) -> Vec<Row> {
        let answer = place.and_then(|place| self.0.get_mut(place));
        answer.map(std::mem::take).unwrap_or_default()
    }
}

/// Begins a transaction in which each statement sees all earlier commits, whatever the server's default is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Makes the commit of a transaction wait for its sync, even if the default of the role or the database is
/// `off`. Other defaults (`remote_apply`, `local`) stay: an operator has chosen them.
pub(super) const SYNCED: &str = "set_config('synchronous_commit', \
                                 replace(current_setting('synchronous_commit'), 'off', 'on'), true)";

/// A statement to be sent.
pub(super) struct SqlStatement {
    text: String,
    values: Vec<(Box<dyn ToSql + Send + Sync>, Type)>,
}

impl SqlStatement {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            values: Vec::new(),
        }
    }

    /// Sets the value of the next parameter.
    pub(super) fn bind(mut self, value: impl ToSql + Send + Sync + 'static, of: Type) -> Self {
        self.values.push((Box::new(value), of));
        self
    }

    pub(super) fn int(self, value: u64) -> Self {
        self.bind(crate::sql::to_sql_int(value), Type::INT8)
    }

    pub(super) fn ints(self, values: Vec<i64>) -> Self {
        self.bind(values, Type::INT8_ARRAY)
    }

    pub(super) fn text(self, value: impl Into<String>) -> Self {
        self.bind(value.into(), Type::TEXT)
    }

    pub(super) fn texts(self, values: Vec<String>) -> Self {
        self.bind(values, Type::TEXT_ARRAY)
    }

    fn sql(&self) -> &str {
        &self.text
    }

    /// Whether these are the types of its values.
    fn has_types(&self, types: &[Type]) -> bool {
        self.values.iter().map(|(_, of)| of).eq(types)
    }

    /// Sends the statement without a name, and returns its rows. It is sent when the future is first polled,
    /// so several futures that are polled in order form a pipeline: they run in that order, without waiting
    /// for each other's answers.
    pub(super) async fn run(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> = self
            .values
            .iter()
            .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
            .collect();
        client.query_typed(&self.text, &values).await
    }

    /// Lets the server parse the statement under a name, valid on this connection until it is dropped.
    async fn prepare(&self, client: &Client) -> Result<tokio_postgres::Statement, Error> {
        let types: Vec<Type> = self.values.iter().map(|(_, of)| of.clone()).collect();
        client.prepare_typed(&self.text, &types).await
    }

    /// As [`SqlStatement::run`], by name.
    async fn run_as(
        &self,
        client: &Client,
        name: &tokio_postgres::Statement,
    ) -> Result<Vec<Row>, Error> {
        let values = self.values.iter();
        let values: Vec<_> = values
            .map(|(value, _)| &**value as &(dyn ToSql + Sync))
            .collect();
        client.query(name, &values).await
    }
}

/// Asks for the server's clock.
pub(super) fn select_time() -> SqlStatement {
    SqlStatement::new("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
}

/// The server's clock, from the first column of an answer.
pub(super) fn read_time(rows: &[Row]) -> PostgresResult<UnixMs> {
    let Some(row) = rows.first() else {
        return Err(corrupt("the server tells no time".to_owned()));
    };
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

/// Sends all statements at once, without names. They run in order; after a failure in a transaction the rest
/// fails too.
pub(super) async fn run_all(
    client: &Client,
    statements: &[SqlStatement],
) -> Result<Vec<Vec<Row>>, Error> {
    let sent = statements.iter().map(|statement| statement.run(client));
    let done = futures_util::future::join_all(sent).await;
    done.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_name_from_its_second_use_on_and_a_new_one_now_and_then() {
        let mut names = StatementNames::default();
        assert_eq!(names.count_use("one"), StatementUse::Unnamed);
        let mut given = 0;
        for _ in 1..2 * USES_MAX {
            if names.count_use("one") == StatementUse::New {
                given += 1;
                names.store("one", given);
            } else {
                assert_eq!(names.count_use("one"), StatementUse::Named(given));
            }
        }
        assert!((2..=6).contains(&given), "{given}");
    }

    #[test]
    fn p08_a_connection_knows_a_bounded_number_of_texts() {
        let mut names = StatementNames::default();
        for number in 0..10_000 {
            let sql = number.to_string();
            names.count_use(&sql);
            if number % 3 == 0 && names.count_use(&sql) == StatementUse::New {
                names.store(&sql, number);
            }
            assert!(names.0.len() <= TEXTS_MAX);
        }
        // Statements used once do not evict statements used often.
        let mut names = StatementNames::default();
        names.count_use("often");
        names.count_use("often");
        names.store("often", 1);
        (0..1_000).for_each(|number| _ = names.count_use(&number.to_string()));
        assert_eq!(names.count_use("often"), StatementUse::Named(1));
    }
}
