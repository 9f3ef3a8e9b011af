//! The waiting clients of a process, by project. Each project has a hub and renderings of its own,
//! so the clients of one project wait for no lock that is held for another's; the lock on all of
//! them is held for a look-up only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Task, TaskId, UnixMs};

use super::hub::{Hub, Subject};
use super::mailbox::Mailbox;
use super::renderings::Renderings;

/// The hub of a process, shared by its watcher and its waiting clients.
#[derive(Debug, Default)]
pub(super) struct SharedHub(Mutex<Projects>);

/// The projects in which clients wait.
#[derive(Debug, Default)]
struct Projects {
    named: HashMap<Arc<str>, Entry>,
    /// Number of waits for each task.
    tasks: HashMap<TaskId, usize>,
    /// Number of waits for all tasks of a project.
    followers: usize,
    /// Whether changes are being followed.
    is_followed: bool,
}

#[derive(Debug)]
struct Entry {
    project: Arc<WatchedProject>,
    /// Number of waits.
    waits: usize,
}

/// A project in which clients wait.
#[derive(Debug, Default)]
pub(super) struct WatchedProject {
    hub: Mutex<Hub>,
    /// One of its clients renders at a time: the others get the result, and other projects a turn.
    pub(super) renderings: tokio::sync::Mutex<Renderings>,
}

impl WatchedProject {
    pub(super) fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedHub {
    fn lock(&self) -> MutexGuard<'_, Projects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins, and calls `follow` if nobody follows changes.
    pub(super) fn join(
        &self,
        subject: &Subject,
        follow: impl FnOnce(),
    ) -> (Arc<WatchedProject>, Arc<Mailbox>) {
        let mut all = self.lock();
        let entry = all.named.entry(subject.project().clone());
        let entry = entry.or_insert_with(|| Entry {
            project: Arc::default(),
            waits: 0,
        });
        entry.waits += 1;
        let project = entry.project.clone();
        match subject {
            Subject::Task(id, _) => *all.tasks.entry(*id).or_default() += 1,
            Subject::Project(_) => all.followers += 1,
        }
        if !std::mem::replace(&mut all.is_followed, true) {
            follow();
        }
        drop(all);
        let mailbox = project.hub().join(subject);
        (project, mailbox)
    }

    pub(super) fn leave(
        &self,
        subject: &Subject,
        project: &WatchedProject,
        mailbox: &Arc<Mailbox>,
    ) {
        project.hub().leave(subject, mailbox);
        let mut all = self.lock();
        match subject {
            Subject::Task(id, _) => {
                if let Some(waits) = all.tasks.get_mut(id) {
                    *waits -= 1;
                    if *waits == 0 {
                        all.tasks.remove(id);
                    }
                }
            }
            Subject::Project(_) => all.followers -= 1,
        }
        if let Some(entry) = all.named.get_mut(subject.project()) {
            entry.waits -= 1;
            if entry.waits == 0 {
                all.named.remove(subject.project());
            }
        }
    }

    /// Whether no client waits, so that changes need not be followed until one joins.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut all = self.lock();
        all.is_followed = !all.named.is_empty();
        !all.is_followed
    }

    #[cfg(test)]
    pub(super) fn is_followed(&self) -> bool {
        self.lock().is_followed
    }

    /// Closes all mailboxes.
    pub(super) fn close(&self) {
        for (_, project) in self.all() {
            project.hub().close();
        }
    }

    /// Those of these tasks whose changes may concern a waiting client.
    pub(super) fn concerning(&self, ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
        let all = self.lock();
        let ids = ids.into_iter();
        ids.filter(|id| all.followers > 0 || all.tasks.contains_key(id))
            .collect()
    }

    /// Delivers a task that was read; `None` if it no longer exists.
    pub(super) fn tell(&self, id: TaskId, task: Option<&Arc<Task>>) {
        if let Some(task) = task {
            let found = self
                .lock()
                .named
                .get(&*task.project)
                .map(|entry| entry.project.clone());
            if let Some(project) = found {
                project.hub().tell(id, Some(task));
            }
            return;
        }
        // Nothing says any more to which project it belonged.
        for (_, project) in self.all() {
            project.hub().tell(id, None);
        }
    }

    /// Starts a check of everything. Returns the awaited tasks with their projects.
    pub(super) fn begin_look(&self) -> Vec<(TaskId, Arc<WatchedProject>)> {
        let mut awaited = Vec::new();
        for (_, project) in self.all() {
            let mut hub = project.hub();
            hub.begin_look();
            awaited.extend(hub.tasks().into_iter().map(|id| (id, project.clone())));
        }
        awaited
    }

    /// The followed projects, and the time from which their ends must be delivered.
    pub(super) fn followed(&self) -> Vec<(Arc<str>, UnixMs, Arc<WatchedProject>)> {
        let followed = self.all().into_iter().filter_map(|(name, project)| {
            let since_ms = project.hub().next_ms(&name)?;
            Some((name, since_ms, project))
        });
        followed.collect()
    }

    /// Number of awaited tasks and of waits for whole projects.
    pub(super) fn counts(&self) -> (usize, usize) {
        let all = self.lock();
        (all.tasks.len(), all.followers)
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<WatchedProject>)> {
        let all = self.lock();
        let named = all.named.iter();
        named
            .map(|(name, entry)| (name.clone(), entry.project.clone()))
            .collect()
    }
}
