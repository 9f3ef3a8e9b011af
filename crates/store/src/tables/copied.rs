//! The tables that an export copies, with their columns, once for both databases. Leases, fetches and
//! traces are left behind: a running task waits again. A row travels as its values, and texts as they
//! are stored, so that even those of a newer version arrive unchanged.

use std::collections::HashSet;

use kinora_contract::lifecycle::reference_keys_for;
use kinora_contract::spec::{SPEC_VERSION, VideoSpec};
use kinora_contract::{StoredFile, TaskId, VideoInputs, hex};
use serde_json::{Map, Value as Json, from_str, from_value};

use crate::StoreError;
use crate::sql::{FromValue, SqlDialect, SqlQuery, SqlRow, SqlValue, UnreadableValue};

/// Number of rows per step.
pub const COPIED_AT_ONCE: usize = 500;

/// Asks whether a store has contents that an import would mix with its own.
pub(crate) const HAS_CONTENTS: &str = "SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM api_keys) \
     OR EXISTS (SELECT 1 FROM secrets) OR EXISTS (SELECT 1 FROM webhooks) \
     OR EXISTS (SELECT 1 FROM uploads)";

/// A table that an export copies. Pairs of texts are for SQLite and PostgreSQL.
#[derive(Debug)]
pub struct CopiedTable {
    /// Its name, in an export as well.
    pub name: &'static str,
    columns: &'static [(ColumnKind, &'static str)],
    /// The columns that the databases store in different ways.
    special: &'static [SpecialColumn],
    /// The columns that order the rows. `number` is the order of insertion.
    key: &'static str,
    /// Which rows are copied.
    filter: &'static str,
    /// For rows that are not inserted: the table expression that reads them, and the statement that
    /// writes one.
    counters: Option<[[&'static str; 2]; 2]>,
}

/// How a database stores a column.
#[derive(Clone, Copy, Debug)]
struct SpecialColumn {
    column: &'static str,
    /// The expression that reads it.
    read: [&'static str; 2],
    /// The column that it is written to.
    into: [&'static str; 2],
    /// The expression that is written, of its value `$`.
    write: [&'static str; 2],
}

#[derive(Clone, Copy, Debug)]
enum ColumnKind {
    Int,
    Text,
    Bytes,
}

const fn special(column: &'static str) -> SpecialColumn {
    SpecialColumn {
        column,
        read: [column; 2],
        into: [column; 2],
        write: ["$"; 2],
    }
}

macro_rules! columns {
    ($($kind:ident: $($name:ident),*;)*) => {
        &[$($((ColumnKind::$kind, stringify!($name))),*),*]
    };
}

const PLAIN: CopiedTable = CopiedTable {
    name: "",
    columns: &[],
    special: &[],
    key: "",
    filter: "1 = 1",
    counters: None,
};

/// The tables in the order in which they are written.
pub static COPIED_TABLES: [CopiedTable; 14] = [
    CopiedTable {
        name: "counters",
        columns: columns!(Text: name; Int: value;),
        key: "name",
        counters: Some([
            // Tokens continue after the largest one, even if a damaged counter is behind it.
            [
                "(SELECT name, CASE name WHEN 'token' THEN max(value, coalesce((SELECT max(lease_token) FROM tasks), 0)) \
                 ELSE value END AS value FROM counters WHERE name IN ('identity', 'token'))",
                "(SELECT 'identity' AS name, identity AS value FROM queue UNION ALL \
                 SELECT 'token', greatest(token, (SELECT max(lease_token) FROM tasks)) FROM queue) AS counters",
            ],
            [
                "UPDATE counters SET value = $2 WHERE name = $1",
                "UPDATE queue SET identity = CASE $1 WHEN 'identity' THEN $2 ELSE identity END, \
                 token = CASE $1 WHEN 'token' THEN $2 ELSE token END",
            ],
        ]),
        ..PLAIN
    },
    CopiedTable {
        name: "tasks",
        columns: columns!(
            Int: seq; Text: id, project, phase; Int: progress, attempt, deaths; Text: engine;
            Int: created_at_ms, started_at_ms, finished_at_ms, expires_at_ms;
            Text: artifact, failure, warnings, price; Bytes: ticket; Int: spec_version; Text: spec, metadata;
            Int: priority, reference_bytes, charged_bytes, references_ready;
        ),
        special: &[
            SpecialColumn {
                read: ["CASE phase WHEN 'running' THEN 'waiting' ELSE phase END"; 2],
                ..special("phase")
            },
            SpecialColumn {
                read: ["CAST(kept AS BLOB)", "ticket"],
                into: ["kept", "ticket"],
                write: ["CAST($ AS TEXT)", "$"],
                ..special("ticket")
            },
            SpecialColumn {
                read: ["references_ready", "(fetch_state = 0)::int"],
                into: ["references_ready", "fetch_state"],
                write: ["$", "1 - $"],
                ..special("references_ready")
            },
        ],
        key: "seq",
        ..PLAIN
    },
    CopiedTable {
        name: "idempotency",
        columns: columns!(Text: project, key; Bytes: fingerprint; Int: expires_at_ms; Text: task;),
        special: &[SpecialColumn {
            read: ["(SELECT id FROM tasks WHERE seq = task_seq)", "task"],
            into: ["task_seq", "task"],
            write: ["(SELECT seq FROM tasks WHERE id = $)", "$"],
            ..special("task")
        }],
        key: "project, key",
        ..PLAIN
    },
    CopiedTable {
        name: "api_keys",
        columns: columns!(
            Text: id; Bytes: sha256; Text: name, project, scopes, models;
            Int: requests_per_minute, unfinished_max, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms,
                budget_per_day, budget_per_month; Text: budget_id;
        ),
        key: "number",
        ..PLAIN
    },
    CopiedTable {
        name: "key_log",
        columns: columns!(Int: at_ms; Text: kind, key, name, project, successor, user, host;),
        special: &[SpecialColumn {
            read: ["\"user\""; 2],
            into: ["\"user\""; 2],
            ..special("user")
        }],
        key: "number",
        ..PLAIN
    },
    CopiedTable {
        name: "secrets",
        columns: columns!(Text: name; Bytes: value;),
        key: "name",
        ..PLAIN
    },
    CopiedTable {
        name: "webhooks",
        columns: columns!(
            Text: id, project, url; Bytes: secret, old_secret; Int: old_until_ms, created_at_ms, disabled_at_ms;
        ),
        key: "id",
        ..PLAIN
    },
    CopiedTable {
        name: "deliveries",
        columns: columns!(Text: event, task, webhook, url, state; Int: attempts, due_ms;),
        // One in progress becomes due immediately, with the same event id.
        special: &[SpecialColumn {
            read: ["CASE WHEN token IS NULL THEN due_ms ELSE 0 END"; 2],
            ..special("due_ms")
        }],
        key: "number",
        // Finished ones are only a log.
        filter: "state IN ('waiting', 'pending')",
        ..PLAIN
    },
    CopiedTable {
        name: "chores",
        columns: columns!(Text: kind, subject, model; Bytes: ticket;),
        special: &[SpecialColumn {
            read: ["CAST(ticket AS BLOB)", "ticket"],
            write: ["CAST($ AS TEXT)", "$"],
            ..special("ticket")
        }],
        key: "number",
        // Every store has its own.
        filter: "kind <> 'look_for_orphans'",
        ..PLAIN
    },
    CopiedTable {
        name: "tallies",
        columns: columns!(Int: day; Text: project, model; Int: completed, failed, cancelled, video_ms, engine_ms, cost_micros;),
        key: "day, project, model",
        ..PLAIN
    },
    CopiedTable {
        name: "pauses",
        columns: columns!(Text: model; Int: since_ms; Text: reason; Int: ended_at_ms;),
        key: "model",
        ..PLAIN
    },
    CopiedTable {
        name: "uploads",
        columns: columns!(
            Text: id, project, filename, purpose, kind, media_type; Int: bytes; Text: sha256, blob_key;
            Int: is_stored, created_at_ms, expires_at_ms, deleted_at_ms, due_ms;
            Text: idempotency_key; Bytes: fingerprint;
        ),
        key: "id",
        // The requests of the others have died.
        filter: "is_stored = 1",
        ..PLAIN
    },
    CopiedTable {
        name: "upload_uses",
        columns: columns!(Text: upload, task;),
        key: "upload, task",
        ..PLAIN
    },
    // Without the day of the budgets: a store learns it from its own clock, and until then spends on the last of these
    // days at the earliest.
    CopiedTable {
        name: "spending",
        columns: columns!(Text: scope; Int: day, day_micros, month, month_micros;),
        key: "scope",
        ..PLAIN
    },
];

/// The tasks among them.
pub static COPIED_TASKS: &CopiedTable = &COPIED_TABLES[1];
/// The uploaded files among them.
pub static COPIED_UPLOADS: &CopiedTable = &COPIED_TABLES[11];

/// A row of a table, outside of a store. Never printed, since it may hold a secret.
#[derive(Clone)]
pub struct CopiedRow(pub(crate) SqlRow);

impl std::fmt::Debug for CopiedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CopiedRow(..)")
    }
}

impl CopiedTable {
    /// Whether its rows are tasks.
    #[must_use]
    pub fn is_tasks(&self) -> bool {
        self.name == COPIED_TASKS.name
    }

    pub(crate) const fn width(&self) -> usize {
        self.columns.len()
    }

    /// The columns that order its rows.
    pub(crate) fn key(&self, dialect: SqlDialect) -> &'static str {
        match self.key {
            "number" => dialect.number(),
            key => key,
        }
    }

    fn stored(&self) -> impl Iterator<Item = SpecialColumn> {
        self.columns.iter().map(|(_, name)| {
            let mut special_ones = self.special.iter();
            let found = special_ones.find(|one| one.column == *name);
            found.copied().unwrap_or_else(|| special(name))
        })
    }

    /// The query for the rows, without an order: first the columns `before`, then its own.
    pub(crate) fn select(&self, dialect: SqlDialect, before: &str) -> String {
        let columns: Vec<&str> = self
            .stored()
            .map(|column| column.read[dialect as usize])
            .collect();
        let source = self
            .counters
            .map_or(self.name, |[read, _]| read[dialect as usize]);
        format!(
            "SELECT {before}{} FROM {source} WHERE {}",
            columns.join(", "),
            self.filter
        )
    }

    /// The query for the number of rows that an import has inserted; `None` where it inserts none.
    pub(crate) fn count(&self) -> Option<String> {
        self.counters
            .is_none()
            .then(|| format!("SELECT count(*) FROM {} WHERE {}", self.name, self.filter))
    }

    /// Writes a row, with values that only this database has.
    pub(crate) fn write(
        &self,
        dialect: SqlDialect,
        row: &SqlRow,
        own: &[(&str, SqlValue)],
    ) -> SqlQuery {
        let of = dialect as usize;
        let values = row
            .0
            .iter()
            .chain(own.iter().map(|(_, value)| value))
            .cloned()
            .collect();
        if let Some([_, write]) = self.counters {
            return SqlQuery {
                text: write[of].into(),
                values,
            };
        }
        let (into, written): (Vec<&str>, Vec<&str>) = self
            .stored()
            .map(|column| (column.into[of], column.write[of]))
            .chain(own.iter().map(|(name, _)| (*name, "$")))
            .unzip();
        let written = (1..)
            .zip(written)
            // `$` in an expression stands for the value of its column: number them in order.
            .map(|(at, text)| text.replace('$', &format!("${at}")));
        let (into, written) = (into.join(", "), written.collect::<Vec<_>>().join(", "));
        let text = format!("INSERT INTO {} ({into}) VALUES ({written})", self.name);
        SqlQuery {
            text: text.into(),
            values,
        }
    }

    /// The row as a JSON object, bytes in hexadecimal.
    #[must_use]
    pub fn line(&self, row: &CopiedRow) -> String {
        let values = self.columns.iter().zip(&row.0.0).map(|((_, name), value)| {
            let value = match value {
                SqlValue::Int(number) => Json::from(*number),
                SqlValue::Text(text) => Json::from(text.clone()),
                SqlValue::Bytes(bytes) => Json::from(bytes.as_deref().map(hex::text)),
            };
            ((*name).to_owned(), value)
        });
        Json::Object(values.collect()).to_string()
    }

    /// The row of a JSON object.
    ///
    /// # Errors
    /// The reason why it is no row of this table.
    pub fn parse(&self, line: &str) -> Result<CopiedRow, String> {
        let mut fields: Map<String, Json> = from_str(line).map_err(|error| error.to_string())?;
        let values = self.columns.iter().map(|(kind, name)| {
            let value = fields.remove(*name).and_then(|value| kind.parse(value));
            value.ok_or_else(|| format!("{name} is missing or wrong"))
        });
        let row = CopiedRow(SqlRow(values.collect::<Result<_, _>>()?));
        match fields.keys().next() {
            // A newer version may have more columns. Dropping one silently would change the task.
            Some(unknown) => Err(format!("unknown field {unknown:?}")),
            None => Ok(row),
        }
    }
}

impl ColumnKind {
    fn parse(self, value: Json) -> Option<SqlValue> {
        Some(match (self, value) {
            (Self::Int, Json::Null) => SqlValue::Int(None),
            (Self::Int, Json::Number(number)) => SqlValue::Int(Some(number.as_i64()?)),
            (Self::Text, Json::Null) => SqlValue::Text(None),
            (Self::Text, Json::String(text)) => SqlValue::Text(Some(text)),
            (Self::Bytes, Json::Null) => SqlValue::Bytes(None),
            (Self::Bytes, Json::String(text)) => SqlValue::Bytes(Some(from_hex(&text)?)),
            _ => return None,
        })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|digit| char::from(digit).to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(16 * high + low).ok(),
        _ => None,
    });
    pairs.collect()
}

