//! The tables of uploaded files and of the unfinished tasks that name them. A file is visible once it is
//! stored, until it is deleted or expires by the wall clock. Its row stays while an unfinished task names it.

use kinora_contract::lifecycle::upload_key;
use kinora_contract::{FileId, FileKind, StoredFile, TaskId, UnixMs};

use crate::sql::{SqlDialect, SqlQuery, SqlRow, TypedQuery, UnreadableValue, json};
use crate::{FilePageRequest, IdempotencyKey, ListOrder, NewFile, UploadedFile};

const COLUMNS: &str = "id, project, filename, purpose, kind, media_type, bytes, sha256, blob_key, \
     created_at_ms, expires_at_ms";
/// The condition of visible files at the time `$1`.
const IS_VISIBLE: &str = "is_stored = 1 AND deleted_at_ms IS NULL AND expires_at_ms > $1";

const fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Image => "image",
        FileKind::Audio => "audio",
    }
}

fn read(row: &SqlRow) -> Result<UploadedFile, UnreadableValue> {
    let (id, kind): (String, String) = (row.get(0)?, row.get(4)?);
    Ok(UploadedFile {
        id: id
            .parse()
            .map_err(|_| UnreadableValue(format!("{id:?} is no file's id")))?,
        project: row.get(1)?,
        filename: row.get(2)?,
        purpose: row.get(3)?,
        kind: match kind.as_str() {
            "image" => FileKind::Image,
            "audio" => FileKind::Audio,
            _ => return Err(UnreadableValue(format!("unknown kind {kind:?} of a file"))),
        },
        media_type: row.get(5)?,
        bytes: row.get(6)?,
        sha256: row.get(7)?,
        blob_key: row.get(8)?,
        created_at_ms: row.get(9)?,
        expires_at_ms: row.get(10)?,
    })
}

/// A row in any state.
#[derive(Debug)]
pub(crate) struct UploadRow {
    pub(crate) file: UploadedFile,
    pub(crate) is_stored: bool,
    is_deleted: bool,
    fingerprint: Option<Vec<u8>>,
}

impl UploadRow {
    pub(crate) fn is_visible(&self, now_ms: UnixMs) -> bool {
        self.is_stored && !self.is_deleted && self.file.expires_at_ms > now_ms
    }

    /// Whether its idempotency key still belongs to it.
    pub(crate) fn binds(&self, idempotency: &IdempotencyKey, now_ms: UnixMs) -> bool {
        let until_ms = self.file.created_at_ms.saturating_add(idempotency.bound_ms);
        until_ms > now_ms && (!self.is_stored || self.is_visible(now_ms))
    }

    pub(crate) fn has_fingerprint(&self, fingerprint: &[u8; 32]) -> bool {
        self.fingerprint.as_deref() == Some(fingerprint)
    }

    /// Whether its bytes are under its own key.
    pub(crate) fn owns_bytes(&self) -> bool {
        self.file.blob_key == upload_key(self.file.id)
    }
}

const ROW: &str = "is_stored, deleted_at_ms, fingerprint";

pub(crate) fn read_row(row: &SqlRow) -> Result<UploadRow, UnreadableValue> {
    Ok(UploadRow {
        file: read(row)?,
        is_stored: row.get::<u64>(11)? == 1,
        is_deleted: row.get::<Option<u64>>(12)?.is_some(),
        fingerprint: row.get(13)?,
    })
}

/// Selects a project's file in any state, for [`read_row`].
pub(crate) fn find(project: &str, id: FileId) -> SqlQuery {
    let ask = format!("SELECT {COLUMNS}, {ROW} FROM uploads WHERE id = $1 AND project = $2");
    SqlQuery::new(ask).bind(id.to_string()).bind(project)
}

/// Selects the file to which an idempotency key is bound, for [`read_row`].
pub(crate) fn find_by_key(project: &str, key: &str) -> SqlQuery {
    let ask =
        format!("SELECT {COLUMNS}, {ROW} FROM uploads WHERE project = $1 AND idempotency_key = $2");
    SqlQuery::new(ask).bind(project).bind(key)
}

/// Asks for the visible file with this id, in one project or in any.
pub(crate) fn visible(
    project: Option<&str>,
    id: FileId,
    now_ms: UnixMs,
) -> TypedQuery<UploadedFile> {
    let ask = format!(
        "SELECT {COLUMNS} FROM uploads WHERE id = $2 AND ($3 IS NULL OR project = $3) AND {IS_VISIBLE}"
    );
    TypedQuery {
        query: SqlQuery::new(ask)
            .bind(now_ms)
            .bind(id.to_string())
            .bind(project.map(str::to_owned)),
        read,
    }
}

/// Asks for the project of a file in any state.
pub(crate) fn project(id: FileId) -> TypedQuery<String> {
    TypedQuery {
        query: SqlQuery::new("SELECT project FROM uploads WHERE id = $1").bind(id.to_string()),
        read: |row| row.get(0),
    }
}

