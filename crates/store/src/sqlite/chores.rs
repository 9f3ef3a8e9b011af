//! Operations on chores: lease and settle. Their times are wall time, since they outlive the
//! process; a time too far ahead comes from a wrong clock, and counts as past.

use kinora_contract::lifecycle::CallOff;
use rusqlite::{Row, params};

use super::batch::Batch;
use super::columns::int;
use super::fault::Done;
use super::gaps;
use super::job::Operation;
use crate::chores::{AHEAD_MS_MAX, DELETION_LEASE_MS};
use crate::{Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreWork, Gap};

impl Operation for ChoreRequest {
    type Output = Vec<Chore>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Chore>> {
        let now_ms = batch.now.wall_ms;
        let models = match &self.kind {
            ChoreKind::CallOff { models } => Some(serde_json::to_string(models)?),
            ChoreKind::RemoveFile | ChoreKind::LookForOrphans => None,
        };
        let mut query = batch.conn.prepare_cached(
            "SELECT number, kind, subject, model, ticket, attempts FROM chores \
             WHERE kind = ?1 AND (due_ms <= ?2 OR due_ms > ?3) \
             AND (?4 IS NULL OR model IN (SELECT value FROM json_each(?4))) \
             ORDER BY due_ms, number",
        )?;
        let mut rows = query.query(params![
            name(&self.kind),
            int(now_ms),
            int(now_ms.saturating_add(AHEAD_MS_MAX)),
            models,
        ])?;
        let mut due = Vec::new();
        // Damaged ones do not count.
        while due.len() < self.count
            && let Some(row) = rows.next()?
        {
            due.extend(read(row)?);
        }
        lease(batch, due, self.lease_ms)
    }
}

/// The chores for removing these files, leased to the process that deleted their task.
pub(super) fn take_files(batch: &mut Batch<'_>, keys: &[String]) -> Done<Vec<Chore>> {
    let mut query = batch.conn.prepare_cached(
        "SELECT number, kind, subject, model, ticket, attempts FROM chores \
         WHERE kind = 'remove_file' AND subject = ?1",
    )?;
    let mut found = Vec::new();
    for key in keys {
        let mut rows = query.query([key])?;
        while let Some(row) = rows.next()? {
            found.extend(read(row)?);
        }
    }
    drop(query);
    lease(batch, found, DELETION_LEASE_MS)
}

fn lease(batch: &mut Batch<'_>, chores: Vec<Chore>, lease_ms: u64) -> Done<Vec<Chore>> {
    let until_ms = batch.now.wall_ms.saturating_add(lease_ms);
    let mut leased = Vec::with_capacity(chores.len());
    for mut chore in chores {
        chore.token = batch.next_chore_token();
        chore.attempts = chore.attempts.saturating_add(1);
        let mut query = batch.conn.prepare_cached(
            "UPDATE chores SET due_ms = ?1, token = ?2, attempts = ?3 WHERE number = ?4",
        )?;
        query.execute(params![
            int(until_ms),
            int(chore.token),
            chore.attempts,
            int(chore.number)
        ])?;
        leased.push(chore);
    }
    Ok(leased)
}

/// Reads a row as a chore that is not leased yet. An unreadable row is skipped, and does not block
/// those after it.
fn read(row: &Row<'_>) -> Done<Option<Chore>> {
    let number: i64 = row.get(0)?;
    let text = |column: usize| -> Done<Option<String>> {
        let text = row.get_ref(column)?.as_str_or_null();
        Ok(text.unwrap_or_default().map(str::to_owned))
    };
    let work = match text(1)?.as_deref() {
        Some("remove_file") => text(2)?.map(ChoreWork::RemoveFile),
        Some("call_off") => call_off(text(2)?, text(3)?, text(4)?).map(ChoreWork::CallOff),
        Some("look_for_orphans") => Some(ChoreWork::LookForOrphans),
        _ => None,
    };
    let Some(work) = work else {
        tracing::error!(number, "damaged chore skipped");
        return Ok(None);
    };
    Ok(Some(Chore {
        number: number.unsigned_abs(),
        token: 0,
        attempts: row.get(5)?,
        work,
    }))
}

fn call_off(
    task: Option<String>,
    model: Option<String>,
    ticket: Option<String>,
) -> Option<CallOff> {
    Some(CallOff {
        task: task?.parse().ok()?,
        model: model?,
        ticket: ticket?,
    })
}

const fn name(kind: &ChoreKind) -> &'static str {
    match kind {
        ChoreKind::RemoveFile => "remove_file",
        ChoreKind::CallOff { .. } => "call_off",
        ChoreKind::LookForOrphans => "look_for_orphans",
    }
}

/// Settles chores.
#[derive(Debug)]
pub(super) struct Settle(pub(super) Vec<ChoreDone>);

impl Operation for Settle {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut done = batch
            .conn
            .prepare_cached("DELETE FROM chores WHERE number = ?1 AND token = ?2")?;
        let mut again = batch.conn.prepare_cached(
            "UPDATE chores SET due_ms = ?3, token = NULL WHERE number = ?1 AND token = ?2",
        )?;
        for ChoreDone {
            chore,
            again_after_ms,
        } in &self.0
        {
            let (number, token) = (int(chore.number), int(chore.token));
            match again_after_ms {
                None => done.execute([number, token])?,
                Some(after_ms) => {
                    let due_ms = batch.now.wall_ms.saturating_add(*after_ms);
                    again.execute([number, token, int(due_ms)])?
                }
            };
        }
        Ok(())
    }
}

/// Confirms that no files of tasks in these gaps are left.
#[derive(Debug)]
pub(super) struct CloseGaps(pub(super) Vec<Gap>);

impl Operation for CloseGaps {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        gaps::remove(&self.0, batch.conn)?;
        batch.gaps_mut().close(&self.0);
        Ok(())
    }
}
