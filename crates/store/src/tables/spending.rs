//! The tables of budgets: the sums of each key and project in the present day and month, and the day of all budgets.
//! Each statement touches the rows of one project and one key; the lock of the project protects them.

use std::collections::BTreeMap;

use crate::budgets::{ScopeChange, Spending, SpendingRow, key_scope, project_scope, today};
use crate::sql::{SqlQuery, SqlRow, SqlScript, SqlValue, TypedQuery, UnreadableValue};
use kinora_contract::{Amount, UnixMs, month_of};

/// Asks for the stored day, and the sums of a project and a key, if there are any.
pub(crate) fn find(project: &str, key: &str) -> SqlQuery {
    let ask = "SELECT d.day, s.scope, s.day, s.day_micros, s.month, s.month_micros \
               FROM budget_day d LEFT JOIN spending s ON s.scope IN ($1, $2)";
    SqlQuery::new(ask)
        .bind(project_scope(project))
        .bind(key_scope(key))
}

/// Reads the answer to [`find`], at this time. Returns whether a day is stored, too.
pub(crate) fn read(
    rows: &[SqlRow],
    key: &str,
    now_ms: UnixMs,
) -> Result<(Spending, bool), UnreadableValue> {
    let stored: u64 = rows.first().map_or(Ok(0), |row| row.get(0))?;
    let mut spending = Spending {
        today: today(stored, now_ms),
        ..Spending::default()
    };
    let key = key_scope(key);
    for row in rows {
        let Some(scope) = row.get::<Option<String>>(1)? else {
            continue;
        };
        let spent = read_sums(row, 2)?.spent(spending.today);
        if scope == key {
            spending.key = spent;
        } else {
            spending.project = spent;
        }
    }
    Ok((spending, stored > 0))
}

fn read_sums(row: &SqlRow, at: usize) -> Result<SpendingRow, UnreadableValue> {
    Ok(SpendingRow {
        day: row.get(at)?,
        day_micros: row.get(at + 1)?,
        month: row.get(at + 2)?,
        month_micros: row.get(at + 3)?,
    })
}

/// Adds the cost of a new task to the sums of its project and its key.
pub(crate) fn reserve(project: &str, key: &str, today: u64, cost: Amount) -> SqlQuery {
    let add = "INSERT INTO spending AS s (scope, day, day_micros, month, month_micros) \
               VALUES ($1, $3, $4, $5, $4), ($2, $3, $4, $5, $4) \
               ON CONFLICT (scope) DO UPDATE SET \
               day_micros = CASE WHEN s.day = excluded.day THEN s.day_micros ELSE 0 END + excluded.day_micros, \
               day = excluded.day, \
               month_micros = CASE WHEN s.month = excluded.month THEN s.month_micros ELSE 0 END \
               + excluded.month_micros, month = excluded.month RETURNING 1";
    SqlQuery::new(add)
        .bind(project_scope(project))
        .bind(key_scope(key))
        .bind(today)
        .bind(cost.micros())
        .bind(month_of(today))
}

/// Corrects sums by the ends of tasks. A period that has ended since the submit is left alone.
pub(crate) fn correct(changes: &[ScopeChange]) -> Vec<SqlQuery> {
    let mut sums: BTreeMap<(&str, u64), i64> = BTreeMap::new();
    for change in changes {
        let sum = sums.entry((&change.scope, change.day)).or_default();
        *sum = sum.saturating_add(change.micros);
    }
    // A negative sum would be damage, and give money away: never below zero.
    let correct = "UPDATE spending SET day_micros = CASE WHEN day <> $2 THEN day_micros \
                   WHEN day_micros + $4 > 0 THEN day_micros + $4 ELSE 0 END, \
                   month_micros = CASE WHEN month <> $3 THEN month_micros \
                   WHEN month_micros + $4 > 0 THEN month_micros + $4 ELSE 0 END \
                   WHERE scope = $1 RETURNING 1";
    let sums = sums.into_iter().filter(|(_, micros)| *micros != 0);
    sums.map(|((scope, day), micros)| {
        SqlQuery::new(correct)
            .bind(scope)
            .bind(day)
            .bind(month_of(day))
            .bind(SqlValue::Int(Some(micros)))
    })
    .collect()
}

/// Carries the sums of a key over to the one that replaces it.
pub(crate) fn carry_over(old: &str, new: &str) -> SqlQuery {
    let copy = "INSERT INTO spending (scope, day, day_micros, month, month_micros) \
                SELECT $2, day, day_micros, month, month_micros FROM spending WHERE scope = $1 \
                ON CONFLICT (scope) DO NOTHING RETURNING 1";
    SqlQuery::new(copy)
        .bind(key_scope(old))
        .bind(key_scope(new))
}

/// Stores the day of the first cost.
pub(crate) fn set_first_day(day: u64) -> SqlQuery {
    SqlQuery::new("UPDATE budget_day SET day = $1 WHERE day = 0 RETURNING 1").bind(day)
}

/// The condition that there is a stored day other than `$1`. One day ahead does not count: a clock that is corrected by a
/// moment at midnight must not renew the budgets twice.
const IS_OTHER_DAY: &str = "day > 0 AND (day < $1 OR day > $1 + 1)";

/// Asks for the stored day, if it is not this one.
pub(crate) fn other_day(today: u64) -> TypedQuery<u64> {
    let ask = format!("SELECT day FROM budget_day WHERE {IS_OTHER_DAY}");
    TypedQuery {
        query: SqlQuery::new(ask).bind(today),
        read: |row| row.get(0),
    }
}

/// Sets the day of all budgets.
#[derive(Debug)]
pub(crate) struct SetBudgetDay(pub(crate) u64);

impl SqlScript for SetBudgetDay {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let set = format!("UPDATE budget_day SET day = $1 WHERE {IS_OTHER_DAY} RETURNING 1");
        vec![SqlQuery::new(set).bind(self.0)]
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}
