//! Rows of moved tasks: texts as stored.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::cursor::Cursor;
use super::{CLAIMABLE, NAMES, WANTED, Written, parse_id, priority};
use crate::postgres::fault::{Done, corrupt};
use crate::stored::int;
use crate::{MovedPhase, MovedTask};

/// The cost of a task with a spec that this program cannot read: the minimum.
const COST_UNKNOWN: u64 = 1;

impl Written {
    /// Adds a row.
    pub(in crate::postgres) fn add_moved(&mut self, task: &MovedTask) -> Done<()> {
        let wrong = |error: String| corrupt(format!("{}: {error}", task.id));
        let record = task.record().map_err(wrong)?;
        let cost = record.map_or(COST_UNKNOWN, |record| record.task.spec.cost());
        let waits = task.phase == MovedPhase::Waiting;
        let place = match task.references_ready {
            true => CLAIMABLE,
            false => WANTED,
        };
        self.id.push(task.id.to_string());
        self.seq.push(int(task.seq));
        self.project.push(task.project.clone());
        self.model.push(task.model());
        self.phase.push(task.phase.name());
        self.place.push(waits.then_some(place));
        self.progress.push(task.progress.into());
        self.attempt.push(task.attempt.into());
        self.deaths.push(task.deaths.into());
        self.engine.push(task.engine.clone());
        self.priority.push(task.priority.rank());
        self.created_at_ms.push(int(task.created_at_ms));
        self.started_at_ms.push(task.started_at_ms.map(int));
        self.finished_at_ms.push(task.finished_at_ms.map(int));
        self.expires_at_ms.push(task.expires_at_ms.map(int));
        self.cost.push(int(cost));
        self.add_moved_texts(task);
        self.add_free();
        Ok(())
    }

    fn add_moved_texts(&mut self, task: &MovedTask) {
        self.artifact.push(task.artifact.clone());
        self.failure.push(task.failure.clone());
        self.warnings.push(task.warnings.clone());
        let ticket = task.ticket.clone();
        self.ticket.push(ticket.map(String::into_bytes));
        self.spec_version.push(task.spec_version.into());
        self.spec.push(Some(task.spec.clone()));
        self.metadata.push(Some(task.metadata.clone()));
        self.reference_bytes.push(int(task.reference_bytes));
        self.charged_bytes.push(int(task.charged_bytes));
        self.fetch_state.push((!task.references_ready).into());
    }

    /// No worker or fetch holds it, and its trace stays behind.
    fn add_free(&mut self) {
        self.lease_token.push(None);
        self.lease_until_ms.push(None);
        self.lease_until_steady_ms.push(None);
        self.worker.push(None);
        self.fetch_tries.push(0);
        self.fetch_until_ms.push(None);
        self.fetch_token.push(None);
        self.trace.push(None);
    }
}

/// Reads a row of [`super::columns`].
pub(in crate::postgres) fn read(row: &Row) -> Done<MovedTask> {
    let places: BTreeMap<&str, usize> = NAMES.iter().copied().zip(0..).collect();
    let at = |name: &str| Cursor::at(row, places.get(name).copied().unwrap_or(usize::MAX));
    let text = |name| -> Done<Option<String>> { at(name).next() };
    let phase: &str = at("phase").next()?;
    let unknown = || corrupt(format!("unknown phase {phase:?}"));
    let ticket: Option<Vec<u8>> = at("ticket").next()?;
    let progress: i16 = at("progress").next()?;
    let fetch_state: i16 = at("fetch_state").next()?;
    let task = MovedTask {
        seq: at("seq").number()?,
        id: parse_id(at("id").next()?)?,
        project: at("project").next()?,
        phase: MovedPhase::of(phase).ok_or_else(unknown)?,
        progress: u8::try_from(progress).map_err(|_| corrupt("progress".to_owned()))?,
        attempt: at("attempt").small()?,
        deaths: at("deaths").small()?,
        engine: text("engine")?,
        created_at_ms: at("created_at_ms").number()?,
        started_at_ms: at("started_at_ms").maybe()?,
        finished_at_ms: at("finished_at_ms").maybe()?,
        expires_at_ms: at("expires_at_ms").maybe()?,
        artifact: text("artifact")?,
        failure: text("failure")?,
        warnings: text("warnings")?,
        ticket: ticket.map(|ticket| String::from_utf8_lossy(&ticket).into_owned()),
        spec_version: at("spec_version").small()?,
        spec: at("spec").next()?,
        metadata: at("metadata").next()?,
        priority: priority(at("priority").next()?)?,
        reference_bytes: at("reference_bytes").number()?,
        charged_bytes: at("charged_bytes").number()?,
        references_ready: fetch_state == 0,
        idempotency: Vec::new(),
    };
    task.checked().map_err(corrupt)
}