impl CopiedRow {
    /// The row of a store's signing key, in the table `secrets`.
    #[must_use]
    pub fn signing_key(key: &[u8; 32]) -> Self {
        Self(SqlRow(vec![super::keys::SIGNING_KEY.into(), key.into()]))
    }

    /// The value of a row of `counters`, if it is the one with this name.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        let found: String = self.0.get(0).ok()?;
        self.0.get(1).ok().filter(|_| found == name)
    }

    /// The value in this column of a task.
    pub(crate) fn task_column<T: FromValue>(&self, name: &str) -> Result<T, UnreadableValue> {
        self.column(COPIED_TASKS, name)
    }

    fn column<T: FromValue>(&self, table: &CopiedTable, name: &str) -> Result<T, UnreadableValue> {
        let mut columns = table.columns.iter();
        let at = columns.position(|(_, column)| *column == name);
        self.0.get(at.unwrap_or(usize::MAX))
    }

    /// The bytes of an uploaded file, which others may share; `None` if the row is damaged.
    #[must_use]
    pub fn upload(&self) -> Option<StoredFile> {
        Some(StoredFile {
            key: self.column(COPIED_UPLOADS, "blob_key").ok()?,
            bytes: self.column(COPIED_UPLOADS, "bytes").ok()?,
            sha256: self.column(COPIED_UPLOADS, "sha256").ok()?,
        })
    }

    /// The spec of a task; `None` for a newer version, which only a newer program can read.
    pub(crate) fn spec(&self) -> Result<Option<VideoSpec>, UnreadableValue> {
        if self.task_column::<u32>("spec_version")? > SPEC_VERSION {
            return Ok(None);
        }
        Ok(Some(from_str(&self.task_column::<String>("spec")?)?))
    }

    /// Makes the rows of both databases alike: a task without references has all of them.
    fn set_references_ready(&mut self, spec: &VideoSpec) {
        // The databases store the flag of a task without references differently; both read it as ready.
        if spec.inputs == VideoInputs::Text
            && let Some(ready) = self.0.0.last_mut()
        {
            *ready = SqlValue::Int(Some(1));
        }
    }

    /// The phase of a task: `waiting`, `completed`, `failed` or `expired`.
    #[must_use]
    pub fn phase(&self) -> String {
        self.task_column("phase").unwrap_or_default()
    }

    /// The files of a completed task's result, with their lengths and hashes, even of a newer
    /// version.
    #[must_use]
    pub fn results(&self) -> Vec<StoredFile> {
        let artifact: Option<String> = self.task_column("artifact").unwrap_or_default();
        let Some(Ok(Json::Object(fields))) = artifact.as_deref().map(from_str) else {
            return Vec::new();
        };
        // Any field that looks like a stored file: a newer version may have more of them, and all
        // must be copied.
        let files = fields.into_iter().map(|(_, field)| field);
        files.filter_map(|field| from_value(field).ok()).collect()
    }

    /// Keys of the references kept for a task: while it is unfinished, and for a draft's final. Some
    /// may not exist. Empty for a newer version, whose task fetches them again.
    #[must_use]
    pub fn references(&self) -> Vec<String> {
        let id = self
            .task_column::<String>("id")
            .map(|id| id.parse::<TaskId>());
        // Keys follow from the number of references, which only the spec says.
        let (Ok(Ok(id)), Ok(Some(spec))) = (id, self.spec()) else {
            return Vec::new();
        };
        match &*self.phase() {
            "waiting" => reference_keys_for(id, &spec),
            "completed" if spec.draft => reference_keys_for(id, &spec),
            _ => Vec::new(),
        }
    }
}

