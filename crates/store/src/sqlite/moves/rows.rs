//! Rows of moved tasks: texts as stored, checksums computed anew.

use kinora_contract::TaskId;
use kinora_contract::spec::SPEC_VERSION;
use rusqlite::{Connection, Row, params};

use crate::sqlite::columns::{COLUMNS, int};
use crate::sqlite::fault::{Done, Fault};
use crate::sqlite::rows;
use crate::sqlite::sums::{self, Texts};
use crate::{Hex, MovedBinding, MovedPhase, MovedTask};

/// Reads a row of [`COLUMNS`], and compares its checksums if this program knows its version.
pub(super) fn read(row: &Row<'_>) -> Done<MovedTask> {
    let spec_version: u32 = row.get("spec_version")?;
    if spec_version <= SPEC_VERSION {
        rows::read(row)?;
    }
    let number = |column: &str| -> Done<Option<u64>> {
        let value: Option<i64> = row.get(column)?;
        Ok(value.map(i64::unsigned_abs))
    };
    let phase: String = row.get("phase")?;
    let unknown = || Fault::Corrupt(format!("unknown phase {phase:?}"));
    let task = MovedTask {
        seq: number("seq")?.unwrap_or(0),
        id: id(&row.get::<_, String>("id")?)?,
        project: row.get("project")?,
        phase: MovedPhase::of(&phase).ok_or_else(unknown)?,
        progress: row.get("progress")?,
        attempt: row.get("attempt")?,
        deaths: row.get("deaths")?,
        engine: row.get("engine")?,
        created_at_ms: number("created_at_ms")?.unwrap_or(0),
        started_at_ms: number("started_at_ms")?,
        finished_at_ms: number("finished_at_ms")?,
        expires_at_ms: number("expires_at_ms")?,
        artifact: row.get("artifact")?,
        failure: row.get("failure")?,
        warnings: row.get("warnings")?,
        ticket: row.get("kept")?,
        spec_version,
        spec: row.get("spec")?,
        metadata: row.get("metadata")?,
        priority: rows::priority(row.get("priority")?)?,
        reference_bytes: number("reference_bytes")?.unwrap_or(0),
        charged_bytes: number("charged_bytes")?.unwrap_or(0),
        references_ready: row.get("references_ready")?,
        idempotency: Vec::new(),
    };
    task.checked().map_err(Fault::Corrupt)
}

fn id(text: &str) -> Done<TaskId> {
    text.parse()
        .map_err(|error| Fault::Corrupt(format!("{text}: {error}")))
}

/// The idempotency keys of the task with this place.
pub(super) fn bindings(conn: &Connection, seq: u64) -> Done<Vec<MovedBinding>> {
    let mut query = conn.prepare_cached(
        "SELECT key, fingerprint, expires_at_ms FROM idempotency WHERE task_seq = ?1 ORDER BY key",
    )?;
    let found = query.query_map([int(seq)], |row| {
        Ok(MovedBinding {
            key: row.get(0)?,
            fingerprint: Hex(row.get(1)?),
            expires_at_ms: row.get::<_, i64>(2)?.unsigned_abs(),
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Adds a task with its idempotency keys.
pub(super) fn insert(conn: &Connection, task: &MovedTask) -> Done<()> {
    let wrong = |error: String| Fault::Corrupt(format!("{}: {error}", task.id));
    let record = task.record().map_err(wrong)?;
    let texts = Texts {
        artifact: task.artifact.as_deref().map(Into::into),
        failure: task.failure.as_deref().map(Into::into),
        warnings: task.warnings.as_deref().map(Into::into),
    };
    // Unknown for a newer version, like those of rows from before checksums existed.
    let sums = record.map(|record| {
        let of_texts = sums::of_texts(&record.task, &task.spec, &task.metadata);
        (of_texts, sums::of_state(&record, &texts))
    });
    let mut query = conn.prepare_cached(&format!(
        "INSERT INTO tasks ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, NULL, NULL, \
         ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, NULL)"
    ))?;
    query.execute(params![
        int(task.seq),
        task.id.to_string(),
        task.project,
        task.phase.name(),
        task.progress,
        task.attempt,
        task.engine,
        int(task.created_at_ms),
        task.started_at_ms.map(int),
        task.finished_at_ms.map(int),
        task.expires_at_ms.map(int),
        task.artifact,
        task.failure,
        task.spec_version,
        task.spec,
        task.metadata,
        task.ticket,
        task.references_ready,
        task.warnings,
        int(task.reference_bytes),
        int(task.charged_bytes),
        task.deaths,
        task.priority.rank(),
        sums.map(|(texts, _)| texts),
        sums.map(|(_, state)| state),
    ])?;
    let mut bind = conn.prepare_cached(
        "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task_seq) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for one in &task.idempotency {
        let expires_at_ms = int(one.expires_at_ms);
        bind.execute(params![
            task.project,
            one.key,
            one.fingerprint.0,
            expires_at_ms,
            int(task.seq)
        ])?;
    }
    Ok(())
}
