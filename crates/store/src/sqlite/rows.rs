//! Rows of the table `tasks`: conversion to records and back.

use std::borrow::Cow;
use std::sync::Arc;

use kinora_contract::lifecycle::{ReferenceState, StoredLease, TaskRecord};
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{Artifact, Priority, Task, TaskCost, TaskId, TaskState, Warning};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde_json::{from_str, to_string};

use super::fault::{SqliteFault, SqliteResult};
pub(super) use crate::sql::{artifact_keys, phase_name, to_sql_int};
use crate::{HELD_RESULTS_MAX, QuotaUsage, StoreContents, sql};

/// The last id of a project; the first of all if it has no task.
pub(super) fn newest_id(conn: &Connection, project: &str) -> SqliteResult<TaskId> {
    let mut query = conn.prepare_cached(
        "SELECT id FROM tasks WHERE project = ?1 AND phase <> 'expired' ORDER BY id DESC LIMIT 1",
    )?;
    let found = query.query_row([project], |row| row.get::<_, String>(0));
    // An unreadable id is ignored.
    let found = found.optional()?.and_then(|id| id.parse().ok());
    Ok(found.unwrap_or_default())
}

/// The record with this id.
pub(super) fn find(conn: &Connection, id: TaskId) -> SqliteResult<Option<Arc<TaskRecord>>> {
    let mut query = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1"))?;
    let mut rows = query.query([id.to_string()])?;
    let found = rows.next()?.map(read).transpose()?;
    // A damaged index leads to another task's row, which by itself looks intact.
    if found.as_ref().is_some_and(|record| record.task.id != id) {
        return Err(SqliteFault::Corrupt(format!(
            "the row of {id} is another's"
        )));
    }
    Ok(found.map(Arc::new))
}

/// Adds a waiting task.
pub(super) fn add(conn: &Connection, record: &TaskRecord) -> SqliteResult<()> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO tasks (seq, id, project, phase, progress, attempt, created_at_ms, \
         spec_version, spec, metadata, priority, reference_bytes, charged_bytes, texts_sum, state_sum, trace, \
         price) VALUES (?1, ?2, ?3, 'waiting', 0, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let task = &record.task;
    let (spec, metadata) = (to_string(&task.spec)?, to_string(&task.metadata)?);
    let texts = StateTexts::from_record(record)?;
    statement.execute(params![
        to_sql_int(record.seq),
        task.id.to_string(),
        task.project,
        to_sql_int(task.created_at_ms),
        task.spec.version,
        spec,
        metadata,
        task.priority.rank(),
        to_sql_int(record.reference_bytes),
        to_sql_int(record.charged_bytes),
        request_checksum(task, &spec, &metadata),
        state_checksum(record, &texts),
        task.trace.map(|trace| trace.to_string()),
        texts.price,
    ])?;
    Ok(())
}

/// Writes the changed columns of a record, by compare-and-set on phase and token.
pub(super) fn store(
    conn: &Connection,
    before: &TaskRecord,
    after: &TaskRecord,
) -> SqliteResult<()> {
    if Arc::ptr_eq(&before.task, &after.task) {
        return store_references(conn, before, after);
    }
    // Most writes of a running task only extend its lease. They leave the indexed columns alone, and
    // with them the pages of the indexes.
    if before.is_running() && after.is_running() {
        renew(conn, before, after)
    } else {
        update(conn, before, after)
    }
}

/// Writes the state of the references. Fetches are leased only in memory.
fn store_references(
    conn: &Connection,
    before: &TaskRecord,
    after: &TaskRecord,
) -> SqliteResult<()> {
    if after.references == ReferenceState::AtHand && before.references != ReferenceState::AtHand {
        set_references_ready(conn, after.seq)?;
    }
    if before.reference_bytes != after.reference_bytes {
        set_reference_bytes(conn, after)?;
    }
    Ok(())
}

