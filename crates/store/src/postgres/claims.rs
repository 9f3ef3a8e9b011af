//! Claims and fetches: a transaction reads and locks the part of the queue that a claim or a fetch can
//! reach, and the shared rules choose the next task. One process does so at a time, so turns and slot
//! limits are exact over all processes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{TaskEvent, TaskRecord};
use kinora_contract::spec::SPEC_VERSION;
use tokio_postgres::Row;

use super::batch::{LaneTransaction, QueueSlice};
use super::fault::{PostgresFault, PostgresResult};
use super::rows;
use super::session::QueryPipeline;
use super::session::SqlStatement;
use crate::operations::claim::TAKEN_MAX;
use crate::queue::{ProjectTurns, QueueIndex, RecordChange};
use crate::{ClaimRequest, FETCH_PAUSE_MS_MAX, FetchRequest, LongTasks, StoreError};

/// Maximum number of tasks in one reading of the queue; a larger claim reads it again.
const ROUND_MAX: usize = 64;
/// Multiple of its even share of a claim that the first reading covers for each project. A project
/// with more turns is read again, [`BROADER`] times as far.
const BREADTH: u64 = 2;
const BROADER: u64 = 4;

/// The task that waits for this worker to be idle.
pub(super) async fn find_awaited(
    request: &ClaimRequest,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<Option<Arc<TaskRecord>>> {
    let alone = batch.queue.as_ref().and_then(|queue| queue.alone.as_ref());
    let Some(id) = alone.and_then(|next| next.awaits(request)) else {
        return Ok(None);
    };
    if batch.tasks.contains_key(&id) {
        return batch.find(id);
    }
    let text = format!("SELECT {} FROM tasks t WHERE id = $1", rows::columns("t"));
    let found = batch
        .query(SqlStatement::new(text).text(id.to_string()))
        .await?;
    Ok(found.first().and_then(|row| rows::read(row).ok()))
}

/// Makes sure that the transaction's part of the queue serves this request: that of the previous
/// claim, if it reaches as far. Returns whether anything waits.
pub(super) async fn load_claimable(
    request: &ClaimRequest,
    long: Option<LongTasks>,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<bool> {
    if !batch.is_claimable {
        return Ok(false);
    }
    let cost_max = long.and_then(|long| long.cost_max());
    // Claims of one transaction share a reading: a worker with four free slots sends four claims, and
    // reading the queue is the expensive part of each.
    let known = batch.part.take().filter(|part| {
        let is_same = part.models == request.models && part.worker == request.worker;
        is_same && part.cost_max == cost_max
    });
    let breadth = match known {
        Some(part) if part.left > 0 => {
            batch.part = Some(part);
            return Ok(true);
        }
        Some(part) => part.breadth,
        None => BREADTH,
    };
    let left = batch.claims.max(request.count).min(ROUND_MAX);
    let mut part = read_slice(request, cost_max, left, (breadth, 1), batch).await?;
    let mut depth = 1;
    // A project whose rows could all not be read (they are of a newer version, or damaged) may have
    // readable ones behind them: look four times as deep, until it has one or ends.
    while part.truncated.values().any(|left| *left == 0) {
        depth *= BROADER;
        part = read_slice(request, cost_max, left, (part.breadth, depth), batch).await?;
    }
    batch.part = Some(part);
    Ok(true)
}

/// How many projects may have their share of the worker's slots, so that a claim passes them over.
fn full_projects(request: &ClaimRequest) -> u64 {
    match request.project_slots_max {
        // No limit but the slot that always stays for others: one project at most can be full.
        0 => 1,
        share => (request.slots / share).clamp(1, ROUND_MAX) as u64,
    }
}

/// Claims a task of the part of the queue that [`load_claimable`] has read, and marks it there as claimed.
pub(super) fn claim(
    before: &Arc<TaskRecord>,
    event: TaskEvent,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<Option<Arc<TaskRecord>>> {
    // Any change drops the part. This one is applied to it as well, so it is taken out before and put
    // back after.
    let part = batch.part.take();
    let after = batch.expect(before, event)?;
    let Some(mut part) = part else {
        return Ok(after);
    };
    part.index.apply(&RecordChange {
        id: before.task.id,
        before: Some(before.clone()),
        after: after.clone(),
    });
    let project = &before.task.project;
    batch.project(project).turn = part.index.turns().position(project);
    batch.queue_mut()?.turn_now = part.index.turns().now();
    part.left -= 1;
    // The claimed task may have been the last one read of its project and model. More may wait behind it
    // in the table, and without them the project would lose its turn: read again, more broadly.
    if part.is_exhausted_after(before) {
        part.left = 0;
        part.breadth *= BROADER;
    }
    batch.part = Some(part);
    Ok(after)
}

impl QueueSlice {
    /// Whether unread tasks of the claimed task's project and model may be waiting.
    fn is_exhausted_after(&mut self, claimed: &TaskRecord) -> bool {
        let place = (
            claimed.task.project.clone(),
            claimed.task.spec.model.clone(),
        );
        self.truncated.get_mut(&place).is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        })
    }
}

/// Locks the queue, reads and locks the tasks that may be among the next `count`, and reads all
/// tasks that the worker runs. It reads `breadth` times the even share of each project, and all of that
/// `depth` times as deep. It passes over projects whose next task costs more than `cost_max`.
async fn read_slice(
    request: &ClaimRequest,
    cost_max: Option<u64>,
    count: usize,
    (breadth, depth): (u64, u64),
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<QueueSlice> {
    let mut asked = QueryPipeline::default();
    // First: the statements after it then see the state that the previous claim has left.
    let lock = batch.queue_lock_statement().map(|lock| asked.add(lock));
    let reach = count as u64;
    // Tasks changed in this transaction no longer wait, but the server cannot know that yet.
    let changed = batch.changes.iter().map(|change| change.id.to_string());
    // Tasks to read per project and model: `breadth` times the even share of a claim. Example: a claim of
    // 64 with 8 projects and breadth 2 reads 2 * 64 / 8 + 1 = 17 of each instead of 64, 136 rows in all.
    let each = "least($3, $5 * $3 / least($2, f.projects) + 1)";
    let may_lead = cost_max.map(|_| "cost <= $6 OR ticket IS NOT NULL");
    let mut candidates = candidates(1, "p.turn, h.seq", each, may_lead)
        .texts(request.models.clone())
        .int(reach + full_projects(request))
        .int(reach.saturating_mul(depth))
        .texts(changed.collect())
        .int(breadth);
    if let Some(cost_max) = cost_max {
        candidates = candidates.int(cost_max);
    }
    let candidates = asked.add(candidates);
    let running = "SELECT id, xmin FROM tasks WHERE place = 4 AND worker = $1";
    let running = asked.add(SqlStatement::new(running).text(request.worker.clone()));
    let mut answers = asked.send(batch.session).await?;
    if lock.is_some() {
        batch.set_queue(&answers.take(lock))?;
    }
    let (found, running) = (answers.take(Some(candidates)), answers.take(Some(running)));
    let mut index = empty_index(&found, batch)?;
    let mut seen = add_locked(&mut index, &found, batch)?;
    let truncated = count_truncated(&found, &index, reach)?;
    for record in load_running(&running, batch).await? {
        let id = record.task.id;
        if seen.insert(id) && !batch.tasks.contains_key(&id) {
            add_record(&mut index, Some(record));
        }
    }
    // Tasks claimed in this transaction run as well.
    let own = batch.tasks.iter().filter(|(id, _)| !seen.contains(id));
    for (_, slot) in own {
        add_record(&mut index, slot.now.clone().filter(|now| now.is_running()));
    }
    Ok(QueueSlice {
        models: request.models.clone(),
        worker: request.worker.clone(),
        index,
        cost_max,
        left: count,
        truncated,
        breadth,
    })
}

/// The records of running tasks, from memory where the row version matches. They are not locked: it only
/// matters that they run.
async fn load_running(
    found: &[Row],
    batch: &LaneTransaction<'_>,
) -> PostgresResult<Vec<Arc<TaskRecord>>> {
    let (mut running, mut unknown) = (Vec::with_capacity(found.len()), Vec::new());
    for row in found {
        let id = rows::id(row)?;
        match batch.runs.get(id, row.try_get(1)?) {
            Some(record) => running.push(record),
            None => unknown.push(id.to_string()),
        }
    }
    if !unknown.is_empty() {
        let columns = rows::columns("t");
        let text = format!("SELECT {columns} FROM tasks t WHERE id = ANY($1) AND place = 4");
        for row in &batch.query(SqlStatement::new(text).texts(unknown)).await? {
            running.extend(read_or_skip(row)?);
        }
    }
    Ok(running)
}

/// For each project and model with more tasks in the table than were read: the number of readable tasks
/// that were read. Only those that a claim of `reach` tasks could use up.
fn count_truncated(
    found: &[Row],
    index: &QueueIndex,
    reach: u64,
) -> PostgresResult<HashMap<(String, String), usize>> {
    let mut read: HashMap<(String, String), (u64, usize)> = HashMap::new();
    let mut limits = HashMap::new();
    for row in found {
        let place: (String, String) = (row.try_get("project")?, row.try_get("model")?);
        let limit = row.try_get::<_, i64>("each")?.unsigned_abs();
        limits.insert(place.clone(), limit);
        let (rows, readable) = read.entry(place).or_default();
        *rows += 1;
        *readable += usize::from(index.get(rows::id(row)?).is_some());
    }
    let cut = read.into_iter().filter(|(place, (rows, readable))| {
        let limit = limits.get(place).copied().unwrap_or(reach);
        *rows >= limit && (*readable as u64) < reach
    });
    Ok(cut
        .map(|(place, (_, readable))| (place, readable))
        .collect())
}

/// The first tasks of this place in the queue, of the first projects in this order (`h.seq`: the
/// acceptance of a project's first task of some model), with turn and last fetch of the project
/// after the columns of the task. `each` bounds the tasks read of one project and model: an
/// expression of the parameters and of `f.projects`, the number of projects that have any. Projects whose next task
/// fails the condition `may_lead` are passed over. The
/// parameters: models, maximum number of projects, maximum number of tasks of each, ids to skip.
/// Tasks of newer versions are left to newer programs.
fn candidates(place: i16, order: &str, each: &str, may_lead: Option<&str>) -> SqlStatement {
    let columns = rows::columns("t");
    let readable = format!("spec_version <= {SPEC_VERSION}");
    let (leads, own, first) = match may_lead {
        None => ("true", String::new(), ""),
        Some(may_lead) => (
            "(array_agg(o.leads ORDER BY o.priority, o.seq))[1]",
            format!(", priority, ({may_lead}) AS leads"),
            "AND id <> ALL($4::text[]) ",
        ),
    };
    SqlStatement::new(format!(
        "SELECT {columns}, f.turn, f.last_fetch, {each} AS each FROM (\
           SELECT p.name, p.turn, p.last_fetch, count(*) OVER () AS projects FROM projects p \
           CROSS JOIN LATERAL (\
             SELECT min(o.seq) AS seq, {leads} AS leads FROM unnest($1::text[]) AS m(model) CROSS JOIN LATERAL (\
               SELECT seq{own} FROM tasks WHERE project = p.name AND model = m.model AND place = {place} AND {readable} \
               {first}ORDER BY priority, seq LIMIT 1\
             ) o\
           ) h WHERE p.waiting > 0 AND h.seq IS NOT NULL AND h.leads ORDER BY {order} LIMIT $2\
         ) f CROSS JOIN unnest($1::text[]) AS m(model) CROSS JOIN LATERAL (\
           SELECT * FROM tasks WHERE project = f.name AND model = m.model AND place = {place} AND {readable} \
           AND id <> ALL($4::text[]) ORDER BY priority, seq LIMIT {each} FOR UPDATE SKIP LOCKED\
         ) t"
    ))
}

/// The index without tasks, with the clocks of the projects of these candidates.
fn empty_index(found: &[Row], batch: &LaneTransaction<'_>) -> PostgresResult<QueueIndex> {
    let (mut turns, mut last_fetches) = (Vec::new(), Vec::new());
    for row in found {
        let project: Arc<str> = row.try_get::<_, &str>("project")?.into();
        let stored_turn = row.try_get::<_, i64>("turn")?.unsigned_abs();
        let stored_fetch = row.try_get::<_, i64>("last_fetch")?.unsigned_abs();
        // Clocks that this transaction has moved are not in the table yet.
        let own = batch.projects.get(&*project);
        let (turn, fetch) = own.map_or((0, 0), |own| (own.turn, own.last_fetch));
        turns.push((project.clone(), stored_turn.max(turn)));
        last_fetches.push((project, stored_fetch.max(fetch)));
    }
    let now = batch.queue.as_ref().map_or(0, |queue| queue.turn_now);
    Ok(QueueIndex::partial(
        ProjectTurns::from_stored(now, turns),
        last_fetches,
    ))
}

/// Adds locked tasks to the index, with the changes of this transaction. Skips unreadable ones,
/// such as those of a newer version; nothing locks them for long.
fn add_locked(
    index: &mut QueueIndex,
    found: &[Row],
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<BTreeSet<TaskId>> {
    let mut seen = BTreeSet::new();
    for row in found {
        let id = rows::id(row)?;
        batch.add_loaded(id, rows::read(row))?;
        let record = match batch.find(id) {
            Err(PostgresFault::Job(StoreError::Corrupt(text))) => {
                tracing::debug!(text, "unreadable task left in the queue");
                None
            }
            found => found?,
        };
        if seen.insert(id) {
            add_record(index, record);
        }
    }
    Ok(seen)
}

fn add_record(index: &mut QueueIndex, record: Option<Arc<TaskRecord>>) {
    if let Some(record) = record {
        index.apply(&RecordChange {
            id: record.task.id,
            before: None,
            after: Some(record),
        });
    }
}

/// A row to read without changing it.
pub(super) fn read_or_skip(row: &Row) -> PostgresResult<Option<Arc<TaskRecord>>> {
    match rows::read(row) {
        Err(PostgresFault::Job(StoreError::Corrupt(_))) => Ok(None),
        read => read.map(Some),
    }
}

/// Maximum number of tasks that become fetchable again in one transaction, which keeps it short.
const DUE_MAX: u64 = 500;

/// Ends the pauses and leases that are over, and reads the part of the queue from which fetches are
/// taken. Returns whether there is anything to fetch.
pub(super) async fn load_fetchable(
    request: &FetchRequest,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<bool> {
    let any = format!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM tasks WHERE place = 2) \
         OR EXISTS (SELECT 1 FROM tasks WHERE {PAST_ENDS}) OR EXISTS (SELECT 1 FROM tasks WHERE {FAR_ENDS})"
    );
    let any = request.bind_limits(SqlStatement::new(any), batch);
    if batch.query(any).await?.is_empty() {
        return Ok(false);
    }
    batch.lock_queue().await?;
    let index = read_fetchable(request, batch).await?;
    batch.fetchable = Some(index);
    Ok(true)
}

/// Begins a fetch of a task that was reached.
pub(super) fn begin_fetch(
    before: &Arc<TaskRecord>,
    event: TaskEvent,
    token: u64,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<Option<Arc<TaskRecord>>> {
    // A change makes the part outdated, but for this one.
    let index = batch.fetchable.take();
    let after = batch.expect(before, event)?;
    batch.project(&before.task.project).last_fetch = token;
    if let Some(mut index) = index {
        index.apply(&RecordChange {
            id: before.task.id,
            before: Some(before.clone()),
            after: after.clone(),
        });
        batch.fetchable = Some(index);
    }
    Ok(after)
}

/// Pauses and leases that may be over: their end is past, or further ahead than any lease lasts.
const PAST_ENDS: &str = "place = 3 AND fetch_until_ms <= $1";
const FAR_ENDS: &str =
    "place = 3 AND fetch_until_ms > $2 AND (fetch_token IS NOT NULL OR fetch_until_ms > $3)";

impl FetchRequest {
    /// Sets the parameters of [`PAST_ENDS`] and [`FAR_ENDS`].
    fn bind_limits(&self, statement: SqlStatement, batch: &LaneTransaction<'_>) -> SqlStatement {
        let now_ms = batch.now.lease_ms;
        // No end can be further ahead than the length of a lease or a pause. One that is twice as far was
        // set before the server's clock was put back, and would last as long as the clock had been ahead.
        statement
            .int(now_ms)
            .int(now_ms.saturating_add(self.lease_ms.saturating_mul(2)))
            .int(now_ms.saturating_add(FETCH_PAUSE_MS_MAX.saturating_mul(2)))
    }
}

/// Reads and locks the tasks that need references, including those whose pause or lease is over,
/// and reads those with a fetch in progress.
async fn read_fetchable(
    request: &FetchRequest,
    batch: &mut LaneTransaction<'_>,
) -> PostgresResult<QueueIndex> {
    let (columns, now_ms) = (rows::columns("t"), batch.now.lease_ms);
    let reach = request.count.min(TAKEN_MAX) as u64;
    let changed = batch.changes.iter().map(|change| change.id.to_string());
    let order = "(SELECT count(*) FROM tasks WHERE place = 3 AND project = p.name AND fetch_token IS NOT NULL \
                 AND fetch_until_ms > $5), p.last_fetch, h.seq";
    let back = SqlStatement::new(format!(
        "SELECT {columns}, p.turn, p.last_fetch FROM tasks t JOIN projects p ON p.name = t.project \
         WHERE t.id IN ((SELECT id FROM tasks WHERE {PAST_ENDS} AND spec_version <= {SPEC_VERSION} \
         ORDER BY fetch_until_ms LIMIT $4) UNION ALL (SELECT id FROM tasks WHERE {FAR_ENDS} \
         AND spec_version <= {SPEC_VERSION} ORDER BY fetch_until_ms LIMIT $4)) FOR UPDATE OF t SKIP LOCKED"
    ));
    let away = SqlStatement::new(format!(
        "SELECT {columns} FROM tasks t WHERE place = 3 AND fetch_token IS NOT NULL AND fetch_until_ms > $1"
    ));
    let statements = vec![
        request.bind_limits(back, batch).int(DUE_MAX),
        candidates(2, order, "$3", None)
            .texts(request.models.clone())
            .int(reach + 1)
            .int(reach)
            .texts(changed.collect())
            .int(now_ms),
        away.int(now_ms),
    ];
    let mut answers = batch.session.run_all(&statements).await?.into_iter();
    let back = answers.next().unwrap_or_default();
    let mut found = answers.next().unwrap_or_default();
    let away = answers.next().unwrap_or_default();
    for row in &back {
        let id = rows::id(row)?;
        batch.add_loaded(id, rows::read(row))?;
        if let Ok(Some(record)) = batch.find(id)
            && request.is_over(record.references, &batch.now)
        {
            // Refused if this transaction has already taken it again.
            let _ = batch.apply(&record, TaskEvent::FetchDue);
        }
    }
    found.extend(back);
    let mut index = empty_index(&found, batch)?;
    let mut seen = add_locked(&mut index, &found, batch)?;
    for row in &away {
        let id = rows::id(row)?;
        if seen.insert(id) && !batch.tasks.contains_key(&id) {
            add_record(&mut index, read_or_skip(row)?);
        }
    }
    let own = batch.tasks.iter().filter(|(id, _)| !seen.contains(id));
    for (_, slot) in own {
        let now = slot.now.clone();
        add_record(
            &mut index,
            now.filter(|now| now.references.fetch_token().is_some()),
        );
    }
    Ok(index)
}
