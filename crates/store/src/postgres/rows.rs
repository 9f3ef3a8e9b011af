//! Rows of the table `tasks`: to records and back.

use std::error::Error;
use std::sync::Arc;

use kinora_contract::lifecycle::{ReferenceState, StoredLease, TaskRecord};
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{Priority, Task, TaskId, TaskState};
use serde_json::{from_str, to_string};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::fault::{PostgresFault, PostgresResult, corrupt};
use super::session::SqlStatement;
use crate::sql::{phase_name, to_sql_int};
use crate::{StoreError, sql};

/// Places of tasks in the queue, as the partial indexes name them.
pub(super) const CLAIMABLE: i16 = 1;
pub(super) const UNFETCHED: i16 = 2;
const FETCHING: i16 = 3;
pub(super) const RUNNING: i16 = 4;

/// Tells null from other values of a column.
trait Filled {
    fn is_filled(&self) -> bool {
        true
    }
}

impl Filled for i16 {}
impl Filled for i64 {}
impl Filled for &str {}
impl Filled for String {}
impl<T> Filled for Option<T> {
    fn is_filled(&self) -> bool {
        self.is_some()
    }
}

// One list makes the struct, the order of the columns in every SELECT, and their types. The reader below
// takes the columns in the same order by position, so a new column needs a line in the same place there.
macro_rules! columns {
    ($($name:ident: $of:ty, $array:ident;)*) => {
        /// Rows to be written, column by column.
        #[derive(Default)]
        pub(super) struct Written {
            $($name: Vec<$of>,)*
        }

        /// The columns of a row, in their order.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Written {
            /// The columns in which some row has a value.
            fn filled(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$name.iter().any(Filled::is_filled) {
                    names.push(stringify!($name));
                })*
                names
            }

            /// The columns in which some row differs from the same one of `others`.
            fn differing(&self, others: &Self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$name != others.$name {
                    names.push(stringify!($name));
                })*
                names
            }

            /// Binds these columns, in their order.
            fn bind(self, names: &[&str], mut statement: SqlStatement) -> SqlStatement {
                $(if names.contains(&stringify!($name)) {
                    statement = statement.bind(self.$name, Type::$array);
                })*
                statement
            }
        }
    };
}

columns! {
    id: String, TEXT_ARRAY;
    seq: i64, INT8_ARRAY;
    project: String, TEXT_ARRAY;
    model: String, TEXT_ARRAY;
    phase: &'static str, TEXT_ARRAY;
    place: Option<i16>, INT2_ARRAY;
    progress: i16, INT2_ARRAY;
    attempt: i64, INT8_ARRAY;
    deaths: i64, INT8_ARRAY;
    engine: Option<String>, TEXT_ARRAY;
    created_at_ms: i64, INT8_ARRAY;
    started_at_ms: Option<i64>, INT8_ARRAY;
    finished_at_ms: Option<i64>, INT8_ARRAY;
    expires_at_ms: Option<i64>, INT8_ARRAY;
    lease_token: Option<i64>, INT8_ARRAY;
    lease_until_ms: Option<i64>, INT8_ARRAY;
    lease_until_steady_ms: Option<i64>, INT8_ARRAY;
    worker: Option<String>, TEXT_ARRAY;
    artifact: Option<String>, TEXT_ARRAY;
    failure: Option<String>, TEXT_ARRAY;
    warnings: Option<String>, TEXT_ARRAY;
    ticket: Option<Vec<u8>>, BYTEA_ARRAY;
    trace: Option<String>, TEXT_ARRAY;
    price: Option<String>, TEXT_ARRAY;
    spec_version: i64, INT8_ARRAY;
    spec: Option<String>, TEXT_ARRAY;
    metadata: Option<String>, TEXT_ARRAY;
    priority: i16, INT2_ARRAY;
    cost: i64, INT8_ARRAY;
    reference_bytes: i64, INT8_ARRAY;
    charged_bytes: i64, INT8_ARRAY;
    fetch_state: i16, INT2_ARRAY;
    fetch_tries: i64, INT8_ARRAY;
    fetch_until_ms: Option<i64>, INT8_ARRAY;
    fetch_token: Option<i64>, INT8_ARRAY;
}