fn update(conn: &Connection, before: &TaskRecord, after: &TaskRecord) -> SqliteResult<()> {
    let task = &after.task;
    let texts = StateTexts::from_record(after)?;
    let mut query = conn.prepare_cached(
        "UPDATE tasks SET phase = :phase, progress = :progress, attempt = :attempt, \
         engine = :engine, started_at_ms = :started, finished_at_ms = :finished, \
         expires_at_ms = :expires, lease_token = :token, lease_until_ms = :until, \
         worker = :worker, artifact = :artifact, failure = :failure, kept = :ticket, \
         references_ready = :ready, charged_bytes = :charged, deaths = :deaths, \
         warnings = :warnings, price = :price, state_sum = :sum \
         WHERE seq = :seq AND phase = :was AND lease_token IS :held",
    )?;
    let changed = query.execute(named_params! {
        ":phase": phase_name(task.state.phase()),
        ":progress": task.progress,
        ":attempt": task.attempt,
        ":engine": task.engine,
        ":started": task.started_at_ms.map(to_sql_int),
        ":finished": task.finished_at_ms.map(to_sql_int),
        ":expires": task.expires_at_ms.map(to_sql_int),
        ":token": after.token().map(to_sql_int),
        ":until": after.lease.as_ref().map(|held| to_sql_int(held.until_ms)),
        ":worker": after.lease.as_ref().map(|held| &held.worker),
        ":artifact": texts.artifact,
        ":failure": texts.failure,
        ":warnings": texts.warnings,
        ":price": texts.price,
        ":ticket": after.ticket.as_deref(),
        ":charged": to_sql_int(after.charged_bytes),
        ":deaths": after.deaths,
        ":sum": state_checksum(after, &texts),
        ":ready": after.references == ReferenceState::AtHand,
        ":seq": to_sql_int(before.seq),
        ":was": phase_name(before.task.state.phase()),
        ":held": before.token().map(to_sql_int),
    })?;
    expect_one(changed)?;
    set_texts(conn, before, after)
}

/// Writes spec and metadata if they were completed or dropped.
fn set_texts(conn: &Connection, before: &TaskRecord, after: &TaskRecord) -> SqliteResult<()> {
    let (was, is) = (&before.task, &after.task);
    if was.spec == is.spec && was.metadata == is.metadata {
        return Ok(());
    }
    let mut query = conn.prepare_cached(
        "UPDATE tasks SET spec = ?1, metadata = ?2, texts_sum = ?3 WHERE seq = ?4",
    )?;
    let (spec, metadata) = (to_string(&is.spec)?, to_string(&is.metadata)?);
    let sum = request_checksum(is, &spec, &metadata);
    expect_one(query.execute(params![spec, metadata, sum, to_sql_int(after.seq)])?)
}

/// Writes the size of a record's references.
fn set_reference_bytes(conn: &Connection, record: &TaskRecord) -> SqliteResult<()> {
    let mut query = conn.prepare_cached(
        "UPDATE tasks SET reference_bytes = ?1, charged_bytes = ?2 WHERE seq = ?3",
    )?;
    let (references, charged) = (
        to_sql_int(record.reference_bytes),
        to_sql_int(record.charged_bytes),
    );
    expect_one(query.execute(params![references, charged, to_sql_int(record.seq)])?)
}

/// Writes a project's usage; a project without tasks has no row.
pub(super) fn set_usage(conn: &Connection, project: &str, usage: QuotaUsage) -> SqliteResult<()> {
    if usage == QuotaUsage::default() {
        let mut query = conn.prepare_cached("DELETE FROM usage WHERE project = ?1")?;
        query.execute([project])?;
        return Ok(());
    }
    let mut query = conn.prepare_cached(
        "INSERT OR REPLACE INTO usage (project, bytes, tasks) VALUES (?1, ?2, ?3)",
    )?;
    query.execute(params![
        project,
        to_sql_int(usage.bytes),
        to_sql_int(usage.tasks)
    ])?;
    Ok(())
}

