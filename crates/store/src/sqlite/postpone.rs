//! Postpones the expiry of ended tasks whose times come from a clock that has been corrected since.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Event;
use rusqlite::params;

use super::batch::Batch;
use super::columns::int;
use super::fault::Done;
use super::job::Operation;
use super::rows;
use crate::{ExpiryCursor, Postpone};

impl Operation for Postpone {
    type Output = Option<ExpiryCursor>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Option<ExpiryCursor>> {
        // Last ones first: a postponed task ends up behind the place where the next call continues.
        let found = ended(self, batch)?;
        let more = found.len() == self.batch;
        let last = found.last().map(|(place, _)| *place);
        for (_, id) in found {
            let Some(id) = id else { continue };
            batch.apart(|batch| self.postpone(id, batch))?;
        }
        Ok(last.filter(|_| more))
    }
}

impl Postpone {
    fn postpone(&self, id: TaskId, batch: &mut Batch<'_>) -> Done<()> {
        let Some(before) = rows::find(batch.conn, id)? else {
            return Ok(());
        };
        let Some(until_ms) = before.task.expires_at_ms else {
            return Ok(());
        };
        let expires_at_ms = self.moved(until_ms, before.task.finished_at_ms);
        batch.expect(&before, Event::Postponed { expires_at_ms })?;
        Ok(())
    }
}

/// A batch of candidates, those that expire last first. One that ended at another time counts too,
/// without an id: a call must not search the whole store for the last one.
fn ended(request: &Postpone, batch: &Batch<'_>) -> Done<Vec<(ExpiryCursor, Option<TaskId>)>> {
    // A single upper bound, so that the index is entered where the last call ended.
    let last_ms = request.expires_before_ms().saturating_sub(1);
    let last_ms = last_ms.min(request.below.expires_at_ms);
    let mut found = Vec::new();
    for phase in ["completed", "failed"] {
        let mut query = batch.conn.prepare_cached(
            "SELECT expires_at_ms, seq, id, finished_at_ms FROM tasks WHERE phase = ?1 AND expires_at_ms >= ?2 \
             AND expires_at_ms <= ?3 AND (+expires_at_ms < ?4 OR +seq < ?5) \
             ORDER BY expires_at_ms DESC, seq DESC LIMIT ?6",
        )?;
        let mut rows = query.query(params![
            phase,
            int(request.from_ms),
            int(last_ms),
            int(request.below.expires_at_ms),
            int(request.below.number),
            int(request.batch as u64),
        ])?;
        while let Some(row) = rows.next()? {
            let place = ExpiryCursor {
                expires_at_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                number: row.get::<_, i64>(1)?.unsigned_abs(),
            };
            let ended_at_ms = row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs);
            let is_meant = ended_at_ms.is_some_and(|at_ms| request.is_meant(at_ms));
            // An unreadable id is left alone: its task ages like all others.
            let id = row.get_ref(2)?.as_str().ok();
            let id = id.filter(|_| is_meant).and_then(|id| id.parse().ok());
            found.push((place, id));
        }
    }
    found.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    found.truncate(request.batch);
    Ok(found)
}
