//! The waiting clients of a process, by project, and the last state delivered to each. It decides
//! who receives a state that was read, and reads nothing itself. Each project has a hub and
//! renderings of its own, so the clients of one project wait for no lock that is held for
//! another's; the lock on all of them is held for a look-up only.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Task, TaskId, UnixMs};
use kinora_store::{EndedTasks, TaskGlance};

use super::mailbox::Mailbox;
use super::renderings::RenderingCache;

/// Number of checks for which an ended task of a project is remembered as delivered. Together they
/// last longer than the period for which the store reports ends again.
const CHECKS_REMEMBERED: u64 = 60;

/// The subject of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchSubject {
    /// Changes of one task of a project.
    Task(TaskId, Arc<str>),
    /// Changes of all tasks of a project.
    Project(Arc<str>),
}

impl WatchSubject {
    pub(super) const fn project(&self) -> &Arc<str> {
        match self {
            Self::Task(_, project) | Self::Project(project) => project,
        }
    }
}

/// All mailboxes, by subject.
#[derive(Debug, Default)]
pub(super) struct ProjectHub {
    tasks: HashMap<TaskId, WatchedTask>,
    projects: HashMap<Arc<str>, FollowedProject>,
    /// Number of checks so far.
    checks: u64,
    /// Number of delivered changes so far.
    changes: u64,
}

#[derive(Debug, Default)]
struct WatchedTask {
    delivered: Option<TaskGlance>,
    boxes: Vec<Arc<Mailbox>>,
}

#[derive(Debug, Default)]
struct FollowedProject {
    delivered: HashMap<TaskId, DeliveredState>,
    /// Time from which the project is followed; `None` until its first follower has read the
    /// current state.
    since_ms: Option<UnixMs>,
    /// The next check asks for ends from this time on.
    next_ms: UnixMs,
    /// Number of the change that is being delivered.
    change: u64,
    boxes: Vec<Arc<Mailbox>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveredState {
    Unfinished(TaskGlance),
    /// Ended, as of the check with this number.
    Ended(u64),
}

impl ProjectHub {
    pub(super) fn join(&mut self, subject: &WatchSubject) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        let boxes = match subject {
            WatchSubject::Task(id, _) => &mut self.tasks.entry(*id).or_default().boxes,
            WatchSubject::Project(name) => {
                &mut self.projects.entry(name.clone()).or_default().boxes
            }
        };
        boxes.push(mailbox.clone());
        mailbox
    }

    pub(super) fn leave(&mut self, subject: &WatchSubject, mailbox: &Arc<Mailbox>) {
        let boxes = match subject {
            WatchSubject::Task(id, _) => self.tasks.get_mut(id).map(|one| &mut one.boxes),
            WatchSubject::Project(name) => self.projects.get_mut(name).map(|one| &mut one.boxes),
        };
        let Some(boxes) = boxes else {
            return;
        };
        if let Some(place) = boxes.iter().position(|other| Arc::ptr_eq(other, mailbox)) {
            boxes.swap_remove(place);
        }
        if !boxes.is_empty() {
            return;
        }
        match subject {
            WatchSubject::Task(id, _) => drop(self.tasks.remove(id)),
            WatchSubject::Project(name) => drop(self.projects.remove(name)),
        }
    }

