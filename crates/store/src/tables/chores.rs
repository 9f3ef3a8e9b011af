//! The table of chores: work to do elsewhere, which outlives the process that caused it. Times are wall
//! time; a time too far ahead comes from a wrong clock and counts as past. A lease is a due time in the
//! future and a token, so a holder that died leaves a chore that becomes due again by itself.

use kinora_contract::UnixMs;
use kinora_contract::lifecycle::CallOff;

use crate::chores::AHEAD_MS_MAX;
use crate::sql::{SqlDialect, SqlQuery, SqlRow, UnreadableValue, json, number_at};
use crate::{Chore, ChoreKind, ChoreRequest, ChoreWork};

const fn name(kind: &ChoreKind) -> &'static str {
    match kind {
        ChoreKind::RemoveFile => "remove_file",
        ChoreKind::CallOff { .. } => "call_off",
        ChoreKind::LookForOrphans => "look_for_orphans",
    }
}

/// Selects the chores to lease, oldest first, for [`read`].
pub(crate) fn due(dialect: SqlDialect, request: &ChoreRequest, now_ms: UnixMs) -> SqlQuery {
    let models = match &request.kind {
        ChoreKind::CallOff { models } => Some(json(models)),
        ChoreKind::RemoveFile | ChoreKind::LookForOrphans => None,
    };
    // `attempts + 1` is the value that the lease writes: the caller sees it without a second query.
    let ask = format!(
        "SELECT number, attempts + 1, kind, subject, model, ticket FROM chores \
         WHERE kind = $1 AND (due_ms <= $2 OR due_ms > $3) \
         AND ($4 IS NULL OR model IN (SELECT value FROM {})) ORDER BY due_ms, number LIMIT $5 {}",
        dialect.each("$4"),
        dialect.skip_locked()
    );
    SqlQuery::new(ask)
        .bind(name(&request.kind))
        .bind(now_ms)
        .bind(now_ms.saturating_add(AHEAD_MS_MAX))
        .bind(models)
        .bind(request.count as u64)
}

/// Leases the chores that [`due`] has found, each under its token.
pub(crate) fn lease(
    dialect: SqlDialect,
    found: &[SqlRow],
    tokens: &[u64],
    until_ms: UnixMs,
) -> Result<SqlQuery, UnreadableValue> {
    let numbers: Vec<u64> = found
        .iter()
        .map(|row| row.get(0))
        .collect::<Result<_, _>>()?;
    let leases: Vec<_> = numbers.into_iter().zip(tokens).collect();
    let lease = format!(
        "UPDATE chores SET due_ms = $2, token = n.lease, attempts = attempts + 1 FROM (\
           SELECT {} AS own, {} AS lease FROM {}\
         ) n WHERE number = n.own RETURNING 1",
        number_at(0),
        number_at(1),
        dialect.each_row("$1")
    );
    Ok(SqlQuery::new(lease).bind(json(&leases)).bind(until_ms))
}

/// Leases the chores that remove these files, each under its token, and adds those that are not
/// recorded yet. Returns rows for [`read`], with the token as a seventh column.
pub(crate) fn lease_files(
    dialect: SqlDialect,
    keys: &[String],
    tokens: &[u64],
    until_ms: UnixMs,
) -> SqlQuery {
    let leases: Vec<_> = keys.iter().zip(tokens).collect();
    // `WHERE true` keeps SQLite from reading ON CONFLICT as the condition of a join
    // (https://www.sqlite.org/lang_upsert.html#parsing_ambiguity).
    let take = format!(
        "INSERT INTO chores AS c (kind, subject, due_ms, token, attempts) \
         SELECT 'remove_file', value ->> 0, $2, {}, 1 FROM {} WHERE true \
         ON CONFLICT (kind, subject) DO UPDATE SET due_ms = excluded.due_ms, token = excluded.token, \
         attempts = c.attempts + 1 RETURNING number, attempts, kind, subject, model, ticket, token",
        number_at(1),
        dialect.each_row("$1")
    );
    SqlQuery::new(take).bind(json(&leases)).bind(until_ms)
}

/// Reads chores leased under these tokens. A damaged one is skipped: it waits for its next turn, and
/// does not block those after it.
pub(crate) fn read(rows: &[SqlRow], tokens: &[u64]) -> Result<Vec<Chore>, UnreadableValue> {
    let mut chores = Vec::with_capacity(rows.len());
    for (row, token) in rows.iter().zip(tokens) {
        let number = row.get(0)?;
        let Some(work) = read_work(row) else {
            // It is leased like the others, so it comes up again only after its lease.
            tracing::error!(number, "damaged chore skipped");
            continue;
        };
        chores.push(Chore {
            number,
            token: *token,
            attempts: row.get(1)?,
            work,
        });
    }
    Ok(chores)
}

fn read_work(row: &SqlRow) -> Option<ChoreWork> {
    let kind: String = row.get(2).ok()?;
    let subject: Option<String> = row.get(3).ok()?;
    match kind.as_str() {
        "remove_file" => subject.map(ChoreWork::RemoveFile),
        "call_off" => Some(ChoreWork::CallOff(CallOff {
            task: subject?.parse().ok()?,
            model: row.get(4).ok()?,
            ticket: String::from_utf8(row.get(5).ok()?).ok()?,
        })),
        "look_for_orphans" => Some(ChoreWork::LookForOrphans),
        _ => None,
    }
}

/// Records files for removal, unless they are recorded already.
pub(crate) fn add_files(dialect: SqlDialect, keys: &[String]) -> SqlQuery {
    let add = format!(
        "INSERT INTO chores (kind, subject) SELECT 'remove_file', value FROM {} WHERE true \
         ON CONFLICT (kind, subject) DO NOTHING RETURNING 1",
        dialect.each("$1")
    );
    SqlQuery::new(add).bind(json(keys))
}

/// Records an upstream job to cancel.
pub(crate) fn add_call_off(dialect: SqlDialect, call_off: &CallOff) -> SqlQuery {
    // A later attempt of the same task may have left a newer ticket: it replaces the old one and is
    // due at once, whatever process holds the old one.
    let add = "INSERT INTO chores (kind, subject, model, ticket) VALUES ('call_off', $1, $2, $3) \
               ON CONFLICT (kind, subject) DO UPDATE SET model = excluded.model, \
               ticket = excluded.ticket, due_ms = 0, token = NULL, attempts = 0 RETURNING 1";
    SqlQuery::new(add)
        .bind(call_off.task.to_string())
        .bind(&call_off.model)
        .bind(dialect.raw_text(&call_off.ticket))
}

/// Removes chores under these leases: each a number and a token.
pub(crate) fn remove(dialect: SqlDialect, leases: &[(u64, u64)]) -> SqlQuery {
    let remove = format!(
        "DELETE FROM chores WHERE (number, token) IN (SELECT {}, {} FROM {}) RETURNING 1",
        number_at(0),
        number_at(1),
        dialect.each_row("$1")
    );
    SqlQuery::new(remove).bind(json(leases))
}

/// Gives chores under these leases back until a time: each a number, a token and the time.
pub(crate) fn postpone(dialect: SqlDialect, leases: &[(u64, u64, UnixMs)]) -> SqlQuery {
    let postpone = format!(
        "UPDATE chores SET due_ms = n.until_ms, token = NULL FROM (\
           SELECT {} AS own, {} AS lease, {} AS until_ms FROM {}\
         ) n WHERE number = n.own AND token = n.lease RETURNING 1",
        number_at(0),
        number_at(1),
        number_at(2),
        dialect.each_row("$1")
    );
    SqlQuery::new(postpone).bind(json(leases))
}
