//! The end of a transaction: one round trip writes and commits all changes.

use std::collections::BTreeMap;

use kinora_contract::TaskId;
use tokio_postgres::types::Type;

use super::batch::{LaneTransaction, LoadedProject, NewBinding, ProjectSums};
use super::fault::{PostgresResult, is_refusal};
use super::rows::Written;
use super::session::SqlStatement;
use super::shared::CommittedChanges;
use crate::TallyRow;
use crate::sql::SqlDialect;
use crate::sql::to_sql_int;

/// Outcome of a transaction whose statements the server did not refuse.
pub(super) enum CommitOutcome {
    Committed,
    /// There was nothing to write.
    Empty,
    /// The connection ended before the server's answer; the transaction may have committed.
    Unknown(tokio_postgres::Error),
}

impl LaneTransaction<'_> {
    /// Writes everything and commits. Puts the changes into `sent` before it sends the commit: from then on
    /// a caller that stops waiting does not know whether they are stored.
    pub(super) async fn commit(
        mut self,
        sent: &mut Option<CommittedChanges>,
    ) -> PostgresResult<CommitOutcome> {
        let mut statements = self.write_projects();
        let tallies: Vec<_> = self.new.tallies.rows().collect();
        statements.extend(add_tallies(&tallies));
        statements.extend(self.write_tasks()?);
        statements.extend(self.write_other_rows());
        if statements.is_empty() && !self.wrote {
            // Nothing to write: skip the commit and its sync.
            self.session.run(&SqlStatement::new("ROLLBACK")).await?;
            return Ok(CommitOutcome::Empty);
        }
        kinora_system::crash::point("store.before_commit");
        statements.push(SqlStatement::new("COMMIT"));
        let added = self.projects.values().map(|project| project.added);
        // From here on the outcome is open: if this future is dropped or the answer is lost, `sent` tells
        // the lane that it must look up whether the server has committed.
        *sent = Some(CommittedChanges {
            waiting: added.clone().map(|added| added.waiting).sum(),
            bytes: added.map(|added| added.bytes).sum(),
            changes: std::mem::take(&mut self.changes),
            version: self.version,
        });
        match self.session.run_all(&statements).await {
            Ok(_) => {
                kinora_system::crash::point("store.after_commit");
                Ok(CommitOutcome::Committed)
            }
            Err(error) if is_refusal(&error) => Err(error.into()),
            Err(error) => Ok(CommitOutcome::Unknown(error)),
        }
    }

    fn write_tasks(&self) -> PostgresResult<Vec<SqlStatement>> {
        let (mut added, mut before) = (Written::default(), Written::default());
        let mut changed = Written::default();
        let (mut removed, mut ended) = (Vec::new(), Vec::new());
        // In the order of ids in all processes, which rules out deadlocks between their updates.
        let tasks: BTreeMap<TaskId, _> = self.tasks.iter().map(|(id, slot)| (*id, slot)).collect();
        for (id, slot) in tasks {
            let was = slot.stored.as_ref().and_then(|one| one.running_lease());
            let is = slot.now.as_ref().and_then(|one| one.running_lease());
            let was_run = was.is_some() && was != is;
            ended.extend(was_run.then(|| id.to_string()));
            match (&slot.stored, &slot.now) {
                (None, Some(new)) => added.add(new, None)?,
                (Some(_), None) => removed.push(id.to_string()),
                (Some(old), Some(new)) if !std::sync::Arc::ptr_eq(old, new) => {
                    before.add(old, Some(old))?;
                    changed.add(new, Some(old))?;
                }
                _ => {}
            }
        }
        let mut statements = Vec::new();
        if !added.is_empty() {
            statements.push(added.insert());
        }
        if changed.differs(&before) {
            statements.push(changed.update(&before));
        }
        if !ended.is_empty() {
            statements
                .push(SqlStatement::new("DELETE FROM previews WHERE task = ANY($1)").texts(ended));
        }
        if !removed.is_empty() {
            statements.extend(delete_tasks(removed));
        }
        Ok(statements)
    }

    /// Sums of projects; first locks their rows in the order of their names.
    fn write_projects(&self) -> Vec<SqlStatement> {
        let names: Vec<String> = self
            .changed_projects()
            .into_iter()
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return Vec::new();
        }
        let of: Vec<_> = names
            .iter()
            .filter_map(|name| self.projects.get(name))
            .collect();
        let added = |part: fn(&ProjectSums) -> i64| of.iter().map(|one| part(&one.added)).collect();
        let numbers = |part: fn(&LoadedProject) -> u64| {
            of.iter()
                .map(|one| to_sql_int(part(one)))
                .collect::<Vec<_>>()
        };
        let update = SqlStatement::new(
            "UPDATE projects p SET bytes = p.bytes + n.bytes, tasks = p.tasks + n.tasks, \
             waiting = p.waiting + n.waiting, unfinished = p.unfinished + n.unfinished, \
             turn = greatest(p.turn, n.turn), \
             last_fetch = CASE WHEN p.unfinished + n.unfinished = 0 THEN 0 \
             ELSE greatest(p.last_fetch, n.last_fetch) END, \
             newest_ms = CASE WHEN n.newest_seq > p.newest_seq THEN n.newest_ms ELSE p.newest_ms END, \
             newest_seq = greatest(p.newest_seq, n.newest_seq) \
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) \
             AS n(name, bytes, tasks, waiting, unfinished, turn, last_fetch, newest_ms, newest_seq) \
             WHERE p.name = n.name",
        )
        .texts(names.clone())
        .ints(added(|sums| sums.bytes))
        .ints(added(|sums| sums.tasks))
        .ints(added(|sums| sums.waiting))
        .ints(added(|sums| sums.unfinished))
        .ints(numbers(|one| one.turn))
        .ints(numbers(|one| one.last_fetch))
        .ints(numbers(|one| one.newest_ms))
        .ints(numbers(|one| one.newest_seq));
        let unlocked = of.iter().any(|one| !one.is_locked);
        let lock = SqlStatement::new(
            "SELECT 1 FROM projects WHERE name = ANY($1) ORDER BY name FOR UPDATE",
        );
        let lock = unlocked.then(|| lock.texts(names));
        lock.into_iter().chain([update]).collect()
    }

    /// Writes everything besides tasks and projects: keys, effects, previews and the row of the queue.
    fn write_other_rows(&mut self) -> Vec<SqlStatement> {
        let mut statements = Vec::new();
        let new = std::mem::take(&mut self.new);
        if !new.bindings.is_empty() {
            statements.push(bind_keys(new.bindings));
        }
        let effects = new.effects.queries(SqlDialect::Postgres);
        statements.extend(effects.into_iter().map(SqlStatement::from));
        for (task, picture) in new.previews {
            let put = SqlStatement::new(
                "INSERT INTO previews (task, picture) VALUES ($1, $2) \
                 ON CONFLICT (task) DO UPDATE SET picture = excluded.picture",
            );
            let put = put.text(task.to_string());
            statements.push(put.bind(picture.to_vec(), Type::BYTEA));
        }
        if let Some(queue) = self.queue.take().filter(|queue| queue.is_changed) {
            let (worker, task) = queue
                .alone
                .map(crate::queue::claiming::WaitingAlone::into_parts)
                .unzip();
            let update = SqlStatement::new(
                "UPDATE queue SET token = $1, turn_now = $2, alone_worker = $3, alone_task = $4",
            );
            let update = update.int(queue.token).int(queue.turn_now);
            let update = update.bind(worker, Type::TEXT);
            statements.push(update.bind(task.map(|task: TaskId| task.to_string()), Type::TEXT));
        }
        statements
    }
}