/// Usage of each project.
pub(super) fn usages(conn: &Connection) -> SqliteResult<Vec<(String, QuotaUsage)>> {
    let mut query = conn.prepare("SELECT project, bytes, tasks FROM usage")?;
    let usages = query.query_map([], |row| {
        let usage = QuotaUsage {
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
            tasks: row.get::<_, i64>(2)?.unsigned_abs(),
        };
        Ok((row.get(0)?, usage))
    })?;
    Ok(usages.collect::<Result<_, _>>()?)
}

/// Extends a lease without touching indexed columns.
pub(super) fn renew(
    conn: &Connection,
    before: &TaskRecord,
    after: &TaskRecord,
) -> SqliteResult<()> {
    let mut query = conn.prepare_cached(
        "UPDATE tasks SET progress = ?1, engine = ?2, lease_until_ms = ?3, warnings = ?4, \
         price = ?5, state_sum = ?6 WHERE seq = ?7 AND phase = 'running' AND lease_token = ?8",
    )?;
    let texts = StateTexts::from_record(after)?;
    let changed = query.execute(params![
        after.task.progress,
        after.task.engine,
        after.lease.as_ref().map(|held| to_sql_int(held.until_ms)),
        texts.warnings,
        texts.price,
        state_checksum(after, &texts),
        to_sql_int(after.seq),
        after.token().map(to_sql_int),
    ])?;
    expect_one(changed)?;
    if before.ticket != after.ticket {
        let mut query = conn.prepare_cached("UPDATE tasks SET kept = ?1 WHERE seq = ?2")?;
        expect_one(query.execute(params![after.ticket.as_deref(), to_sql_int(after.seq)])?)?;
    }
    set_texts(conn, before, after)
}

/// Records that all references of a waiting task are stored.
fn set_references_ready(conn: &Connection, seq: u64) -> SqliteResult<()> {
    let mut query = conn.prepare_cached(
        "UPDATE tasks SET references_ready = 1 WHERE seq = ?1 AND phase = 'waiting'",
    )?;
    expect_one(query.execute([to_sql_int(seq)])?)
}

/// Sets one of the counters.
pub(super) fn set_counter(conn: &Connection, name: &str, value: u64) -> SqliteResult<()> {
    let mut query = conn.prepare_cached("UPDATE counters SET value = ?1 WHERE name = ?2")?;
    expect_one(query.execute(params![to_sql_int(value), name])?)
}

/// Reads one of the counters.
pub(super) fn counter(conn: &Connection, name: &str) -> SqliteResult<u64> {
    let mut query = conn.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
    let value = query
        .query_row([name], |row| row.get::<_, i64>(0))
        .optional()?;
    let value = value.and_then(|value| u64::try_from(value).ok());
    value.ok_or_else(|| SqliteFault::Corrupt(format!("the counter {name} is missing")))
}

/// Whether the store has tasks, and the keys of its latest results, to compare with the result store.
pub(super) fn holds(conn: &Connection) -> SqliteResult<StoreContents> {
    let tasks = conn.prepare("SELECT 1 FROM tasks LIMIT 1")?.exists([])?;
    let mut query = conn.prepare(
        "SELECT artifact FROM tasks WHERE phase = 'completed' AND expires_at_ms IS NOT NULL \
         ORDER BY expires_at_ms DESC LIMIT ?1",
    )?;
    let artifacts = query.query_map([HELD_RESULTS_MAX], |row| row.get::<_, String>(0))?;
    // Reading the task reports an unreadable artifact.
    let artifacts = artifacts.filter_map(Result::ok);
    let results = artifacts.filter_map(|text| from_str::<Artifact>(&text).ok());
    Ok(StoreContents {
        tasks,
        results: results.map(|artifact| artifact.video.key).collect(),
    })
}

/// The task id of a row.
pub(super) fn id(row: &Row<'_>) -> SqliteResult<TaskId> {
    let id = row.get_ref(const { column_index("id") })?.as_str()?;
    id.parse()
        .map_err(|error| SqliteFault::Corrupt(format!("{id}: {error}")))
}

