//! The start of a transaction: one round trip reads and locks everything that its jobs need.

use std::collections::{BTreeMap, HashMap};

use kinora_contract::TaskId;
use tokio_postgres::Row;

use super::batch::{Batch, New, Project, Sums};
use super::durability::SYNCED;
use super::fault::Done;
use super::rows::{self, Version};
use super::runs::Runs;
use super::server_clock::ServerClock;
use super::session::Asked;
use super::session::Session;
use super::statement::{BEGIN, Statement, read_present};
use super::totals::{Summed, Totals};
use crate::PostgresOptions;
use crate::backend::{KeyBinding, Needs};

/// The place of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The lane's row.
    pub(super) lane: u64,
    /// Number of the transaction in its lane.
    pub(super) batch: u64,
}

/// By which a transaction judges time, the bounds over all projects, and what runs.
#[derive(Clone, Copy)]
pub(super) struct Judges<'a> {
    pub(super) options: &'a PostgresOptions,
    pub(super) clock: &'a ServerClock,
    pub(super) summed: &'a Summed,
    pub(super) runs: &'a Runs,
}

const SUMS: &str = "name, bytes, tasks, waiting, unfinished, newest_ms, newest_seq";

/// Begins a transaction. It writes and locks the lane's row first, so a later query for the outcome
/// of this transaction waits until it has ended.
pub(super) async fn begin<'a>(
    session: &'a Session,
    needs: &Needs,
    origin: Origin,
    judges: Judges<'a>,
) -> Done<Batch<'a>> {
    let batch = try_begin(session, needs, origin, judges).await?;
    let names = needs.projects.iter();
    let missing = names.filter(|name| !batch.projects.contains_key(*name));
    let missing: Vec<String> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(batch);
    }
    add_projects(session, missing).await?;
    try_begin(session, needs, origin, judges).await
}

async fn try_begin<'a>(
    session: &'a Session,
    needs: &Needs,
    origin: Origin,
    judges: Judges<'a>,
) -> Done<Batch<'a>> {
    let fresh = judges.summed.fresh();
    let asks_totals = needs.totals && fresh.is_none();
    let mut asked = Asked::default();
    asked.add(Statement::new(BEGIN));
    let marked = asked.add(mark(origin, judges.options));
    let tasks = asked.when(!needs.tasks.is_empty(), || lock_tasks(needs));
    let projects = asked.when(!needs.projects.is_empty(), || lock_projects(needs));
    let newest = asked.when(needs.places > 0, || newest_ids(needs));
    let places = asked.when(needs.places > 0, || places(needs.places));
    let bound = asked.when(!needs.keys.is_empty(), || bindings(needs));
    let of_bound = asked.when(!needs.keys.is_empty(), || bound_tasks(needs));
    let claimable = asked.when(needs.claims > 0, any_claimable);
    let sums = asked.when(asks_totals, Summed::ask);
    let sent = judges.clock.asked();
    let mut answers = asked.send(session).await?;
    let marked = answers.take(Some(marked));
    let mut batch = Batch {
        session,
        runs: judges.runs,
        now: judges.clock.present(read_present(&marked)?, sent),
        version: marked.first().map(version).transpose()?,
        tasks: HashMap::new(),
        projects: BTreeMap::new(),
        bindings: HashMap::new(),
        places: numbers(&answers.take(places))?.into_iter(),
        totals: Totals::default(),
        queue: None,
        new: New::default(),
        changes: Vec::new(),
        claims: needs.claims,
        is_claimable: !answers.take(claimable).is_empty(),
        part: None,
        fetchable: None,
        wrote: false,
    };
    for row in &answers.take(bound) {
        let binding = KeyBinding {
            fingerprint: row.try_get(2)?,
            task: rows::parse_id(row.try_get(3)?)?,
        };
        let key = (row.try_get(0)?, row.try_get(1)?);
        batch.bindings.insert(key, binding);
    }
    for row in answers.take(tasks).iter().chain(&answers.take(of_bound)) {
        batch.keep(rows::id(row)?, rows::read(row))?;
    }
    keep_projects(&mut batch, &answers.take(projects))?;
    keep_newest(&mut batch, &answers.take(newest))?;
    let sums = match answers.take(sums).first() {
        Some(row) => Some(judges.summed.keep(row)?),
        None => fresh,
    };
    batch.totals = sums.unwrap_or_default();
    Ok(batch)
}

/// The version of the rows that the transaction writes.
fn version(marked: &Row) -> Done<Version> {
    let transaction: i64 = marked.try_get("transaction")?;
    Ok(Version::of_transaction(transaction.unsigned_abs()))
}