/// Removes tasks with their idempotency keys.
fn delete_tasks(ids: Vec<String>) -> [SqlStatement; 2] {
    [
        "DELETE FROM idempotency WHERE task = ANY($1)",
        "DELETE FROM tasks WHERE id = ANY($1)",
    ]
    .map(|text| SqlStatement::new(text).texts(ids.clone()))
}

/// Adds bindings of idempotency keys.
fn bind_keys(bindings: Vec<NewBinding>) -> SqlStatement {
    let mut columns = (vec![], vec![], vec![], vec![], vec![]);
    for one in bindings {
        columns.0.push(one.project);
        columns.1.push(one.key);
        columns.2.push(one.fingerprint);
        columns.3.push(to_sql_int(one.expires_at_ms));
        columns.4.push(one.task.to_string());
    }
    SqlStatement::new(
        "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task) \
         SELECT * FROM unnest($1, $2, $3, $4, $5)",
    )
    .texts(columns.0)
    .texts(columns.1)
    .bind(columns.2, Type::BYTEA_ARRAY)
    .ints(columns.3)
    .texts(columns.4)
}

/// Adds to the tallies, in the order of these rows, which is the same in all processes.
fn add_tallies(rows: &[TallyRow]) -> Option<SqlStatement> {
    if rows.is_empty() {
        return None;
    }
    let add = SqlStatement::new(
        "INSERT INTO tallies AS t (day, project, model, completed, failed, cancelled, video_ms, engine_ms, \
         cost_micros) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (day, project, model) DO UPDATE SET completed = t.completed + excluded.completed, \
         failed = t.failed + excluded.failed, cancelled = t.cancelled + excluded.cancelled, \
         video_ms = t.video_ms + excluded.video_ms, engine_ms = t.engine_ms + excluded.engine_ms, \
         cost_micros = t.cost_micros + excluded.cost_micros",
    );
    Some(
        add.ints(column(rows, |row| row.day))
            .texts(rows.iter().map(|row| row.project.clone()).collect())
            .texts(rows.iter().map(|row| row.model.clone()).collect())
            .ints(column(rows, |row| row.tally.completed))
            .ints(column(rows, |row| row.tally.failed))
            .ints(column(rows, |row| row.tally.cancelled))
            .ints(column(rows, |row| row.tally.video_ms))
            .ints(column(rows, |row| row.tally.engine_ms))
            .ints(column(rows, |row| row.tally.cost_micros)),
    )
}

/// One column of these rows.
fn column<T>(rows: &[T], column: fn(&T) -> u64) -> Vec<i64> {
    rows.iter().map(|row| to_sql_int(column(row))).collect()
}
