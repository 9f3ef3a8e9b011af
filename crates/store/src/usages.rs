//! Usage by project, as sums that a store keeps in memory and writes in the transaction that
//! changes them, so that they always match its rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Usage;

/// A change of a project's usage.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) project: Arc<str>,
    pub(crate) bytes: i64,
    pub(crate) tasks: i64,
}

impl Charge {
    pub(crate) fn of(project: &str, bytes: i64, tasks: i64) -> Self {
        let project = project.into();
        Self {
            project,
            bytes,
            tasks,
        }
    }

    pub(crate) fn reversed(self) -> Self {
        Self {
            bytes: -self.bytes,
            tasks: -self.tasks,
            ..self
        }
    }

    pub(crate) const fn is_nothing(&self) -> bool {
        self.bytes == 0 && self.tasks == 0
    }
}

/// The usage of all projects.
#[derive(Debug, Default)]
pub(crate) struct Usages {
    projects: HashMap<Arc<str>, Usage>,
    bytes: u64,
}

impl Usages {
    /// The usage of one project.
    pub(crate) fn of(&self, project: &str) -> Usage {
        self.projects.get(project).copied().unwrap_or_default()
    }

    /// Stored bytes of all projects.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn charge(&mut self, charge: &Charge) {
        let usage = self.projects.entry(charge.project.clone()).or_default();
        usage.bytes = usage.bytes.saturating_add_signed(charge.bytes);
        usage.tasks = usage.tasks.saturating_add_signed(charge.tasks);
        self.bytes = self.bytes.saturating_add_signed(charge.bytes);
        if *usage == Usage::default() {
            self.projects.remove(&charge.project);
        }
    }
}

impl FromIterator<(String, Usage)> for Usages {
    fn from_iter<I: IntoIterator<Item = (String, Usage)>>(projects: I) -> Self {
        let mut usages = Self::default();
        for (project, usage) in projects {
            usages.bytes = usages.bytes.saturating_add(usage.bytes);
            usages.projects.insert(project.into(), usage);
        }
        usages
    }
}
