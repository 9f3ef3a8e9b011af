//! Who waits for which tasks, and what they were told last. It decides whom a state that was read concerns, and
//! reads nothing itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Task, TaskId, UnixMs};
use kinora_store::{Ended, Glance};

use super::mailbox::Mailbox;

/// Looks for which an ended task of a project is remembered as told. Together they last longer than the time for
/// which the store tells ends again.
const LOOKS_REMEMBERED: u64 = 60;

/// Whose changes somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// One task's.
    Task(TaskId),
    /// Those of all tasks of a project.
    Project(Arc<str>),
}

/// The hub of a process, shared by its watcher and those who wait.
#[derive(Debug, Default)]
pub(super) struct SharedHub(Mutex<Hub>);

impl SharedHub {
    pub(super) fn lock(&self) -> MutexGuard<'_, Hub> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits any more; then changes need not be followed until somebody joins.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut hub = self.lock();
        hub.is_followed = !hub.is_empty();
        !hub.is_followed
    }
}

/// All mailboxes, by their subjects.
#[derive(Debug, Default)]
pub(super) struct Hub {
    tasks: HashMap<TaskId, Watched>,
    projects: HashMap<Arc<str>, Project>,
    /// Looks at everything so far.
    looks: u64,
    /// Whether changes are being followed.
    pub(super) is_followed: bool,
}

#[derive(Debug, Default)]
struct Watched {
    told: Option<Glance>,
    boxes: Vec<Arc<Mailbox>>,
}

#[derive(Debug, Default)]
struct Project {
    told: HashMap<TaskId, Told>,
    /// Since when the project is followed; `None` until its first follower has read how it stands.
    since_ms: Option<UnixMs>,
    /// Ends before this time are told.
    next_ms: UnixMs,
    boxes: Vec<Arc<Mailbox>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Stands(Glance),
    /// At the look of this number.
    Ended(u64),
}