/// Reads a row of [`COLUMNS`].
pub(super) fn read(row: &Row<'_>) -> SqliteResult<TaskRecord> {
    let version: u32 = row.get(const { column_index("spec_version") })?;
    if version > SPEC_VERSION {
        return Err(SqliteFault::Corrupt(format!(
            "a task's spec has version {version}, this program knows {SPEC_VERSION}"
        )));
    }
    let task = Task {
        id: id(row)?,
        project: row.get(const { column_index("project") })?,
        spec: from_str(row.get_ref(const { column_index("spec") })?.as_str()?)?,
        metadata: from_str(row.get_ref(const { column_index("metadata") })?.as_str()?)?,
        priority: priority(row.get(const { column_index("priority") })?)?,
        state: state(row)?,
        progress: row.get(const { column_index("progress") })?,
        created_at_ms: time(row, const { column_index("created_at_ms") })?.unwrap_or(0),
        started_at_ms: time(row, const { column_index("started_at_ms") })?,
        finished_at_ms: time(row, const { column_index("finished_at_ms") })?,
        expires_at_ms: time(row, const { column_index("expires_at_ms") })?,
        attempt: row.get(const { column_index("attempt") })?,
        engine: row.get(const { column_index("engine") })?,
        warnings: warnings(row)?,
        trace: sql::parse_trace(
            row.get_ref(const { column_index("trace") })?
                .as_str_or_null()?,
        ),
        cost: price(row)?,
    };
    let lease = time(row, const { column_index("lease_token") })?.map(|token| {
        let until_ms = time(row, const { column_index("lease_until_ms") })?.unwrap_or(0);
        let worker: Option<String> = row.get(const { column_index("worker") })?;
        Ok::<_, SqliteFault>(StoredLease {
            token,
            until_ms,
            ends_ms: 0,
            worker: worker.unwrap_or_default(),
        })
    });
    let seq = time(row, const { column_index("seq") })?.unwrap_or(0);
    let ready: bool = row.get(const { column_index("references_ready") })?;
    let ticket = row
        .get_ref(const { column_index("kept") })?
        .as_str_or_null()?;
    let record = TaskRecord {
        seq,
        references: ReferenceState::from_stored(ready, &task),
        task: Arc::new(task),
        lease: lease.transpose()?,
        ticket: ticket.map(Arc::from),
        reference_bytes: time(row, const { column_index("reference_bytes") })?.unwrap_or(0),
        charged_bytes: time(row, const { column_index("charged_bytes") })?.unwrap_or(0),
        deaths: row.get(const { column_index("deaths") })?,
    };
    check_row(row, &record)?;
    Ok(record)
}

fn state(row: &Row<'_>) -> SqliteResult<TaskState> {
    Ok(
        match row.get_ref(const { column_index("phase") })?.as_str()? {
            "waiting" => TaskState::Waiting,
            "running" => TaskState::Running,
            "completed" => TaskState::Completed(from_str(
                row.get_ref(const { column_index("artifact") })?.as_str()?,
            )?),
            "failed" => TaskState::Failed(from_str(
                row.get_ref(const { column_index("failure") })?.as_str()?,
            )?),
            "expired" => TaskState::Expired,
            other => return Err(SqliteFault::Corrupt(format!("unknown phase {other:?}"))),
        },
    )
}

/// Parses a stored priority.
fn priority(rank: i16) -> SqliteResult<Priority> {
    let known = Priority::from_rank(rank);
    known.ok_or_else(|| SqliteFault::Corrupt(format!("unknown priority {rank}")))
}

fn warnings(row: &Row<'_>) -> SqliteResult<Vec<Warning>> {
    let text = row
        .get_ref(const { column_index("warnings") })?
        .as_str_or_null()?;
    Ok(match text {
        Some(text) => from_str(text)?,
        None => Vec::new(),
    })
}

fn price(row: &Row<'_>) -> SqliteResult<Option<TaskCost>> {
    let text = row
        .get_ref(const { column_index("price") })?
        .as_str_or_null()?;
    Ok(text.map(from_str).transpose()?)
}

