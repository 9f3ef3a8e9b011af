//! The tables of budgets: the sums of each key and project in the present day and month, and the day of all budgets.
//! Each statement touches the rows of one project and one key; the lock of the project protects them.

use std::collections::BTreeMap;

use crate::budgets::{ScopeChange, Spending, SpendingRow, key_scope, project_scope, today};
use crate::sql::{SqlQuery, SqlRow, SqlScript, SqlValue, TypedQuery, UnreadableValue};
use kinora_contract::{Amount, UnixMs, month_of};

/// No more is added to a sum above this: far from the largest integer of a column, and above any sum that makes sense.
const SUM_MAX: &str = "8000000000000000000";
/// The largest correction of a sum, so that [`SUM_MAX`] and it are a valid integer.
const CORRECTION_MAX: i64 = 1_000_000_000_000_000_000;

/// Asks for the stored day, the id of a key's budget, and the sums of it and of a project, if there are any. Keys that
/// replace each other have one budget.
pub(crate) fn find(project: &str, key: &str) -> SqlQuery {
    let ask = "SELECT d.day, k.id, s.scope, s.day, s.day_micros, s.month, s.month_micros FROM budget_day d \
               CROSS JOIN (SELECT coalesce((SELECT budget_id FROM api_keys WHERE id = $2), $2) AS id) k \
               LEFT JOIN spending s ON s.scope IN ($1, 'key:' || k.id)";
    SqlQuery::new(ask).bind(project_scope(project)).bind(key)
}

/// Reads the answer to [`find`] about a key, at this time. Returns the id of the key's budget, too.
pub(crate) fn read(
    rows: &[SqlRow],
    key: &str,
    now_ms: UnixMs,
) -> Result<(Spending, String), UnreadableValue> {
    let stored: u64 = rows.first().map_or(Ok(0), |row| row.get(0))?;
    let budget: Option<String> = rows.first().map(|row| row.get(1)).transpose()?;
    let budget = budget.unwrap_or_else(|| key.to_owned());
    let sums: Vec<(String, SpendingRow)> = rows
        .iter()
        .filter_map(|row| read_sums(row).transpose())
        .collect::<Result<_, _>>()?;
    let last_day = sums.iter().map(|(_, sums)| sums.day).max();
    let mut spending = Spending {
        today: today(stored, last_day, now_ms),
        ..Spending::default()
    };
    let key = key_scope(&budget);
    for (scope, sums) in sums {
        let spent = sums.spent(spending.today);
        if scope == key {
            spending.key = spent;
        } else {
            spending.project = spent;
        }
    }
    Ok((spending, budget))
}

/// The owner and its sums; `None` if there are none.
fn read_sums(row: &SqlRow) -> Result<Option<(String, SpendingRow)>, UnreadableValue> {
    let Some(scope) = row.get(2)? else {
        return Ok(None);
    };
    let sums = SpendingRow {
        day: row.get(3)?,
        day_micros: row.get(4)?,
        month: row.get(5)?,
        month_micros: row.get(6)?,
    };
    Ok(Some((scope, sums)))
}

/// Adds the cost of a new task to the sums of its project and its key.
pub(crate) fn reserve(project: &str, key: &str, today: u64, cost: Amount) -> SqlQuery {
    let sum = |sum: &str, period: &str| {
        format!(
            "CASE WHEN s.{period} <> excluded.{period} THEN excluded.{sum} \
             WHEN s.{sum} > {SUM_MAX} THEN s.{sum} ELSE s.{sum} + excluded.{sum} END"
        )
    };
    let (of_day, of_month) = (sum("day_micros", "day"), sum("month_micros", "month"));
    let add = format!(
        "INSERT INTO spending AS s (scope, day, day_micros, month, month_micros) \
         VALUES ($1, $3, $4, $5, $4), ($2, $3, $4, $5, $4) \
         ON CONFLICT (scope) DO UPDATE SET day_micros = {of_day}, day = excluded.day, \
         month_micros = {of_month}, month = excluded.month RETURNING 1"
    );
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
    let sum = |sum: &str, period: &str, ended: &str| {
        format!(
            "CASE WHEN {period} <> {ended} OR ({sum} > {SUM_MAX} AND $4 > 0) THEN {sum} \
             WHEN {sum} + $4 > 0 THEN {sum} + $4 ELSE 0 END"
        )
    };
    let of_day = sum("day_micros", "day", "$2");
    let of_month = sum("month_micros", "month", "$3");
    let correct = format!(
        "UPDATE spending SET day_micros = {of_day}, month_micros = {of_month} WHERE scope = $1 RETURNING 1"
    );
    let sums = sums.into_iter().filter(|(_, micros)| *micros != 0);
    sums.map(|((scope, day), micros)| {
        let micros = micros.clamp(-CORRECTION_MAX, CORRECTION_MAX);
        SqlQuery::new(correct.clone())
            .bind(scope)
            .bind(day)
            .bind(month_of(day))
            .bind(SqlValue::Int(Some(micros)))
    })
    .collect()
}

/// The condition that the stored day is another than `$1`, or 0: none. One day ahead does not count: a clock that is
/// corrected by a moment at midnight must not renew the budgets twice.
const IS_OTHER_DAY: &str = "day < $1 OR day > $1 + 1";

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