/// Writes the lane's row, and sets the limits of this transaction alone, so that a pooler's connection keeps no setting.
fn mark(origin: Origin, options: &PostgresOptions) -> Statement {
    Statement::new(format!(
        "INSERT INTO lanes (id, batch, at_ms) \
         VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) \
         ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at_ms = excluded.at_ms \
         RETURNING at_ms, txid_current() AS transaction, set_config('statement_timeout', $3, true), \
         set_config('idle_in_transaction_session_timeout', $3, true), \
         set_config('jit', 'off', true), {SYNCED}"
    ))
    .int(origin.lane)
    .int(origin.batch)
    .text(options.statement_timeout_ms.to_string())
}

/// Whether there may be anything to claim, without a lock; usually there is nothing.
fn any_claimable() -> Statement {
    Statement::new("SELECT 1 FROM tasks WHERE place = 1 LIMIT 1")
}

fn lock_tasks(needs: &Needs) -> Statement {
    let ids = needs.tasks.iter().map(ToString::to_string).collect();
    Statement::new(format!(
        "SELECT {} FROM tasks t WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        rows::columns("t")
    ))
    .texts(ids)
}

fn lock_projects(needs: &Needs) -> Statement {
    Statement::new(format!(
        "SELECT {SUMS} FROM projects WHERE name = ANY($1) ORDER BY name FOR UPDATE"
    ))
    .texts(needs.projects.iter().cloned().collect())
}

/// The last ids of projects that accept tasks. A statement of its own: what the lock waited for is seen only after it.
fn newest_ids(needs: &Needs) -> Statement {
    Statement::new(
        "SELECT n.name, (SELECT t.id FROM tasks t WHERE t.project = n.name AND t.phase <> 'expired' \
         ORDER BY t.id DESC LIMIT 1) FROM unnest($1) AS n(name)",
    )
    .texts(needs.projects.iter().cloned().collect())
}

/// The last id of the newest millisecond stands for a task that was removed, or followed one from a wrong clock.
fn keep_newest(batch: &mut Batch<'_>, found: &[Row]) -> Done<()> {
    for row in found {
        let Some(project) = batch.projects.get_mut(row.try_get::<_, &str>(0)?) else {
            continue;
        };
        let newest_ms = project.newest_ms;
        let id = row.try_get::<_, Option<&str>>(1)?;
        let id = id.map(rows::parse_id).transpose()?;
        project.newest_id = id
            .filter(|id| id.created_at_ms() == newest_ms)
            .unwrap_or(TaskId::last_of(newest_ms));
    }
    Ok(())
}

fn places(count: u64) -> Statement {
    Statement::new("SELECT nextval('task_seq') FROM generate_series(1, $1)").int(count)
}

/// The rows of idempotency keys.
const BOUND: &str =
    "FROM unnest($1, $2) AS k(project, key) JOIN idempotency i USING (project, key)";

fn bindings(needs: &Needs) -> Statement {
    let text = format!("SELECT i.project, i.key, i.fingerprint, i.task {BOUND}");
    of_keys(needs, text)
}

/// Their tasks, without a lock: they are shown, not changed.
fn bound_tasks(needs: &Needs) -> Statement {
    let columns = rows::columns("t");
    of_keys(
        needs,
        format!("SELECT {columns} {BOUND} JOIN tasks t ON t.id = i.task"),
    )
}

fn of_keys(needs: &Needs, text: String) -> Statement {
    let (projects, keys): (Vec<String>, Vec<String>) = needs.keys.iter().cloned().unzip();
    Statement::new(text).texts(projects).texts(keys)
}

fn keep_projects(batch: &mut Batch<'_>, found: &[Row]) -> Done<()> {
    for row in found {
        let project = Project {
            stored: Sums {
                bytes: row.try_get(1)?,
                tasks: row.try_get(2)?,
                waiting: row.try_get(3)?,
                unfinished: row.try_get(4)?,
            },
            newest_ms: row.try_get::<_, i64>(5)?.unsigned_abs(),
            newest_seq: row.try_get::<_, i64>(6)?.unsigned_abs(),
            is_locked: true,
            ..Project::default()
        };
        batch.projects.insert(row.try_get(0)?, project);
    }
    Ok(())
}

/// Adds the rows of projects that have their first task now, in a transaction of their own: what is read under the
/// lock of a project must be read after it was taken.
async fn add_projects(session: &Session, missing: Vec<String>) -> Done<()> {
    let add = Statement::new(
        "INSERT INTO projects (name) SELECT name FROM unnest($1) AS n(name) ORDER BY name ON CONFLICT DO NOTHING",
    );
    let statements = [Statement::new("ROLLBACK"), add.texts(missing)];
    session.run_all(&statements).await?;
    Ok(())
}

pub(super) fn numbers(rows: &[Row]) -> Done<Vec<u64>> {
    let number = |row: &Row| Ok(row.try_get::<_, i64>(0)?.unsigned_abs());
    rows.iter().map(number).collect()
}
