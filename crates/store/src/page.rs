//! Lists of tasks, a page at a time.

use std::sync::Arc;

use kinora_contract::limits::PAGE_BYTES_MAX;
use kinora_contract::{Task, TaskId, listed_bytes};

/// Order of a list, by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A query for tasks.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The project.
    pub project: String,
    /// Only tasks after this one in the order. It need not exist any more.
    pub after: Option<TaskId>,
    /// Maximum number; a page may hold fewer, see [`crate::Tasks::list`].
    pub limit: usize,
    /// The order.
    pub order: Order,
}

impl PageRequest {
    /// Whether the list includes a task.
    pub(crate) fn lists(&self, task: &Task) -> bool {
        task.project == self.project && task.status().is_some()
    }
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The tasks, in the requested order.
    pub tasks: Vec<Arc<Task>>,
    /// Whether there are more after them, even if the page holds fewer than requested.
    pub has_more: bool,
}

/// A page being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    page: Page,
    limit: usize,
    bytes: usize,
}

impl Filling {
    /// An empty page for up to `limit` tasks.
    pub(crate) fn up_to(limit: usize) -> Self {
        Self {
            page: Page::default(),
            limit,
            bytes: 0,
        }
    }

    /// Adds the next task of the list; `false` if it does not fit, so that the page is complete.
    pub(crate) fn add(&mut self, task: &Arc<Task>) -> bool {
        let tasks = &mut self.page.tasks;
        self.bytes += listed_bytes(task);
        let over = self.bytes > PAGE_BYTES_MAX && !tasks.is_empty();
        if over || tasks.len() == self.limit {
            self.page.has_more = true;
            return false;
        }
        tasks.push(task.clone());
        true
    }

    /// The finished page.
    pub(crate) fn page(self) -> Page {
        self.page
    }
}
