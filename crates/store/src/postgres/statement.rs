//! SQL with its values. Statements are sent with the types of their values. Without a name a connection keeps no state that
//! a pooler in transaction mode could lose; a `Session` names those that are sent often.

use kinora_contract::UnixMs;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::fault::{Done, corrupt};

/// Begins a transaction whose statements each see what was committed before, whatever the server's default is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A statement to be sent.
pub(super) struct Statement {
    text: String,
    values: Vec<(Box<dyn ToSql + Send + Sync>, Type)>,
}

impl Statement {
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
        self.bind(crate::stored::int(value), Type::INT8)
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

    pub(super) fn sql(&self) -> &str {
        &self.text
    }

    /// Whether these are the types of its values.
    pub(super) fn has_types(&self, types: &[Type]) -> bool {
        self.values.iter().map(|(_, of)| of).eq(types)
    }

    /// Sends it without a name; the rows come when the server has done it. It is on its way when this is first polled, so
    /// that several that are polled in order are done in that order, without waiting for each other.
    pub(super) async fn run(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> = self
            .values
            .iter()
            .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
            .collect();
        client.query_typed(&self.text, &values).await
    }

    /// Has the server parse it, and name it on this connection until the name is dropped.
    pub(super) async fn prepare(
        &self,
        client: &Client,
    ) -> Result<tokio_postgres::Statement, Error> {
        let types: Vec<Type> = self.values.iter().map(|(_, of)| of.clone()).collect();
        client.prepare_typed(&self.text, &types).await
    }

    /// As [`Statement::run`], by its name.
    pub(super) async fn run_as(
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
pub(super) fn ask_present() -> Statement {
    Statement::new("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
}

/// The server's clock, from the first column of an answer.
pub(super) fn read_present(rows: &[Row]) -> Done<UnixMs> {
    let Some(row) = rows.first() else {
        return Err(corrupt("the server tells no time".to_owned()));
    };
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

/// Sends all of these at once, without names. They are done in order; after a failure
/// in a transaction the rest fails too.
pub(super) async fn run_all(
    client: &Client,
    statements: &[Statement],
) -> Result<Vec<Vec<Row>>, Error> {
    let sent = statements.iter().map(|statement| statement.run(client));
    let done = futures_util::future::join_all(sent).await;
    done.into_iter().collect()
}