/// The columns of a record ([`read`]), of the table with this name.
pub(super) fn columns(table: &str) -> String {
    let named: Vec<String> = NAMES.iter().map(|name| format!("{table}.{name}")).collect();
    named.join(", ")
}

impl Written {
    /// Adds a row. Sends no texts that equal those of the row `before`.
    pub(super) fn add(
        &mut self,
        record: &TaskRecord,
        before: Option<&TaskRecord>,
    ) -> PostgresResult<()> {
        let task = &record.task;
        // Specs and metadata are by far the largest columns and rarely change. NULL keeps the stored text
        // (`coalesce` in `update`).
        let spec = if before.is_some_and(|before| before.task.spec == task.spec) {
            None
        } else {
            Some(to_string(&task.spec)?)
        };
        let metadata = if before.is_some_and(|before| before.task.metadata == task.metadata) {
            None
        } else {
            Some(to_string(&task.metadata)?)
        };
        let (artifact, failure) = match &task.state {
            TaskState::Completed(artifact) => (Some(to_string(artifact)?), None),
            TaskState::Failed(failure) => (None, Some(to_string(failure)?)),
            TaskState::Waiting | TaskState::Running | TaskState::Expired => (None, None),
        };
        let warnings = if task.warnings.is_empty() {
            None
        } else {
            Some(to_string(&task.warnings)?)
        };
        self.spec.push(spec);
        self.metadata.push(metadata);
        self.artifact.push(artifact);
        self.failure.push(failure);
        self.warnings.push(warnings);
        self.price
            .push(task.cost.as_ref().map(to_string).transpose()?);
        self.add_task(task);
        self.add_record(record);
        Ok(())
    }

    fn add_task(&mut self, task: &Task) {
        self.id.push(task.id.to_string());
        self.project.push(task.project.clone());
        self.model.push(task.spec.model.clone());
        self.phase.push(phase_name(task.state.phase()));
        self.progress.push(task.progress.into());
        self.attempt.push(task.attempt.into());
        self.engine.push(task.engine.clone());
        self.priority.push(task.priority.rank());
        self.created_at_ms.push(to_sql_int(task.created_at_ms));
        self.started_at_ms.push(task.started_at_ms.map(to_sql_int));
        self.finished_at_ms
            .push(task.finished_at_ms.map(to_sql_int));
        self.expires_at_ms.push(task.expires_at_ms.map(to_sql_int));
        self.spec_version.push(task.spec.version.into());
        self.cost.push(to_sql_int(task.spec.cost()));
        self.trace.push(task.trace.map(|trace| trace.to_string()));
    }