fn time(row: &Row<'_>, column: usize) -> SqliteResult<Option<u64>> {
    let value: Option<i64> = row.get(column)?;
    let unsigned = value.map(u64::try_from).transpose();
    unsigned.map_err(|_| {
        let name = COLUMNS.split(", ").nth(column).unwrap_or_default();
        SqliteFault::Corrupt(format!("{name} is negative"))
    })
}

/// Fails unless a statement changed one row: if memory and disk disagree, nothing may be changed.
fn expect_one(changed: usize) -> SqliteResult<()> {
    if changed == 1 {
        Ok(())
    } else {
        Err(SqliteFault::Corrupt(
            "a row differs from the last write".to_owned(),
        ))
    }
}

/// The columns of a record ([`super::rows::read`]).
pub(super) const COLUMNS: &str = "seq, id, project, phase, progress, attempt, engine, \
     created_at_ms, started_at_ms, finished_at_ms, expires_at_ms, lease_token, lease_until_ms, \
     worker, artifact, failure, spec_version, spec, metadata, kept, references_ready, warnings, \
     reference_bytes, charged_bytes, deaths, priority, texts_sum, state_sum, trace, price";

/// The index of a column in [`COLUMNS`], computed at compile time: looking up names in each row
/// would double the time of reading a page.
pub(super) const fn column_index(name: &str) -> usize {
    let (all, name) = (COLUMNS.as_bytes(), name.as_bytes());
    let (mut place, mut start) = (0, 0);
    loop {
        assert!(start < all.len(), "no such column");
        let mut end = start;
        let mut same = true;
        while end < all.len() && all[end] != b',' {
            same &= end - start < name.len() && all[end] == name[end - start];
            end += 1;
        }
        if same && end - start == name.len() {
            return place;
        }
        (place, start) = (place + 1, end + 2);
    }
}

/// Checksum of a task, with its texts as stored.
pub(super) fn request_checksum(task: &Task, spec: &str, metadata: &str) -> i64 {
    let sum = RowChecksum::new()
        .text(&task.id.to_string())
        .text(&task.project)
        .number(as_stored(task.created_at_ms))
        .text(spec)
        .text(metadata);
    // Omitted for the default, so that checksums from before priorities existed stay valid.
    let sum = match task.priority {
        Priority::Normal => sum,
        other => sum.text(other.name()),
    };
    i64::from(sum.finish())
}

/// Texts of a task's state as stored.
#[derive(Debug, Default)]
pub(super) struct StateTexts<'a> {
    pub(super) artifact: Option<Cow<'a, str>>,
    pub(super) failure: Option<Cow<'a, str>>,
    pub(super) warnings: Option<Cow<'a, str>>,
    pub(super) price: Option<Cow<'a, str>>,
}

impl<'a> StateTexts<'a> {
    /// The texts of a record to write.
    fn from_record(record: &TaskRecord) -> SqliteResult<Self> {
        let task = &record.task;
        let mut texts = Self::default();
        match &task.state {
            TaskState::Completed(artifact) => texts.artifact = Some(to_string(artifact)?.into()),
            TaskState::Failed(failure) => texts.failure = Some(to_string(failure)?.into()),
            _ => {}
        }
        if !task.warnings.is_empty() {
            texts.warnings = Some(to_string(&task.warnings)?.into());
        }
        if let Some(cost) = &task.cost {
            texts.price = Some(to_string(cost)?.into());
        }
        Ok(texts)
    }

    /// The texts of a row.
    fn from_row(row: &'a Row<'_>) -> SqliteResult<Self> {
        Ok(Self {
            artifact: stored_text(row, const { column_index("artifact") })?,
            failure: stored_text(row, const { column_index("failure") })?,
            warnings: stored_text(row, const { column_index("warnings") })?,
            price: stored_text(row, const { column_index("price") })?,
        })
    }
}

fn stored_text<'a>(row: &'a Row<'_>, column: usize) -> SqliteResult<Option<Cow<'a, str>>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    Ok(text.map(Cow::Borrowed))
}