    /// Closes all mailboxes; later changes are delivered to nobody.
    pub(super) fn close(&mut self) {
        let tasks = std::mem::take(&mut self.tasks).into_values();
        let projects = std::mem::take(&mut self.projects).into_values();
        let boxes = tasks.map(|one| one.boxes);
        for mailbox in boxes.chain(projects.map(|one| one.boxes)).flatten() {
            mailbox.close();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.projects.is_empty()
    }

    /// Number of changes delivered so far.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The tasks that clients wait for.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// The time from which the ends in this project must be delivered, if it is followed.
    pub(super) fn next_ms(&self, project: &str) -> Option<UnixMs> {
        let project = self.projects.get(project)?;
        project.since_ms.map(|_| project.next_ms)
    }

    /// Delivers a task that was read; `None` if it no longer exists.
    pub(super) fn deliver(&mut self, id: TaskId, task: Option<&Arc<Task>>) {
        let glance = task.and_then(|task| TaskGlance::from_task(task));
        self.deliver_glance(id, glance, task);
        let (Some(task), Some(glance)) = (task, glance) else {
            return;
        };
        let looks = self.checks;
        if let Some(project) = self.projects.get_mut(&*task.project) {
            project.change = self.changes;
            project.deliver(glance, Some(task), looks);
        }
    }

    /// Delivers a task's state to the clients that wait for it.
    pub(super) fn deliver_glance(
        &mut self,
        id: TaskId,
        glance: Option<TaskGlance>,
        task: Option<&Arc<Task>>,
    ) {
        self.changes += 1;
        let Some(watched) = self.tasks.get_mut(&id) else {
            return;
        };
        // A missing task is always delivered: the client's own read decides whether it was deleted
        // or has expired.
        if glance.is_some() && watched.delivered == glance {
            return;
        }
        watched.delivered = glance;
        for mailbox in &watched.boxes {
            mailbox.put(id, task, self.changes);
        }
    }

    /// Records the tasks that a new follower of a project reads itself, and delivers the news among
    /// them to its earlier followers.
    pub(super) fn record_read(
        &mut self,
        name: &str,
        unfinished: &[TaskGlance],
        ended: &EndedTasks,
    ) {
        let looks = self.checks;
        self.changes += 1;
        let Some(project) = self.projects.get_mut(name) else {
            return;
        };
        project.change = self.changes;
        // A new follower has just read the project itself, so for it everything here is known.
        // Earlier followers may not have heard of some of it yet: if this was only recorded, a
        // notification that arrives later would look like a repetition and be dropped. What is new
        // to the hub is therefore delivered, unless nobody else follows.
        //
        // Example: A follows, B joins. B reads that task T runs; A's notification of that is still
        // on its way. T is delivered to A now, and the late notification changes nothing.
        let is_first = project.boxes.len() == 1 || project.since_ms.is_none();
        for glance in unfinished {
            match project.delivered.get(&glance.id) {
                Some(DeliveredState::Unfinished(_)) => {}
                // Another follower has read its end since.
                Some(DeliveredState::Ended(_)) => project.put(glance.id, None),
                None if is_first => drop(
                    project
                        .delivered
                        .insert(glance.id, DeliveredState::Unfinished(*glance)),
                ),
                None => project.deliver(*glance, None, looks),
            }
        }
        for (at_ms, id) in &ended.tasks {
            match project.delivered.get(id) {
                Some(DeliveredState::Unfinished(_)) => project.deliver_end(*id, *at_ms, looks),
                None if is_first => drop(project.record_end(*id, looks)),
                // A check, or a notification, delivers it to those who do not know it.
                None | Some(DeliveredState::Ended(_)) => {}
            }
        }
        if project.since_ms.is_none() {
            project.since_ms = Some(ended.now_ms);
            project.next_ms = ended.next_ms;
        }
    }

    /// Delivers the results of a check to the followers of a project.
    pub(super) fn deliver_project(
        &mut self,
        name: &str,
        unfinished: &[TaskGlance],
        ended: &EndedTasks,
    ) {
        let looks = self.checks;
        self.changes += 1;
        let Some(project) = self.projects.get_mut(name) else {
            return;
        };
        project.change = self.changes;
        project.next_ms = ended.next_ms;
        for (at_ms, id) in &ended.tasks {
            project.deliver_end(*id, *at_ms, looks);
        }
        let mut gone = project.unfinished();
        for glance in unfinished {
            gone.remove(&glance.id);
            project.deliver(*glance, None, looks);
        }
        // Ended or removed since then; the clients' own reads will show which.
        for id in gone {
            project.delivered.remove(&id);
            project.put(id, None);
        }
        project.delivered.retain(|_, told| match told {
            DeliveredState::Unfinished(_) => true,
            DeliveredState::Ended(at) => looks.saturating_sub(*at) < CHECKS_REMEMBERED,
        });
    }

    /// Starts a check of everything.
    pub(super) const fn begin_check(&mut self) {
        self.checks += 1;
    }
}

impl FollowedProject {
    fn deliver(&mut self, glance: TaskGlance, task: Option<&Arc<Task>>, looks: u64) {
        if glance.has_ended() {
            if self.record_end(glance.id, looks) {
                self.put(glance.id, task);
            }
            return;
        }
        let told = DeliveredState::Unfinished(glance);
        let before = self.delivered.get(&glance.id);
        // An unfinished state after an end is outdated: it was read before the end.
        if before
            .is_some_and(|before| *before == told || matches!(before, DeliveredState::Ended(_)))
        {
            return;
        }
        self.delivered.insert(glance.id, told);
        self.put(glance.id, task);
    }

    /// A task that ended before the project was followed is news only if it was delivered as
    /// unfinished.
    fn deliver_end(&mut self, id: TaskId, at_ms: UnixMs, looks: u64) {
        // Before the end is recorded. The store reports each end for a while; one from before the
        // project was followed is no news, unless a follower still takes the task for unfinished.
        let was_told = self.delivered.contains_key(&id);
        let is_past = self.since_ms.is_some_and(|since_ms| at_ms < since_ms);
        if self.record_end(id, looks) && (was_told || !is_past) {
            self.put(id, None);
        }
    }