impl Hub {
    pub(super) fn join(&mut self, subject: &Subject) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        let boxes = match subject {
            Subject::Task(id) => &mut self.tasks.entry(*id).or_default().boxes,
            Subject::Project(name) => &mut self.projects.entry(name.clone()).or_default().boxes,
        };
        boxes.push(mailbox.clone());
        mailbox
    }

    pub(super) fn leave(&mut self, subject: &Subject, mailbox: &Arc<Mailbox>) {
        let boxes = match subject {
            Subject::Task(id) => self.tasks.get_mut(id).map(|one| &mut one.boxes),
            Subject::Project(name) => self.projects.get_mut(name).map(|one| &mut one.boxes),
        };
        let Some(boxes) = boxes else {
            return;
        };
        let is_own = |other: &Arc<Mailbox>| Arc::ptr_eq(other, mailbox);
        if let Some(place) = boxes.iter().position(is_own) {
            boxes.swap_remove(place);
        }
        if !boxes.is_empty() {
            return;
        }
        match subject {
            Subject::Task(id) => drop(self.tasks.remove(id)),
            Subject::Project(name) => drop(self.projects.remove(name)),
        }
    }

    /// Nobody hears of anything from now on.
    pub(super) fn close(&mut self) {
        let tasks = std::mem::take(&mut self.tasks).into_values();
        let projects = std::mem::take(&mut self.projects).into_values();
        let boxes = tasks.map(|one| one.boxes);
        for mailbox in boxes.chain(projects.map(|one| one.boxes)).flatten() {
            mailbox.close();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.projects.is_empty()
    }

    /// Whether a change of this task may concern somebody.
    pub(super) fn may_concern(&self, id: TaskId) -> bool {
        !self.projects.is_empty() || self.tasks.contains_key(&id)
    }

    /// The tasks that somebody waits for.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// The projects that somebody follows, and the time since when their ends are to be told.
    pub(super) fn projects(&self) -> Vec<(Arc<str>, UnixMs)> {
        let projects = self.projects.iter();
        let projects = projects.filter(|(_, one)| one.since_ms.is_some());
        projects
            .map(|(name, one)| (name.clone(), one.next_ms))
            .collect()
    }

    /// Tells of a task that was read; `None` where it is gone.
    pub(super) fn tell(&mut self, id: TaskId, task: Option<&Arc<Task>>) {
        let glance = task.and_then(|task| Glance::of(task));
        self.tell_glance(id, glance, task);
        let (Some(task), Some(glance)) = (task, glance) else {
            return;
        };
        let looks = self.looks;
        if let Some(project) = self.projects.get_mut(&*task.project) {
            project.tell(glance, Some(task), looks);
        }
    }

    /// Tells those who wait for one task where it stands.
    pub(super) fn tell_glance(
        &mut self,
        id: TaskId,
        glance: Option<Glance>,
        task: Option<&Arc<Task>>,
    ) {
        let Some(watched) = self.tasks.get_mut(&id) else {
            return;
        };
        if glance.is_some() && watched.told == glance {
            return;
        }
        watched.told = glance;
        for mailbox in &watched.boxes {
            mailbox.put(id, task);
        }
    }

    /// Remembers what a new follower of a project learns by itself.
    pub(super) fn note(&mut self, name: &str, unfinished: &[Glance], ended: &Ended) {
        let looks = self.looks;
        let Some(project) = self.projects.get_mut(name) else {
            return;
        };
        for glance in unfinished {
            let told = Told::Stands(*glance);
            project.told.entry(glance.id).or_insert(told);
        }
        for (_, id) in &ended.tasks {
            project.told.insert(*id, Told::Ended(looks));
        }
        if project.since_ms.is_none() {
            project.since_ms = Some(ended.now_ms);
            project.next_ms = ended.next_ms;
        }
    }

    /// Tells the followers of a project what a look at it has found.
    pub(super) fn tell_project(&mut self, name: &str, unfinished: &[Glance], ended: &Ended) {
        let looks = self.looks;
        let Some(project) = self.projects.get_mut(name) else {
            return;
        };
        project.next_ms = ended.next_ms;
        for (at_ms, id) in &ended.tasks {
            project.tell_end(*id, *at_ms, looks);
        }
        let mut gone = project.standing();
        for glance in unfinished {
            gone.remove(&glance.id);
            project.tell(*glance, None, looks);
        }
        // Ended or removed since; those that follow will see.
        for id in gone {
            project.told.remove(&id);
            project.put(id, None);
        }
        let is_remembered = |told: &Told| match told {
            Told::Stands(_) => true,
            Told::Ended(at) => looks.saturating_sub(*at) < LOOKS_REMEMBERED,
        };
        project.told.retain(|_, told| is_remembered(told));
    }

    /// A look at everything begins.
    pub(super) const fn begin_look(&mut self) {
        self.looks += 1;
    }
}

impl Project {
    fn tell(&mut self, glance: Glance, task: Option<&Arc<Task>>, looks: u64) {
        if glance.has_ended() {
            if self.note_end(glance.id, looks) {
                self.put(glance.id, task);
            }
            return;
        }
        let told = Told::Stands(glance);
        let before = self.told.get(&glance.id);
        // Nothing unfinished follows an end: this was read before it.
        if before.is_some_and(|before| *before == told || matches!(before, Told::Ended(_))) {
            return;
        }
        self.told.insert(glance.id, told);
        self.put(glance.id, task);
    }

    /// One that ended before the project was followed is news only where it was told as unfinished.
    fn tell_end(&mut self, id: TaskId, at_ms: UnixMs, looks: u64) {
        let was_told = self.told.contains_key(&id);
        let is_past = self.since_ms.is_some_and(|since_ms| at_ms < since_ms);
        if self.note_end(id, looks) && (was_told || !is_past) {
            self.put(id, None);
        }
    }

    /// Notes that a task has ended; returns whether that is news.
    fn note_end(&mut self, id: TaskId, looks: u64) -> bool {
        let before = self.told.insert(id, Told::Ended(looks));
        !matches!(before, Some(Told::Ended(_)))
    }

    /// Tasks that were unfinished when they were told last.
    fn standing(&self) -> HashSet<TaskId> {
        let standing = self.told.iter();
        let standing = standing.filter(|(_, told)| matches!(told, Told::Stands(_)));
        standing.map(|(id, _)| *id).collect()
    }

    fn put(&self, id: TaskId, task: Option<&Arc<Task>>) {
        for mailbox in &self.boxes {
            mailbox.put(id, task);
        }
    }
}

#[cfg(test)]
mod tests;
