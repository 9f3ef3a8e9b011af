//! Operations of the fetch stage: take tasks with missing references. The lease of a fetch is in
//! the task's row, since several processes serve the store.

use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record};
use kinora_contract::spec::SPEC_VERSION;

use super::batch::Batch;
use super::claims::{candidates, fill, join, part, read_or_skip};
use super::fault::Done;
use super::rows;
use super::statement::Statement;
use crate::operations::fetch::TAKEN_MAX;
use crate::queue::{Change, Index};
use crate::{FETCH_PAUSE_MS_MAX, FetchRequest};

/// Maximum number of tasks that become fetchable again in one transaction, which keeps it short.
const BACK_MAX: u64 = 500;

/// Ends the pauses and leases that are over, and reads the part of the queue from which fetches are
/// taken. Returns whether there is anything to fetch.
pub(super) async fn reach(request: &FetchRequest, batch: &mut Batch<'_>) -> Done<bool> {
    let any = format!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM tasks WHERE place = 2) \
         OR EXISTS (SELECT 1 FROM tasks WHERE {PAST}) OR EXISTS (SELECT 1 FROM tasks WHERE {AHEAD})"
    );
    let any = request.bound(Statement::new(any), batch);
    if batch.query(any).await?.is_empty() {
        return Ok(false);
    }
    batch.lock_queue().await?;
    let index = read(request, batch).await?;
    batch.fetchable = Some(index);
    Ok(true)
}

/// Begins a fetch of a task that was reached.
pub(super) fn begin(
    before: &Arc<Record>,
    event: Event,
    token: u64,
    batch: &mut Batch<'_>,
) -> Done<Option<Arc<Record>>> {
    // A change makes the part outdated, but for this one.
    let index = batch.fetchable.take();
    let after = batch.expect(before, event)?;
    batch.project(&before.task.project).last_fetch = token;
    if let Some(mut index) = index {
        index.apply(&Change {
            id: before.task.id,
            before: Some(before.clone()),
            after: after.clone(),
        });
        batch.fetchable = Some(index);
    }
    Ok(after)
}

/// Pauses and leases that may be over: their ends are past, or further ahead than the server's clock grants.
const PAST: &str = "place = 3 AND fetch_until_ms <= $1";
const AHEAD: &str =
    "place = 3 AND fetch_until_ms > $2 AND (fetch_token IS NOT NULL OR fetch_until_ms > $3)";

impl FetchRequest {
    /// Sets the parameters of [`PAST`] and [`AHEAD`].
    fn bound(&self, statement: Statement, batch: &Batch<'_>) -> Statement {
        let now_ms = batch.now.lease_ms;
        let ahead_ms = |length_ms: u64| now_ms.saturating_add(length_ms.saturating_mul(2));
        let statement = statement.int(now_ms).int(ahead_ms(self.lease_ms));
        statement.int(ahead_ms(FETCH_PAUSE_MS_MAX))
    }
}

/// Reads and locks the tasks that need references, including those whose pause or lease is over,
/// and reads those with a fetch in progress.
async fn read(request: &FetchRequest, batch: &mut Batch<'_>) -> Done<Index> {
    let (columns, now_ms) = (rows::columns("t"), batch.now.lease_ms);
    let reach = request.count.min(TAKEN_MAX) as u64;
    let changed = batch.changes.iter().map(|change| change.id.to_string());
    let order = "(SELECT count(*) FROM tasks WHERE place = 3 AND project = p.name AND fetch_token IS NOT NULL \
                 AND fetch_until_ms > $5), p.last_fetch, h.seq";
    let back = Statement::new(format!(
        "SELECT {columns}, p.turn, p.last_fetch FROM tasks t JOIN projects p ON p.name = t.project \
         WHERE t.id IN ((SELECT id FROM tasks WHERE {PAST} AND spec_version <= {SPEC_VERSION} \
         ORDER BY fetch_until_ms LIMIT $4) UNION ALL (SELECT id FROM tasks WHERE {AHEAD} \
         AND spec_version <= {SPEC_VERSION} ORDER BY fetch_until_ms LIMIT $4)) FOR UPDATE OF t SKIP LOCKED"
    ));
    let away = Statement::new(format!(
        "SELECT {columns} FROM tasks t WHERE place = 3 AND fetch_token IS NOT NULL AND fetch_until_ms > $1"
    ));
    let statements = vec![
        request.bound(back, batch).int(BACK_MAX),
        candidates(2, order, "$3", None)
            .texts(request.models.clone())
            .int(reach + 1)
            .int(reach)
            .texts(changed.collect())
            .int(now_ms),
        away.int(now_ms),
    ];
    let mut answers = batch.session.run_all(&statements).await?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    let (back, mut found, away) = (next(), next(), next());
    for row in &back {
        let id = rows::id(row)?;
        batch.keep(id, rows::read(row))?;
        if let Ok(Some(record)) = batch.find(id)
            && request.is_over(record.references, &batch.now)
        {
            // Refused if this transaction has already taken it again.
            let _ = batch.apply(&record, Event::FetchDue);
        }
    }
    found.extend(back);
    let mut index = part(&found, batch)?;
    let mut seen = fill(&mut index, &found, batch)?;
    for row in &away {
        let id = rows::id(row)?;
        if seen.insert(id) && !batch.tasks.contains_key(&id) {
            join(&mut index, read_or_skip(row)?);
        }
    }
    let own = batch.tasks.iter().filter(|(id, _)| !seen.contains(id));
    for (_, slot) in own {
        let now = slot.now.clone();
        join(
            &mut index,
            now.filter(|now| now.references.fetch().is_some()),
        );
    }
    Ok(index)
}