    /// Records that a task has ended; returns whether that is news.
    fn record_end(&mut self, id: TaskId, looks: u64) -> bool {
        let before = self.delivered.insert(id, DeliveredState::Ended(looks));
        !matches!(before, Some(DeliveredState::Ended(_)))
    }

    /// Tasks whose last delivered state is unfinished.
    fn unfinished(&self) -> HashSet<TaskId> {
        let standing = self.delivered.iter();
        let standing = standing.filter(|(_, told)| matches!(told, DeliveredState::Unfinished(_)));
        standing.map(|(id, _)| *id).collect()
    }

    fn put(&self, id: TaskId, task: Option<&Arc<Task>>) {
        for mailbox in &self.boxes {
            mailbox.put(id, task, self.change);
        }
    }
}

/// The hub of a process, shared by its watcher and its waiting clients.
#[derive(Debug, Default)]
pub(super) struct SharedHub(Mutex<HubProjects>);

/// The projects in which clients wait.
#[derive(Debug, Default)]
struct HubProjects {
    named: HashMap<Arc<str>, HubEntry>,
    /// Number of waits for each task.
    tasks: HashMap<TaskId, usize>,
    /// Number of waits for all tasks of a project.
    followers: usize,
    /// Whether changes are being followed.
    is_followed: bool,
}

#[derive(Debug)]
struct HubEntry {
    project: Arc<WatchedProject>,
    /// Number of waits.
    waits: usize,
}

/// A project in which clients wait.
#[derive(Debug, Default)]
pub(super) struct WatchedProject {
    hub: Mutex<ProjectHub>,
    /// One of its clients renders at a time: the others get the result, and other projects a turn.
    pub(super) renderings: tokio::sync::Mutex<RenderingCache>,
}

impl WatchedProject {
    pub(super) fn hub(&self) -> MutexGuard<'_, ProjectHub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedHub {
    fn lock(&self) -> MutexGuard<'_, HubProjects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins, and calls `follow` if nobody follows changes.
    pub(super) fn join(
        &self,
        subject: &WatchSubject,
        follow: impl FnOnce(),
    ) -> (Arc<WatchedProject>, Arc<Mailbox>) {
        let mut all = self.lock();
        let entry = all.named.entry(subject.project().clone());
        let entry = entry.or_insert_with(|| HubEntry {
            project: Arc::default(),
            waits: 0,
        });
        entry.waits += 1;
        let project = entry.project.clone();
        match subject {
            WatchSubject::Task(id, _) => *all.tasks.entry(*id).or_default() += 1,
            WatchSubject::Project(_) => all.followers += 1,
        }
        if !std::mem::replace(&mut all.is_followed, true) {
            follow();
        }
        // The two locks are never held together, so there is no order to keep between them.
        drop(all);
        let mailbox = project.hub().join(subject);
        (project, mailbox)
    }

    pub(super) fn leave(
        &self,
        subject: &WatchSubject,
        project: &WatchedProject,
        mailbox: &Arc<Mailbox>,
    ) {
        project.hub().leave(subject, mailbox);
        let mut all = self.lock();
        match subject {
            WatchSubject::Task(id, _) => {
                if let Some(waits) = all.tasks.get_mut(id) {
                    *waits -= 1;
                    if *waits == 0 {
                        all.tasks.remove(id);
                    }
                }
            }
            WatchSubject::Project(_) => all.followers -= 1,
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

    /// Keeps the tasks whose changes may concern a waiting client.
    pub(super) fn concerning(&self, ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
        let all = self.lock();
        let ids = ids.into_iter();
        ids.filter(|id| all.followers > 0 || all.tasks.contains_key(id))
            .collect()
    }

    /// Delivers a task that was read; `None` if it no longer exists.
    pub(super) fn deliver(&self, id: TaskId, task: Option<&Arc<Task>>) {
        if let Some(task) = task {
            let found = self
                .lock()
                .named
                .get(&*task.project)
                .map(|entry| entry.project.clone());
            if let Some(project) = found {
                project.hub().deliver(id, Some(task));
            }
            return;
        }
        // Nothing says any more to which project it belonged.
        for (_, project) in self.all() {
            project.hub().deliver(id, None);
        }
    }

    /// Starts a check of everything. Returns the awaited tasks with their projects.
    pub(super) fn begin_check(&self) -> Vec<(TaskId, Arc<WatchedProject>)> {
        let mut awaited = Vec::new();
        for (_, project) in self.all() {
            let mut hub = project.hub();
            hub.begin_check();
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

#[cfg(test)]
mod tests;