/// Asks for a page of visible files, and one more.
pub(crate) fn page(request: &FilePageRequest, now_ms: UnixMs) -> TypedQuery<UploadedFile> {
    let (compare, direction, first) = match request.order {
        ListOrder::Ascending => (">", "ASC", ""),
        // Sorts after every id: ids consist of digits and letters.
        ListOrder::Descending => ("<", "DESC", "~"),
    };
    let ask = format!(
        "SELECT {COLUMNS} FROM uploads WHERE project = $2 AND id {compare} $3 \
         AND ($4 IS NULL OR purpose = $4) AND {IS_VISIBLE} ORDER BY id {direction} LIMIT $5"
    );
    let after = request.after.map(|id| id.to_string());
    TypedQuery {
        query: SqlQuery::new(ask)
            .bind(now_ms)
            .bind(&request.project)
            .bind(after.unwrap_or_else(|| first.to_owned()))
            .bind(request.purpose.clone())
            .bind((request.limit as u64).saturating_add(1)),
        read,
    }
}

/// Selects those of a project's files that are visible, by their ids.
pub(crate) fn visible_ids(
    dialect: SqlDialect,
    project: &str,
    ids: &[FileId],
    now_ms: UnixMs,
) -> SqlQuery {
    let ask = format!(
        "SELECT id FROM uploads WHERE project = $2 AND id IN (SELECT value FROM {}) AND {IS_VISIBLE}",
        dialect.each("$3")
    );
    SqlQuery::new(ask)
        .bind(now_ms)
        .bind(project)
        .bind(json(ids))
}

/// Selects the key of a visible file of the project with these bytes.
pub(crate) fn twin(project: &str, sha256: &str, now_ms: UnixMs) -> SqlQuery {
    let ask = format!(
        "SELECT blob_key FROM uploads WHERE project = $2 AND sha256 = $3 AND {IS_VISIBLE} LIMIT 1"
    );
    SqlQuery::new(ask).bind(now_ms).bind(project).bind(sha256)
}

/// Counts a project's files that are not deleted.
pub(crate) fn count(project: &str) -> SqlQuery {
    let ask = "SELECT count(*) FROM uploads WHERE project = $1 AND deleted_at_ms IS NULL";
    SqlQuery::new(ask).bind(project)
}

/// Adds a file whose bytes are not stored yet.
pub(crate) fn add(new: &NewFile, file: &UploadedFile, due_ms: UnixMs) -> SqlQuery {
    let add = format!(
        "INSERT INTO uploads ({COLUMNS}, is_stored, due_ms, idempotency_key, fingerprint) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $13, $14) RETURNING 1"
    );
    let key = new.idempotency.as_ref();
    SqlQuery::new(add)
        .bind(file.id.to_string())
        .bind(&file.project)
        .bind(&file.filename)
        .bind(&file.purpose)
        .bind(kind_name(file.kind))
        .bind(&file.media_type)
        .bind(file.bytes)
        .bind(&file.sha256)
        .bind(&file.blob_key)
        .bind(file.created_at_ms)
        .bind(file.expires_at_ms)
        .bind(due_ms)
        .bind(key.map(|key| key.key.clone()))
        .bind(key.map(|key| &key.fingerprint))
}

/// Sets the time at which a sweep looks at a file.
pub(crate) fn set_due(id: FileId, due_ms: UnixMs) -> SqlQuery {
    let set = "UPDATE uploads SET due_ms = $2 WHERE id = $1 RETURNING 1";
    SqlQuery::new(set).bind(id.to_string()).bind(due_ms)
}

/// Frees the idempotency key of a file.
pub(crate) fn free_key(id: FileId) -> SqlQuery {
    let free = "UPDATE uploads SET idempotency_key = NULL WHERE id = $1 RETURNING 1";
    SqlQuery::new(free).bind(id.to_string())
}

/// Makes a file visible; its bytes are under this key.
pub(crate) fn confirm(id: FileId, blob_key: &str) -> SqlQuery {
    let confirm = "UPDATE uploads SET is_stored = 1, blob_key = $2, due_ms = expires_at_ms \
                   WHERE id = $1 RETURNING 1";
    SqlQuery::new(confirm).bind(id.to_string()).bind(blob_key)
}

/// Hides a file that a task names, until a sweep removes it.
pub(crate) fn hide(id: FileId, now_ms: UnixMs) -> SqlQuery {
    let hide = "UPDATE uploads SET deleted_at_ms = $2, due_ms = $2, idempotency_key = NULL \
                WHERE id = $1 RETURNING 1";
    SqlQuery::new(hide).bind(id.to_string()).bind(now_ms)
}

