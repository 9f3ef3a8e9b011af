//! Lists of tasks, a page at a time.

use std::sync::Arc;

use kinora_contract::limits::PAGE_BYTES_MAX;
use kinora_contract::{Task, TaskId, listed_bytes};

/// Which way a list runs by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Which tasks to list.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Whose.
    pub project: String,
    /// Only those after this one in the order. It need not exist any more.
    pub after: Option<TaskId>,
    /// How many at most; a page may hold fewer, see [`crate::Tasks::list`].
    pub limit: usize,
    /// Which way.
    pub order: Order,
}

impl PageRequest {
    /// Whether a task is in the list at all.
    pub(crate) fn lists(&self, task: &Task) -> bool {
        task.project == self.project && task.status().is_some()
    }
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The tasks, in the order asked for.
    pub tasks: Vec<Arc<Task>>,
    /// Whether there are more after them; also of a page that holds fewer than asked for.
    pub has_more: bool,
}

/// A page that is being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    page: Page,
    limit: usize,
    bytes: usize,
}

impl Filling {
    /// An empty page for so many tasks.
    pub(crate) fn up_to(limit: usize) -> Self {
        Self {
            page: Page::default(),
            limit,
            bytes: 0,
        }
    }

    /// Adds the next task of the list; `false` when it has no room for it, and the page is complete.
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

    /// The page, which knows whether a task had no room.
    pub(crate) fn page(self) -> Page {
        self.page
    }
}