/// The checksum of a task's state.
pub(super) fn state_checksum(record: &TaskRecord, texts: &StateTexts<'_>) -> i64 {
    // Columns that change without a new sum are left out: `kept` (the ticket), which a renewal writes
    // by itself, the lease's end, and the sizes of references. A field that is added here would make
    // all stored sums wrong, so new fields join only where they differ from their default.
    let task = &record.task;
    let sum = RowChecksum::new()
        .number(as_stored(record.seq))
        .text(phase_name(task.state.phase()))
        .number(u64::from(task.attempt))
        .optional_number(task.started_at_ms.map(as_stored))
        .optional_number(task.finished_at_ms.map(as_stored))
        .optional_number(task.expires_at_ms.map(as_stored))
        .optional_number(record.token().map(as_stored))
        .number(u64::from(task.progress))
        .optional_text(task.engine.as_deref())
        .optional_text(texts.artifact.as_deref())
        .optional_text(texts.failure.as_deref())
        .optional_text(texts.warnings.as_deref());
    // Omitted without a cost, so that checksums from before there were costs stay valid.
    let sum = match texts.price.as_deref() {
        Some(price) => sum.text(price),
        None => sum,
    };
    i64::from(sum.finish())
}

/// A number as it will be read back.
fn as_stored(value: u64) -> u64 {
    to_sql_int(value).unsigned_abs()
}

/// Whether the record read from `row` matches its checksums.
fn check_row(row: &Row<'_>, record: &TaskRecord) -> SqliteResult<()> {
    let texts: Option<i64> = row.get(const { column_index("texts_sum") })?;
    if let Some(texts) = texts {
        let (spec, metadata) = (
            row.get_ref(const { column_index("spec") })?,
            row.get_ref(const { column_index("metadata") })?,
        );
        let found = request_checksum(&record.task, spec.as_str()?, metadata.as_str()?);
        require(found == texts, record, "its request has the wrong checksum")?;
    }
    let state: Option<i64> = row.get(const { column_index("state_sum") })?;
    if let Some(state) = state {
        let found = state_checksum(record, &StateTexts::from_row(row)?);
        require(found == state, record, "its state has the wrong checksum")?;
    }
    check_fields(record)
}

/// Whether the phase of a record and its fields agree.
fn check_fields(record: &TaskRecord) -> SqliteResult<()> {
    let task = &record.task;
    let held = record.lease.is_some();
    let ended = task.finished_at_ms.is_some() && task.expires_at_ms.is_some();
    let unended = task.finished_at_ms.is_none() && task.expires_at_ms.is_none();
    let fits = match &task.state {
        TaskState::Waiting => !held && unended && task.progress < 100,
        TaskState::Running => {
            let begun = task.started_at_ms.is_some() && task.attempt > 0;
            held && begun && unended && task.progress < 100
        }
        TaskState::Completed(_) => !held && ended && task.progress == 100,
        // Either with or without a lease: a cancel keeps it until the worker has stopped.
        TaskState::Failed(_) | TaskState::Expired => ended,
    };
    require(fits, record, "its phase and its fields do not agree")
}

fn require(good: bool, record: &TaskRecord, wrong: &str) -> SqliteResult<()> {
    if good {
        return Ok(());
    }
    Err(SqliteFault::Corrupt(format!("{}: {wrong}", record.task.id)))
}

/// Capacity for the checksummed bytes of an ordinary task.
const SUMMED_BYTES: usize = 512;

/// CRC-32 (IEEE 802.3), which detects every change within 32 neighbouring bits. The fields are gathered
/// and summed at once: one by one, short ones take several times as long.
#[derive(Clone, Debug)]
pub(super) struct RowChecksum(Vec<u8>);

impl RowChecksum {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(SUMMED_BYTES))
    }

    /// Adds bytes and their length, without which "ab", "c" and "a", "bc" would have the same sum.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.number(bytes.len() as u64)
    }

    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds a number that may be absent.
    fn optional_number(self, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    /// Adds a text that may be absent.
    fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    pub(super) fn finish(self) -> u32 {
        crc32fast::hash(&self.0)
    }
}