    fn add_record(&mut self, record: &TaskRecord) {
        let held = record.lease.as_ref();
        self.seq.push(to_sql_int(record.seq));
        self.place.push(queue_place(record));
        self.deaths.push(record.deaths.into());
        self.lease_token
            .push(held.map(|held| to_sql_int(held.token)));
        self.lease_until_ms
            .push(held.map(|held| to_sql_int(held.until_ms)));
        self.lease_until_steady_ms
            .push(held.map(|held| to_sql_int(held.ends_ms)));
        self.worker.push(held.map(|held| held.worker.clone()));
        let ticket = record.ticket.as_deref();
        self.ticket
            .push(ticket.map(|ticket| ticket.as_bytes().to_vec()));
        self.reference_bytes
            .push(to_sql_int(record.reference_bytes));
        self.charged_bytes.push(to_sql_int(record.charged_bytes));
        let (state, until_ms, token) = match record.references {
            ReferenceState::AtHand => (0, None, None),
            ReferenceState::Wanted { .. } => (1, None, None),
            ReferenceState::Away {
                until_ms, token, ..
            } => (2, Some(to_sql_int(until_ms)), token.map(to_sql_int)),
        };
        self.fetch_state.push(state);
        self.fetch_tries.push(record.references.tries().into());
        self.fetch_until_ms.push(until_ms);
        self.fetch_token.push(token);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Adds the rows. A new task leaves half of the columns empty, which would cost the server more
    /// than their share.
    pub(super) fn insert(self) -> SqlStatement {
        let names = self.filled();
        let text = format!(
            "INSERT INTO tasks ({}) SELECT * FROM unnest({})",
            names.join(", "),
            placeholders(names.len())
        );
        self.bind(&names, SqlStatement::new(text))
    }

    /// Whether there is anything to overwrite.
    pub(super) fn differs(&self, before: &Self) -> bool {
        !self.differing(before).is_empty()
    }

    /// Overwrites the columns that differ from `before`, which contains the same rows as stored.
    pub(super) fn update(self, before: &Self) -> SqlStatement {
        // Only columns that changed in some row: PostgreSQL can then update most rows without touching an
        // index (a heap-only tuple). Columns that changed in one row are written with equal values in the
        // others, which does no harm under the rows' locks.
        let mut names = self.differing(before);
        let set = names.iter().map(|name| match *name {
            "spec" | "metadata" => format!("{name} = coalesce(n.{name}, t.{name})"),
            name => format!("{name} = n.{name}"),
        });
        let set = set.collect::<Vec<_>>().join(", ");
        names.insert(0, "id");
        let text = format!(
            "UPDATE tasks t SET {set} FROM unnest({}) AS n({}) WHERE t.id = n.id",
            placeholders(names.len()),
            names.join(", ")
        );
        self.bind(&names, SqlStatement::new(text))
    }
}

/// The placeholders of this many parameters.
fn placeholders(count: usize) -> String {
    let all: Vec<String> = (1..=count).map(|at| format!("${at}")).collect();
    all.join(", ")
}

fn queue_place(record: &TaskRecord) -> Option<i16> {
    if record.is_terminal() {
        return None;
    }
    if record.is_running() {
        return Some(RUNNING);
    }
    Some(match record.references {
        ReferenceState::AtHand => CLAIMABLE,
        ReferenceState::Wanted { .. } => UNFETCHED,
        ReferenceState::Away { .. } => FETCHING,
    })
}

/// The id of the row's task.
pub(super) fn id(row: &Row) -> PostgresResult<TaskId> {
    parse_id(RowCursor::new(row).next()?)
}

/// A stored id.
pub(super) fn parse_id(text: &str) -> PostgresResult<TaskId> {
    text.parse()
        .map_err(|error| corrupt(format!("{text}: {error}")))
}

/// Reads a row of [`columns`]. A row of a version newer than this program is an error, never a
/// misreading.
pub(super) fn read(row: &Row) -> PostgresResult<Arc<TaskRecord>> {
    let mut at = RowCursor::new(row);
    let id = parse_id(at.next()?)?;
    read_rest(&mut at, id).map_err(|fault| match fault {
        PostgresFault::Job(StoreError::Corrupt(text)) => corrupt(format!("{id}: {text}")),
        other => other,
    })
}

fn read_rest(at: &mut RowCursor<'_>, id: TaskId) -> PostgresResult<Arc<TaskRecord>> {
    let seq = at.number()?;
    let project = at.next()?;
    let _model: &str = at.next()?;
    let phase: &str = at.next()?;
    let _place: Option<i16> = at.next()?;
    let progress: i16 = at.next()?;
    let progress = u8::try_from(progress).map_err(|_| corrupt("progress".to_owned()))?;
    let (attempt, deaths, engine) = (at.number_u32()?, at.number_u32()?, at.next()?);
    let created_at_ms = at.number()?;
    let (started_at_ms, finished_at_ms, expires_at_ms) = (
        at.optional_number()?,
        at.optional_number()?,
        at.optional_number()?,
    );
    let lease = read_lease(at)?;
    let state = read_state(phase, at)?;
    let warnings: Option<&str> = at.next()?;
    let ticket: Option<&[u8]> = at.next()?;
    let ticket = ticket.map(|ticket| Arc::from(String::from_utf8_lossy(ticket)));
    let trace = sql::parse_trace(at.next()?);
    let price: Option<&str> = at.next()?;
    let version = at.number_u32()?;
    if version > SPEC_VERSION {
        return Err(corrupt(format!(
            "its spec has version {version}, this program knows {SPEC_VERSION}"
        )));
    }
    let task = Task {
        id,
        project,
        spec: from_str(at.next()?)?,
        metadata: from_str(at.next()?)?,
        priority: priority(at.next()?)?,
        state,
        progress,
        created_at_ms,
        started_at_ms,
        finished_at_ms,
        expires_at_ms,
        attempt,
        engine,
        warnings: warnings.map(from_str).transpose()?.unwrap_or_default(),
        trace,
        cost: price.map(from_str).transpose()?,
    };
    let _cost: i64 = at.next()?;
    Ok(Arc::new(TaskRecord {
        seq,
        task: Arc::new(task),
        lease,
        ticket,
        reference_bytes: at.number()?,
        charged_bytes: at.number()?,
        references: read_references(at)?,
        deaths,
    }))
}

/// Parses a stored class.
fn priority(rank: i16) -> PostgresResult<Priority> {
    Priority::from_rank(rank).ok_or_else(|| corrupt(format!("unknown priority {rank}")))
}

fn read_lease(at: &mut RowCursor<'_>) -> PostgresResult<Option<StoredLease>> {
    let token = at.optional_number()?;
    let (until_ms, ends_ms) = (at.optional_number()?, at.optional_number()?);
    let worker: Option<String> = at.next()?;
    Ok(token.map(|token| StoredLease {
        token,
        until_ms: until_ms.unwrap_or(0),
        ends_ms: ends_ms.unwrap_or(0),
        worker: worker.unwrap_or_default(),
    }))
}

fn read_state(phase: &str, at: &mut RowCursor<'_>) -> PostgresResult<TaskState> {
    let artifact: Option<&str> = at.next()?;
    let failure: Option<&str> = at.next()?;
    Ok(match (phase, artifact, failure) {
        ("waiting", ..) => TaskState::Waiting,
        ("running", ..) => TaskState::Running,
        ("completed", Some(artifact), _) => TaskState::Completed(from_str(artifact)?),
        ("failed", _, Some(failure)) => TaskState::Failed(from_str(failure)?),
        ("expired", ..) => TaskState::Expired,
        _ => {
            return Err(corrupt(format!(
                "its phase {phase:?} and its fields do not agree"
            )));
        }
    })
}

fn read_references(at: &mut RowCursor<'_>) -> PostgresResult<ReferenceState> {
    let state: i16 = at.next()?;
    let tries = at.number_u32()?;
    let (until_ms, token) = (at.optional_number()?, at.optional_number()?);
    Ok(match state {
        0 => ReferenceState::AtHand,
        1 => ReferenceState::Wanted { tries },
        2 => ReferenceState::Away {
            tries,
            until_ms: until_ms.unwrap_or(0),
            token,
        },
        other => return Err(corrupt(format!("unknown state of references {other}"))),
    })
}

/// Reads the columns of a row one after another.
struct RowCursor<'a> {
    row: &'a Row,
    at: usize,
}

