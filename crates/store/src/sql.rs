//! Statements in the SQL that SQLite and PostgreSQL both speak (`$1` parameters, `RETURNING`,
//! `ON CONFLICT`, window functions, common table expressions), their values and their answers.
//! [`SqlDialect`] has the few fragments that differ.

use std::borrow::Cow;

use kinora_contract::{Artifact, TaskPhase, TraceContext, UnixMs};
use serde::Serialize;

use crate::StoreError;

/// A statement with its values.
#[derive(Clone, Debug)]
pub(crate) struct SqlQuery {
    pub(crate) text: Cow<'static, str>,
    /// The values of `$1`, `$2` and so on.
    pub(crate) values: Vec<SqlValue>,
}

/// The fragments of SQL that differ between the databases. Lists travel as one JSON parameter, so a
/// statement has the same text, and can be prepared once, for any number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlDialect {
    Sqlite,
    Postgres,
}

impl SqlDialect {
    /// Ends a selection: the rows are locked, except those that another transaction has locked.
    /// SQLite has one writer, which needs no locks.
    pub(crate) const fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// The condition of running tasks, as their index has it.
    pub(crate) const fn is_running(self) -> &'static str {
        match self {
            // SQLite uses a partial index only if the query repeats its condition as a term; `phase
            // = 'running'` alone does not imply it for the planner.
            Self::Sqlite => "phase IN ('waiting', 'running') AND phase = 'running'",
            Self::Postgres => "place = 4",
        }
    }

    /// A table whose column `value` has the elements of a JSON list of texts or numbers.
    pub(crate) fn each(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("json_each({parameter})"),
            Self::Postgres => {
                // SQLite's function has the column `value`; the alias gives the same name to
                // PostgreSQL's.
                format!("json_array_elements_text({parameter}::json) AS each(value)")
            }
        }
    }

    /// A table whose column `value` has the elements of a JSON list of lists, for
    /// `value ->> 0`.
    pub(crate) fn each_row(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("json_each({parameter})"),
            Self::Postgres => format!("json_array_elements({parameter}::json) AS each(value)"),
        }
    }

    /// A table whose column `value` has the numbers that a query finds. The query may use the tables
    /// before it, as that of a lateral join may, which SQLite does not have.
    pub(crate) fn each_number(self, query: &str) -> String {
        let list = match self {
            Self::Sqlite => "json_group_array",
            Self::Postgres => "json_agg",
        };
        self.each(&format!("(SELECT {list}(number) FROM ({query}) n)"))
    }

    /// The column that numbers the rows of a table in the order of their insertion.
    pub(crate) const fn number(self) -> &'static str {
        match self {
            Self::Sqlite => "rowid",
            Self::Postgres => "number",
        }
    }

    /// A text that may contain NUL, which a text of PostgreSQL cannot.
    pub(crate) fn raw_text(self, text: &str) -> SqlValue {
        match self {
            Self::Sqlite => text.into(),
            Self::Postgres => text.as_bytes().into(),
        }
    }
}

/// The expression for a number of an element of [`SqlDialect::each_row`]. In PostgreSQL `->>` gives text;
/// the cast makes it a number there and changes nothing in SQLite.
pub(crate) fn number_at(at: usize) -> String {
    format!("CAST(value ->> {at} AS BIGINT)")
}

/// A list as a parameter.
pub(crate) fn json(list: &(impl Serialize + ?Sized)) -> String {
    // Lists of texts and numbers; serialising them cannot fail.
    serde_json::to_string(list).unwrap_or_default()
}

/// A value of a parameter or of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlValue {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl SqlQuery {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            values: Vec::new(),
        }
    }

    /// Sets the value of the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.values.push(value.into());
        self
    }
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        Some(number).into()
    }
}

impl From<Option<u64>> for SqlValue {
    fn from(number: Option<u64>) -> Self {
        Self::Int(number.map(to_sql_int))
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for SqlValue {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8; 32]> for SqlValue {
    fn from(bytes: &[u8; 32]) -> Self {
        Some(bytes).into()
    }
}

impl From<Option<&[u8; 32]>> for SqlValue {
    fn from(bytes: Option<&[u8; 32]>) -> Self {
        Self::Bytes(bytes.map(|bytes| bytes.to_vec()))
    }
}

impl From<&[u8]> for SqlValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Some(bytes.to_vec()))
    }
}

