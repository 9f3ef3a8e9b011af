//! What each project has stored. The sums are kept in memory and written in the transaction that
//! changes them, so that they are those of the rows at any moment; a test counts again.

use std::collections::HashMap;
use std::sync::Arc;

use kinora_contract::TaskId;
use rusqlite::Connection;

use super::batch::Batch;
use super::fault::Done;
use super::record::Record;
use super::rows;
use super::writer::Operation;
use crate::Usage;

/// What changes in a project's usage.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) project: Arc<str>,
    pub(super) bytes: i64,
    pub(super) tasks: i64,
}

impl Charge {
    /// A new task.
    pub(super) fn added(record: &Record) -> Self {
        Self::of(&record.task.project, signed(record.charged_bytes), 1)
    }

    /// A task that takes more or less than before, or is listed no more.
    pub(super) fn changed(before: &Record, after: &Record) -> Self {
        let bytes = signed(after.charged_bytes) - signed(before.charged_bytes);
        let listed = |record: &Record| i64::from(record.task.status().is_some());
        let tasks = listed(after) - listed(before);
        Self::of(&after.task.project, bytes, tasks)
    }

    pub(super) fn of(project: &str, bytes: i64, tasks: i64) -> Self {
        let project = project.into();
        Self {
            project,
            bytes,
            tasks,
        }
    }

    pub(super) fn reversed(self) -> Self {
        Self {
            bytes: -self.bytes,
            tasks: -self.tasks,
            ..self
        }
    }

    pub(super) const fn is_nothing(&self) -> bool {
        self.bytes == 0 && self.tasks == 0
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The usage of all projects.
#[derive(Debug, Default)]
pub(super) struct Usages {
    projects: HashMap<Arc<str>, Usage>,
    bytes: u64,
}

impl Usages {
    /// As it was last written.
    pub(super) fn load(conn: &Connection) -> Done<Self> {
        let mut usages = Self::default();
        for (project, usage) in rows::usages(conn)? {
            usages.bytes = usages.bytes.saturating_add(usage.bytes);
            usages.projects.insert(project.into(), usage);
        }
        Ok(usages)
    }

    pub(super) fn of(&self, project: &str) -> Usage {
        self.projects.get(project).copied().unwrap_or_default()
    }

    /// Bytes of all projects.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn charge(&mut self, charge: &Charge) {
        let usage = self.projects.entry(charge.project.clone()).or_default();
        usage.bytes = usage.bytes.saturating_add_signed(charge.bytes);
        usage.tasks = usage.tasks.saturating_add_signed(charge.tasks);
        self.bytes = self.bytes.saturating_add_signed(charge.bytes);
        if *usage == Usage::default() {
            self.projects.remove(&charge.project);
        }
    }
}

/// Asks what a project has stored.
#[derive(Debug)]
pub(super) struct Ask(pub(super) String);

impl Operation for Ask {
    type Output = Usage;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Usage> {
        Ok(batch.index().usage(&self.0))
    }
}

/// Records what the fetched references of a task take.
#[derive(Debug)]
pub(super) struct ChargeReferences {
    pub(super) task: TaskId,
    pub(super) bytes: u64,
}

impl Operation for ChargeReferences {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let found = batch.find(self.task)?;
        let Some(before) = found.filter(|record| record.is_unfinished()) else {
            return Ok(());
        };
        if before.reference_bytes == self.bytes {
            return Ok(());
        }
        let mut after = Record::clone(&before);
        after.reference_bytes = self.bytes;
        let without = before.charged_bytes.saturating_sub(before.reference_bytes);
        after.charged_bytes = without.saturating_add(self.bytes);
        rows::set_reference_bytes(batch.conn, &after)?;
        batch.charge(Charge::changed(&before, &after));
        batch.note(self.task, Some(Arc::new(after)));
        Ok(())
    }
}