impl<'a> RowCursor<'a> {
    const fn new(row: &'a Row) -> Self {
        Self::at(row, 0)
    }

    /// Starts at this column.
    const fn at(row: &'a Row, at: usize) -> Self {
        Self { row, at }
    }

    fn next<T: FromSql<'a>>(&mut self) -> PostgresResult<T> {
        let at = self.at;
        self.at += 1;
        self.row
            .try_get(at)
            .map_err(|error| corrupt(format!("a task's row: {error}")))
    }

    fn number(&mut self) -> PostgresResult<u64> {
        let value: i64 = self.next()?;
        unsigned(value)
    }

    fn optional_number(&mut self) -> PostgresResult<Option<u64>> {
        let value: Option<i64> = self.next()?;
        value.map(unsigned).transpose()
    }

    fn number_u32(&mut self) -> PostgresResult<u32> {
        let value: i64 = self.next()?;
        u32::try_from(value).map_err(|_| corrupt("a number is out of its range".to_owned()))
    }
}

fn unsigned(value: i64) -> PostgresResult<u64> {
    u64::try_from(value).map_err(|_| corrupt("a number is negative".to_owned()))
}

/// The system column `xmin`. Comparable between connections to one server, as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct RowVersion(u32);

impl RowVersion {
    /// The version of rows written by the transaction with this number (`txid_current`).
    pub(in crate::postgres) const fn of_transaction(number: u64) -> Self {
        // `txid_current` has an epoch in its upper half; `xmin` is the lower half.
        Self((number % (1 << 32)) as u32)
    }
}

impl<'a> FromSql<'a> for RowVersion {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(u32::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::XID
    }
}