/// A row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct SqlRow(pub(crate) Vec<SqlValue>);

/// A stored value that this program does not understand.
#[derive(Debug)]
pub(crate) struct UnreadableValue(pub(crate) String);

impl From<serde_json::Error> for UnreadableValue {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<UnreadableValue> for StoreError {
    fn from(UnreadableValue(text): UnreadableValue) -> Self {
        Self::Corrupt(text)
    }
}

impl SqlRow {
    /// The value in column `at`.
    pub(crate) fn get<T: FromValue>(&self, at: usize) -> Result<T, UnreadableValue> {
        let value = self.0.get(at).and_then(T::from_value);
        value.ok_or_else(|| UnreadableValue(format!("column {at} has an unexpected value")))
    }
}

/// A type that columns are read as. Numbers are stored as signed ones. A negative one is damage and
/// counts as 0, the cautious side for times: a damaged expiry of a key is in the past.
pub(crate) trait FromValue: Sized {
    /// `None` for a value of another type.
    fn from_value(value: &SqlValue) -> Option<Self>;
}

impl FromValue for u64 {
    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Int(Some(number)) => Some(Self::try_from(*number).unwrap_or(0)),
            _ => None,
        }
    }
}

impl FromValue for u32 {
    fn from_value(value: &SqlValue) -> Option<Self> {
        u64::from_value(value).map(|number| Self::try_from(number).unwrap_or(Self::MAX))
    }
}

impl FromValue for u16 {
    fn from_value(value: &SqlValue) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for String {
    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Text(text) => text.clone(),
            _ => None,
        }
    }
}

/// SQLite keeps some of what PostgreSQL stores as bytes as text.
impl FromValue for Vec<u8> {
    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Bytes(bytes) => bytes.clone(),
            SqlValue::Text(text) => text.clone().map(String::into_bytes),
            SqlValue::Int(_) => None,
        }
    }
}

impl FromValue for [u8; 32] {
    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Bytes(Some(bytes)) => bytes.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Int(None) | SqlValue::Text(None) | SqlValue::Bytes(None) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A query that only reads, with the function that reads its rows.
pub(crate) struct TypedQuery<T> {
    pub(crate) query: SqlQuery,
    pub(crate) read: fn(&SqlRow) -> Result<T, UnreadableValue>,
}

/// A change by statements that are known before any of them has run, in one transaction. Each says
/// by its rows (`RETURNING`) whether it changed something.
pub(crate) trait SqlScript: Send + Sync + 'static {
    type Output: Send + 'static;

    /// A table that others must not write to meanwhile. (SQLite has one writer.)
    fn locked_table(&self) -> Option<&'static str> {
        None
    }

    /// The statements, in order; `now_ms` is the wall time of the transaction.
    fn statements(&self, now_ms: UnixMs) -> Vec<SqlQuery>;

    /// The outcome, by the rows of each statement.
    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<Self::Output, UnreadableValue>;
}

/// SQL integers are signed; a time after the year 292 million becomes the end of time.
pub(crate) fn to_sql_int(value: u64) -> i64 {
    // Never an error: these are times, and the latest one behaves as the right one would.
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The name of a phase in the database.
pub(crate) const fn phase_name(phase: TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Waiting => "waiting",
        TaskPhase::Running => "running",
        TaskPhase::Completed => "completed",
        TaskPhase::Failed => "failed",
        TaskPhase::Expired => "expired",
    }
}

/// Parses a stored trace context. An unreadable one counts as absent: only the trace suffers.
pub(crate) fn parse_trace(text: Option<&str>) -> Option<TraceContext> {
    text.and_then(|text| text.parse().ok())
}

/// The blob keys of a stored artifact; empty if it cannot be read, in which case the sweep of
/// orphans removes the files.
pub(crate) fn artifact_keys(artifact: Option<&str>) -> Vec<String> {
    let Some(text) = artifact else {
        return Vec::new();
    };
    match serde_json::from_str::<Artifact>(text) {
        Ok(artifact) => artifact.files().map(|file| file.key.clone()).collect(),
        Err(error) => {
            tracing::error!(%error, "stored artifact unreadable; its files are left");
            Vec::new()
        }
    }
}
