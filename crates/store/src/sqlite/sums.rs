//! Whether a row is as it was written: its checksums, and whether its phase and fields agree. Lease
//! end, worker and charge are not included: no acknowledged data depends on them.

use std::borrow::Cow;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Priority, State, Task};
use rusqlite::Row;
use serde_json::to_string;

use super::fault::{Done, Fault};
use super::rows::{at, int, phase_name};

/// Checksum of a task, with its texts as stored.
pub(super) fn of_texts(task: &Task, spec: &str, metadata: &str) -> i64 {
    let sum = Sum::new()
        .text(&task.id.to_string())
        .text(&task.project)
        .number(stored(task.created_at_ms))
        .text(spec)
        .text(metadata);
    // Omitted for the default, so that checksums from before priorities existed stay valid.
    let sum = match task.priority {
        Priority::Normal => sum,
        other => sum.text(other.name()),
    };
    i64::from(sum.end())
}

/// Texts of a task's state as stored.
#[derive(Debug, Default)]
pub(super) struct Texts<'a> {
    pub(super) artifact: Option<Cow<'a, str>>,
    pub(super) failure: Option<Cow<'a, str>>,
    pub(super) warnings: Option<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    /// The texts of a record to write.
    pub(super) fn of(record: &Record) -> Done<Self> {
        let task = &record.task;
        let mut texts = Self::default();
        match &task.state {
            State::Completed(artifact) => texts.artifact = Some(to_string(artifact)?.into()),
            State::Failed(failure) => texts.failure = Some(to_string(failure)?.into()),
            _ => {}
        }
        if !task.warnings.is_empty() {
            texts.warnings = Some(to_string(&task.warnings)?.into());
        }
        Ok(texts)
    }

    /// The texts of a row.
    fn stored(row: &'a Row<'_>) -> Done<Self> {
        let text = |column: usize| -> Done<Option<Cow<'a, str>>> {
            let text = row.get_ref(column)?.as_str_or_null()?;
            Ok(text.map(Cow::Borrowed))
        };
        Ok(Self {
            artifact: text(const { at("artifact") })?,
            failure: text(const { at("failure") })?,
            warnings: text(const { at("warnings") })?,
        })
    }
}

/// The checksum of a task's state.
pub(super) fn of_state(record: &Record, texts: &Texts<'_>) -> i64 {
    let task = &record.task;
    let sum = Sum::new()
        .number(stored(record.seq))
        .text(phase_name(task.state.phase()))
        .number(u64::from(task.attempt))
        .maybe(task.started_at_ms.map(stored))
        .maybe(task.finished_at_ms.map(stored))
        .maybe(task.expires_at_ms.map(stored))
        .maybe(record.token().map(stored))
        .number(u64::from(task.progress))
        .maybe_text(task.engine.as_deref())
        .maybe_text(texts.artifact.as_deref())
        .maybe_text(texts.failure.as_deref())
        .maybe_text(texts.warnings.as_deref());
    i64::from(sum.end())
}

/// A number as it will be read back.
fn stored(value: u64) -> u64 {
    int(value).unsigned_abs()
}

/// Whether the record read from `row` matches its checksums.
pub(super) fn judge(row: &Row<'_>, record: &Record) -> Done<()> {
    let texts: Option<i64> = row.get(const { at("texts_sum") })?;
    if let Some(texts) = texts {
        let (spec, metadata) = (
            row.get_ref(const { at("spec") })?,
            row.get_ref(const { at("metadata") })?,
        );
        let found = of_texts(&record.task, spec.as_str()?, metadata.as_str()?);
        expect(found == texts, record, "its request has the wrong checksum")?;
    }
    let state: Option<i64> = row.get(const { at("state_sum") })?;
    if let Some(state) = state {
        let found = of_state(record, &Texts::stored(row)?);
        expect(found == state, record, "its state has the wrong checksum")?;
    }
    agree(record)
}

/// Whether the phase of a record and its fields agree.
fn agree(record: &Record) -> Done<()> {
    let task = &record.task;
    let held = record.lease.is_some();
    let ended = task.finished_at_ms.is_some() && task.expires_at_ms.is_some();
    let unended = task.finished_at_ms.is_none() && task.expires_at_ms.is_none();
    let fits = match &task.state {
        State::Waiting => !held && unended && task.progress < 100,
        State::Running => {
            let begun = task.started_at_ms.is_some() && task.attempt > 0;
            held && begun && unended && task.progress < 100
        }
        State::Completed(_) => !held && ended && task.progress == 100,
        // A cancel keeps the lease.
        State::Failed(_) | State::Expired => ended,
    };
    expect(fits, record, "its phase and its fields do not agree")
}

fn expect(good: bool, record: &Record, wrong: &str) -> Done<()> {
    if good {
        return Ok(());
    }
    Err(Fault::Corrupt(format!("{}: {wrong}", record.task.id)))
}

/// The summed bytes of an ordinary task.
const BYTES: usize = 512;

/// CRC-32 (IEEE 802.3): it sees each change of up to 32 bits that lie side by side. The fields are gathered and summed
/// at once: one by one, short ones take several times as long.
#[derive(Clone, Debug)]
pub(super) struct Sum(Vec<u8>);

impl Sum {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(BYTES))
    }

    /// Adds bytes and the boundary to the next field.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.number(bytes.len() as u64)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds a number that may be absent.
    fn maybe(self, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    /// Adds a text that may be absent.
    fn maybe_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    pub(super) fn end(self) -> u32 {
        crc32fast::hash(&self.0)
    }
}
