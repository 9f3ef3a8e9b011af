//! Usage by project. The sums are kept in memory and written in the transaction that
//! changes them, so that they are those of the rows at any moment; a test counts again.

use std::collections::HashMap;
use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Event;
use rusqlite::Connection;

use super::batch::Batch;
use super::fault::Done;
use super::rows;
use super::writer::Operation;
use crate::{Counts, Usage};

/// A change of a project's usage.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) project: Arc<str>,
    pub(super) bytes: i64,
    pub(super) tasks: i64,
}

impl Charge {
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

/// Reads a project's usage.
#[derive(Debug)]
pub(super) struct Ask(pub(super) String);

impl Operation for Ask {
    type Output = Usage;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Usage> {
        Ok(batch.index().usage(&self.0))
    }
}

/// Counts the tasks that wait and run.
#[derive(Debug)]
pub(super) struct Count;

impl Operation for Count {
    type Output = Counts;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Counts> {
        let unfinished = batch.index().records().map(|record| &**record);
        Ok(Counts::of(unfinished, batch.now.wall_ms))
    }
}

/// Records the size of a task's fetched references.
#[derive(Debug)]
pub(super) struct ChargeReferences {
    pub(super) task: TaskId,
    pub(super) bytes: u64,
}

impl Operation for ChargeReferences {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        if let Some(before) = batch.find(self.task)?
            && before.reference_bytes != self.bytes
        {
            // Without effect on a task that has ended.
            let _ = batch.apply(&before, Event::ReferencesStored { bytes: self.bytes })?;
        }
        Ok(())
    }
}
