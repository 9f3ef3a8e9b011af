//! Runs statements of both databases in SQLite.

use kinora_contract::UnixMs;
use rusqlite::types::{Value as Stored, ValueRef};
use rusqlite::{Connection, Statement};

use super::fault::{SqliteFault, SqliteResult};
use crate::sql::{SqlQuery, SqlRow, SqlScript, SqlValue, TypedQuery, UnreadableValue};

/// Runs a script in the transaction of this connection.
pub(super) fn run_all<S: SqlScript>(
    conn: &Connection,
    script: &S,
    now_ms: UnixMs,
) -> SqliteResult<S::Output> {
    let statements = script.statements(now_ms);
    let answers = statements.iter().map(|query| run(conn, query));
    let answers = answers.collect::<SqliteResult<Vec<_>>>()?;
    Ok(script.output(&answers)?)
}

/// Runs a script that only reads, all at one moment.
pub(super) fn read_all<S: SqlScript>(conn: &Connection, script: &S) -> SqliteResult<S::Output> {
    run_all(&*conn.unchecked_transaction()?, script, 0)
}

/// The rows that `question` finds, converted by its reader.
pub(super) fn ask<T>(conn: &Connection, question: &TypedQuery<T>) -> SqliteResult<Vec<T>> {
    let rows = run(conn, &question.query)?;
    Ok(rows.iter().map(question.read).collect::<Result<_, _>>()?)
}

/// Runs one statement.
pub(super) fn run(conn: &Connection, query: &SqlQuery) -> SqliteResult<Vec<SqlRow>> {
    let mut statement = conn.prepare_cached(&query.text)?;
    bind(&mut statement, &query.values)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|at| Ok(value(row.get_ref(at)?)?));
        found.push(SqlRow(values.collect::<SqliteResult<_>>()?));
    }
    Ok(found)
}

/// Binds `$1`, `$2` … by name, since SQLite numbers parameters in the order in which they first appear.
fn bind(statement: &mut Statement<'_>, values: &[SqlValue]) -> SqliteResult<()> {
    for (number, value) in (1..).zip(values) {
        if let Some(index) = statement.parameter_index(&format!("${number}"))? {
            let value = match value.clone() {
                SqlValue::Int(number) => number.map(Stored::Integer),
                SqlValue::Text(text) => text.map(Stored::Text),
                SqlValue::Bytes(bytes) => bytes.map(Stored::Blob),
            };
            statement.raw_bind_parameter(index, value)?;
        }
    }
    Ok(())
}

pub(super) fn value(stored: ValueRef<'_>) -> Result<SqlValue, UnreadableValue> {
    Ok(match stored {
        // SQLite's NULL has no type, and each type of `SqlValue` reads this as absent.
        ValueRef::Null => SqlValue::Int(None),
        ValueRef::Integer(number) => SqlValue::Int(Some(number)),
        // A damaged text is passed on as bytes. Reading it as text then fails for this column alone,
        // not for the whole row.
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => SqlValue::Text(Some(text.to_owned())),
            Err(_) => SqlValue::Bytes(Some(text.to_vec())),
        },
        ValueRef::Blob(bytes) => SqlValue::Bytes(Some(bytes.to_vec())),
        ValueRef::Real(_) => return Err(UnreadableValue("a column holds a fraction".to_owned())),
    })
}

impl From<UnreadableValue> for SqliteFault {
    fn from(UnreadableValue(text): UnreadableValue) -> Self {
        Self::Corrupt(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use kinora_contract::Amount;

    use super::*;
    use crate::budgets::{ScopeChange, project_scope};
    use crate::sql::SqlDialect;
    use crate::sqlite::schema;
    use crate::tables::{spending, webhooks};
    use crate::{DeliveryRequest, SqliteOptions};

    /// The steps of SQLite's machine to find what is due, beside a backlog that was never tried and
    /// one that waits for its next attempt.
    fn steps(backlog: u64) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
        let fill = format!(
            "INSERT INTO webhooks (id, project, url, secret, created_at_ms) VALUES \
               ('a', 'one', 'http://a', zeroblob(32), 0), ('b', 'two', 'http://b', zeroblob(32), 0);
             INSERT INTO deliveries (event, webhook, state, due_ms) \
               SELECT 'evt_' || value, iif(value % 2, 'a', 'b'), 'pending', iif(value % 3, 0, 5000) \
               FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {backlog}) \
                     SELECT value FROM n);"
        );
        conn.execute_batch(&fill).unwrap();
        let counted = Arc::new(AtomicU64::new(0));
        let counter = counted.clone();
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        conn.progress_handler(1, Some(count)).unwrap();
        let request = DeliveryRequest {
            count: 64,
            each: 4,
            lease_ms: 1,
        };
        let due = webhooks::due(SqlDialect::Sqlite, &request, 1_000);
        assert_eq!(run(&conn, &due).unwrap().len(), 8);
        counted.load(Ordering::Relaxed)
    }

    #[test]
    fn p08_a_take_costs_no_more_for_a_backlog() {
        let (few, many) = (steps(100), steps(20_000));
        assert!(many < 2 * few, "{few} steps, {many} beside a backlog");
    }

    #[test]
    fn a_sum_of_costs_ends_before_the_largest_integer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
        let reserve = spending::reserve("one", "key_a", 20_786, Amount::MAX);
        let correct = |micros| {
            let changes = ["one", "two"].map(|project| ScopeChange {
                scope: project_scope(project),
                day: 20_786,
                micros,
            });
            for query in spending::correct(&changes) {
                run(&conn, &query).unwrap();
            }
        };
        run(&conn, &reserve).unwrap();
        for _ in 0..20 {
            correct(i64::MAX);
            run(&conn, &reserve).unwrap();
        }
        let sums = || {
            let find = spending::find("one", "key_a");
            let spent = spending::read(&run(&conn, &find).unwrap(), "key_a", 0);
            let (spending, budget) = spent.unwrap();
            assert_eq!((spending.today, budget.as_str()), (20_786, "key_a"));
            spending.project
        };
        assert_eq!((sums().day, sums().month), (Amount::MAX, Amount::MAX));
        for _ in 0..10 {
            correct(-i64::MAX);
        }
        assert_eq!((sums().day, sums().month), (Amount::ZERO, Amount::ZERO));
    }
}