/// Removes a file that no task names; returns it for [`read_bytes`].
pub(crate) fn remove_unused(id: FileId) -> SqlQuery {
    let remove = "DELETE FROM uploads WHERE id = $1 AND NOT EXISTS (\
                    SELECT 1 FROM upload_uses WHERE upload = $1) RETURNING project, blob_key, bytes";
    SqlQuery::new(remove).bind(id.to_string())
}

/// Asks for the files that a sweep must look at, oldest first, with their projects.
pub(crate) fn due(now_ms: UnixMs, limit: usize) -> TypedQuery<(String, String)> {
    let ask = "SELECT id, project FROM uploads WHERE due_ms <= $1 ORDER BY due_ms, id LIMIT $2";
    TypedQuery {
        query: SqlQuery::new(ask).bind(now_ms).bind(limit as u64),
        read: |row| Ok((row.get(0)?, row.get(1)?)),
    }
}

/// Counts the files that a sweep must look at.
pub(crate) fn count_due(now_ms: UnixMs) -> TypedQuery<u64> {
    TypedQuery {
        query: SqlQuery::new("SELECT count(*) FROM uploads WHERE due_ms <= $1").bind(now_ms),
        read: |row| row.get(0),
    }
}

/// Removes those of these files that are still due and not needed by an unfinished task; returns them for
/// [`read_bytes`]. The task's own row is asked: that a task is gone with damage must not keep a file for ever.
pub(crate) fn remove_due(dialect: SqlDialect, ids: &str, now_ms: UnixMs) -> SqlQuery {
    let remove = format!(
        "DELETE FROM uploads WHERE id IN (SELECT value FROM {}) AND due_ms <= $2 AND NOT EXISTS (\
           SELECT 1 FROM upload_uses u JOIN tasks t ON t.id = u.task \
           WHERE u.upload = uploads.id AND t.phase IN ('waiting', 'running')) \
         RETURNING project, blob_key, bytes",
        dialect.each("$1")
    );
    SqlQuery::new(remove).bind(ids).bind(now_ms)
}

/// Postpones those of these files that are still due.
pub(crate) fn postpone_due(
    dialect: SqlDialect,
    ids: &str,
    now_ms: UnixMs,
    due_ms: UnixMs,
) -> SqlQuery {
    let postpone = format!(
        "UPDATE uploads SET due_ms = $3 WHERE id IN (SELECT value FROM {}) AND due_ms <= $2 RETURNING 1",
        dialect.each("$1")
    );
    SqlQuery::new(postpone).bind(ids).bind(now_ms).bind(due_ms)
}

/// Removes the uses of those of these files that are gone.
pub(crate) fn remove_uses(dialect: SqlDialect, ids: &str) -> SqlQuery {
    let remove = format!(
        "DELETE FROM upload_uses WHERE upload IN (SELECT value FROM {}) \
         AND NOT EXISTS (SELECT 1 FROM uploads WHERE id = upload) RETURNING 1",
        dialect.each("$1")
    );
    SqlQuery::new(remove).bind(ids)
}

/// Reads project, key and length of a removed file's bytes.
pub(crate) fn read_bytes(row: &SqlRow) -> Result<(String, String, u64), UnreadableValue> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Asks which of these keys have bytes of a file in any state.
pub(crate) fn used_keys(dialect: SqlDialect, keys: &[String]) -> TypedQuery<String> {
    let ask = format!(
        "SELECT DISTINCT blob_key FROM uploads WHERE blob_key IN (SELECT value FROM {})",
        dialect.each("$1")
    );
    TypedQuery {
        query: SqlQuery::new(ask).bind(json(keys)),
        read: |row| row.get(0),
    }
}

/// Asks for the bytes of all stored files.
pub(crate) fn stored_bytes() -> TypedQuery<StoredFile> {
    let ask = "SELECT DISTINCT blob_key, bytes, sha256 FROM uploads WHERE is_stored = 1 ORDER BY blob_key";
    TypedQuery {
        query: SqlQuery::new(ask),
        read: |row| {
            Ok(StoredFile {
                key: row.get(0)?,
                bytes: row.get(1)?,
                sha256: row.get(2)?,
            })
        },
    }
}

/// Records that a new task names these files.
pub(crate) fn add_uses(dialect: SqlDialect, task: TaskId, ids: &[FileId]) -> SqlQuery {
    let add = format!(
        "INSERT INTO upload_uses (upload, task) SELECT value, $2 FROM {} WHERE true \
         ON CONFLICT (upload, task) DO NOTHING RETURNING 1",
        dialect.each("$1")
    );
    SqlQuery::new(add).bind(json(ids)).bind(task.to_string())
}

/// Ends the uses of files by tasks that have ended.
pub(crate) fn end_uses(dialect: SqlDialect, tasks: &[TaskId]) -> SqlQuery {
    let end = format!(
        "DELETE FROM upload_uses WHERE task IN (SELECT value FROM {}) RETURNING 1",
        dialect.each("$1")
    );
    SqlQuery::new(end).bind(json(tasks))
}
