//! Runs statements of both databases in PostgreSQL.

use tokio_postgres::types::Type;

use super::fault::{Done, Fault, corrupt};
use super::reads::Reader;
use super::session::Statement;
use crate::sql::{Dialect, Query, Question, Row, Script as _, Unreadable, Value};
use crate::tables::operators::ReadOverview;
use crate::{Overview, StoreError};

/// The rows that `question` finds, converted by its reader.
pub(super) async fn ask<T>(reader: &Reader, question: Question<T>) -> Result<Vec<T>, StoreError> {
    let found = reader.query(question.query.into()).await?;
    Ok(read(&found, question.read)?)
}

/// The state of a store for operators.
pub(super) async fn overview(reader: &Reader) -> Result<Overview, StoreError> {
    let read = ReadOverview {
        dialect: Dialect::Postgres,
        now: reader.present().await?,
    };
    let mut answers = Vec::new();
    for query in read.statements(read.now.wall_ms) {
        answers.push(rows(&reader.query(query.into()).await?)?);
    }
    Ok(read.output(&answers)?)
}

fn read<T>(found: &[tokio_postgres::Row], read: fn(&Row) -> Result<T, Unreadable>) -> Done<Vec<T>> {
    Ok(rows(found)?.iter().map(read).collect::<Result<_, _>>()?)
}

/// Rows in the form that both databases share.
pub(super) fn rows(found: &[tokio_postgres::Row]) -> Done<Vec<Row>> {
    found.iter().map(row).collect()
}

pub(super) fn row(found: &tokio_postgres::Row) -> Done<Row> {
    let values = (0..found.len()).map(|at| {
        Ok(match *found.columns()[at].type_() {
            Type::INT2 => Value::Int(found.try_get::<_, Option<i16>>(at)?.map(Into::into)),
            Type::INT4 => Value::Int(found.try_get::<_, Option<i32>>(at)?.map(Into::into)),
            Type::INT8 => Value::Int(found.try_get(at)?),
            Type::BOOL => Value::Int(found.try_get::<_, Option<bool>>(at)?.map(Into::into)),
            Type::BYTEA => Value::Bytes(found.try_get(at)?),
            _ => Value::Text(found.try_get(at)?),
        })
    });
    Ok(Row(values.collect::<Done<_>>()?))
}

impl From<Query> for Statement {
    fn from(query: Query) -> Self {
        let statement = Self::new(query.text);
        query
            .values
            .into_iter()
            .fold(statement, |statement, value| match value {
                Value::Int(number) => statement.bind(number, Type::INT8),
                Value::Text(text) => statement.bind(text, Type::TEXT),
                Value::Bytes(bytes) => statement.bind(bytes, Type::BYTEA),
            })
    }
}

impl From<Unreadable> for Fault {
    fn from(Unreadable(text): Unreadable) -> Self {
        corrupt(text)
    }
}