/// Checks rows that are read for an export. The idempotency keys of a task that cannot be read are
/// unreadable as well: no store could bind them.
#[derive(Debug, Default)]
pub(crate) struct RowCheck {
    unreadable_tasks: HashSet<String>,
}

impl RowCheck {
    /// The row with these values. `check` reads a task as the store itself does, if its version is known.
    pub(crate) fn check(
        &mut self,
        table: &CopiedTable,
        values: Vec<Result<SqlValue, UnreadableValue>>,
        check: impl FnOnce(&CopiedRow) -> Result<(), StoreError>,
    ) -> Result<CopiedRow, StoreError> {
        // The column that says which task a row belongs to. Tables are read in order, so the
        // unreadable tasks are known when the idempotency keys come.
        let owner = table.columns.iter().position(|(_, name)| match table.name {
            "tasks" => *name == "id",
            "idempotency" => *name == "task",
            _ => false,
        });
        let owner = owner.and_then(|at| match &values[at] {
            Ok(SqlValue::Text(id)) => id.clone(),
            _ => None,
        });
        let id = owner.as_deref().unwrap_or_default();
        let corrupt = |text: String| StoreError::Corrupt(format!("{id}: {text}"));
        if !table.is_tasks() && self.unreadable_tasks.contains(id) {
            return Err(corrupt("its task cannot be read".to_owned()));
        }
        let row = values.into_iter().collect::<Result<_, _>>();
        let row = row.map(|values| CopiedRow(SqlRow(values)));
        let read = row.and_then(|row| Ok((table.is_tasks().then(|| row.spec()).transpose()?, row)));
        // A task of this version is read as the store reads it, so that the import does not stop at
        // a row that no store could read. One of a newer version is copied as it is.
        let checked = match read {
            Err(UnreadableValue(text)) => Err(corrupt(text)),
            Ok((Some(Some(spec)), mut row)) => check(&row).map(|()| {
                row.set_references_ready(&spec);
                row
            }),
            Ok((_, row)) => Ok(row),
        };
        let checked = checked.map_err(|error| match error {
            // The store's own reader may have named the task already.
            StoreError::Corrupt(text) if !text.starts_with(id) => corrupt(text),
            error => error,
        });
        if table.is_tasks() && checked.is_err() {
            self.unreadable_tasks.extend(owner.clone());
        }
        checked
    }
}
