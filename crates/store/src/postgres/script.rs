//! Runs statements of both databases in PostgreSQL.

use tokio_postgres::types::Type;

use super::fault::{PostgresFault, PostgresResult, corrupt};
use super::reads::StoreReader;
use super::session::SqlStatement;
use crate::sql::{
    SqlDialect, SqlQuery, SqlRow, SqlScript as _, SqlValue, TypedQuery, UnreadableValue,
};
use crate::tables::operators::ReadOverview;
use crate::{ServiceOverview, StoreError};

/// The rows that `question` finds, converted by its reader.
pub(super) async fn ask<T>(
    reader: &StoreReader,
    question: TypedQuery<T>,
) -> Result<Vec<T>, StoreError> {
    let found = reader.query(question.query.into()).await?;
    Ok(read(&found, question.read)?)
}

/// The state of a store for operators.
pub(super) async fn overview(reader: &StoreReader) -> Result<ServiceOverview, StoreError> {
    let read = ReadOverview {
        dialect: SqlDialect::Postgres,
        now: reader.present().await?,
    };
    let mut answers = Vec::new();
    for query in read.statements(read.now.wall_ms) {
        answers.push(rows(&reader.query(query.into()).await?)?);
    }
    Ok(read.output(&answers)?)
}

fn read<T>(
    found: &[tokio_postgres::Row],
    read: fn(&SqlRow) -> Result<T, UnreadableValue>,
) -> PostgresResult<Vec<T>> {
    Ok(rows(found)?.iter().map(read).collect::<Result<_, _>>()?)
}

/// Rows in the form that both databases share.
pub(super) fn rows(found: &[tokio_postgres::Row]) -> PostgresResult<Vec<SqlRow>> {
    found.iter().map(row).collect()
}

pub(super) fn row(found: &tokio_postgres::Row) -> PostgresResult<SqlRow> {
    let values = (0..found.len()).map(|at| {
        Ok(match *found.columns()[at].type_() {
            Type::INT2 => SqlValue::Int(found.try_get::<_, Option<i16>>(at)?.map(Into::into)),
            Type::INT4 => SqlValue::Int(found.try_get::<_, Option<i32>>(at)?.map(Into::into)),
            Type::INT8 => SqlValue::Int(found.try_get(at)?),
            Type::BOOL => SqlValue::Int(found.try_get::<_, Option<bool>>(at)?.map(Into::into)),
            Type::BYTEA => SqlValue::Bytes(found.try_get(at)?),
            _ => SqlValue::Text(found.try_get(at)?),
        })
    });
    Ok(SqlRow(values.collect::<PostgresResult<_>>()?))
}

impl From<SqlQuery> for SqlStatement {
    fn from(query: SqlQuery) -> Self {
        let statement = Self::new(query.text);
        query
            .values
            .into_iter()
            .fold(statement, |statement, value| match value {
                SqlValue::Int(number) => statement.bind(number, Type::INT8),
                SqlValue::Text(text) => statement.bind(text, Type::TEXT),
                SqlValue::Bytes(bytes) => statement.bind(bytes, Type::BYTEA),
            })
    }
}

impl From<UnreadableValue> for PostgresFault {
    fn from(UnreadableValue(text): UnreadableValue) -> Self {
        corrupt(text)
    }
}
