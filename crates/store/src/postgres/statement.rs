//! SQL with its values. Statements are sent with the types of their values and without a name: a
//! connection keeps no state that a pooler in transaction mode could lose, and each statement is
//! planned for the table as it is now.

use kinora_contract::Reading;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

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

    /// Sends it; the rows arrive when the server is done. The first poll sends it, so several
    /// statements polled in order run in that order, without waiting for each other.
    pub(super) async fn run(self, client: &Client) -> Result<Vec<Row>, Error> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> = self
            .values
            .iter()
            .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
            .collect();
        client.query_typed(&self.text, &values).await
    }
}

/// Asks for the server's clock.
pub(super) fn ask_present() -> Statement {
    Statement::new("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
}

/// The server's clock, for both times of the store.
pub(super) fn read_present(rows: &[Row]) -> Result<Reading, Error> {
    let now = rows
        .first()
        .map(|row| row.try_get::<_, i64>(0))
        .transpose()?;
    let wall_ms = now.unwrap_or(0).unsigned_abs();
    Ok(Reading {
        wall_ms,
        steady_ms: wall_ms,
    })
}

/// Statements to send together. The place of each is the place of its answer.
#[derive(Default)]
pub(super) struct Asked(Vec<Statement>);

impl Asked {
    pub(super) fn add(&mut self, statement: Statement) -> usize {
        self.0.push(statement);
        self.0.len() - 1
    }

    /// Adds an optional statement: each costs the server some work.
    pub(super) fn when(
        &mut self,
        is_needed: bool,
        statement: impl FnOnce() -> Statement,
    ) -> Option<usize> {
        is_needed.then(|| self.add(statement()))
    }

    pub(super) async fn send(self, client: &Client) -> Result<Answers, Error> {
        run_all(client, self.0).await.map(Answers)
    }
}

/// The returned rows of the statements.
pub(super) struct Answers(Vec<Vec<Row>>);

impl Answers {
    /// The rows of one statement; none if it was not sent.
    pub(super) fn take(&mut self, place: Option<usize>) -> Vec<Row> {
        let answer = place.and_then(|place| self.0.get_mut(place));
        answer.map(std::mem::take).unwrap_or_default()
    }
}

/// Sends all of these at once, and returns the rows of each. They run in order; after a failure in
/// a transaction the rest fails too.
pub(super) async fn run_all(
    client: &Client,
    statements: Vec<Statement>,
) -> Result<Vec<Vec<Row>>, Error> {
    let sent = statements
        .into_iter()
        .map(|statement| statement.run(client));
    let done = futures_util::future::join_all(sent).await;
    done.into_iter().collect()
}
