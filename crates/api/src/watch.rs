//! Clients that wait for changes of tasks instead of polling, by a long poll or an event stream.
//! One follower per process reads each changed task once and puts it into the mailboxes of all
//! clients that wait for it. A change that it misses is found by its next check.
//!
//! The hub decides who receives a state that was read, and reads nothing itself. Each project has a
//! hub and renderings of its own, so the clients of one project wait for no lock that is held for
//! another's; the lock on all of them is held for a look-up only.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::limits::{
    EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX, EVENTS_RESUMED_MAX,
    PROJECT_EVENT_STREAMS_PER_KEY_MAX, WAITS_MAX, WAITS_PER_KEY_MAX,
};
use kinora_contract::{Task, TaskId, UnixMs};
use kinora_store::{
    ChangeReceiver, EndedRequest, EndedTasks, StoreError, TaskChange, TaskGlance, TaskStore,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::request_turns::RequestTurns;
pub(crate) use keys::{KeyHold, WatchedKeys};
use mailbox::Mailbox;
pub(crate) use mailbox::TaskUpdate;
pub(crate) use renderings::RenderedTask;
use renderings::RenderingCache;

mod keys;
mod mailbox;
mod renderings;

/// The waiting clients of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct TaskWatch {
    hub: Arc<SharedHub>,
    /// Permits for long polls.
    pub(crate) waits: RequestTurns,
    /// Permits for event streams.
    pub(crate) streams: RequestTurns,
    /// Additional permits for event streams of a whole project.
    pub(crate) project_streams: RequestTurns,
    /// The API keys of all waiting clients.
    pub(crate) keys: WatchedKeys,
}

/// A client's place among the waiting; dropping it leaves.
#[derive(Debug)]
pub(crate) struct TaskWaiter {
    hub: Arc<SharedHub>,
    project: Arc<WatchedProject>,
    subject: WatchSubject,
    mailbox: Arc<Mailbox>,
}

impl Default for TaskWatch {
    fn default() -> Self {
        Self {
            hub: Arc::default(),
            waits: RequestTurns::new(WAITS_MAX, WAITS_PER_KEY_MAX),
            streams: RequestTurns::new(EVENT_STREAMS_MAX, EVENT_STREAMS_PER_KEY_MAX),
            project_streams: RequestTurns::new(
                EVENT_STREAMS_MAX,
                PROJECT_EVENT_STREAMS_PER_KEY_MAX,
            ),
            keys: WatchedKeys::default(),
        }
    }
}

impl TaskWatch {
    /// Starts waiting for changes of `subject`. Delivers every change that is not yet readable when
    /// this returns, until `stopping`.
    pub(crate) fn join(
        &self,
        subject: WatchSubject,
        tasks: &Arc<dyn TaskStore>,
        stopping: &CancellationToken,
    ) -> TaskWaiter {
        let (project, mailbox) = self.hub.join(&subject, || {
            let shared = Arc::downgrade(&self.hub);
            let (tasks, changes) = (tasks.clone(), tasks.changes());
            tokio::spawn(follow(shared, tasks, changes, stopping.clone()));
        });
        // The follower closes what has joined before the stop.
        if stopping.is_cancelled() {
            mailbox.close();
        }
        TaskWaiter {
            hub: self.hub.clone(),
            project,
            subject,
            mailbox,
        }
    }
}

impl TaskWaiter {
    /// The changes received so far.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Records the tasks that a follower of a project has read itself, so that they are not
    /// delivered again.
    pub(crate) fn record_read(&self, unfinished: &[TaskGlance], ended: &EndedTasks) {
        debug_assert!(self.subject.task.is_none(), "one task is not its project");
        self.project.hub().record_read(unfinished, ended);
    }

    /// The rendering of the task of this update, after its change. The clients of a project take
    /// turns here: the first one calls `render`, and the others get the result.
    pub(crate) async fn rendering<E>(
        &self,
        update: TaskUpdate,
        render: impl AsyncFnOnce(TaskUpdate) -> Result<Option<RenderedTask>, E>,
    ) -> Result<Option<RenderedTask>, E> {
        let mut renderings = self.project.renderings.lock().await;
        let (id, change) = (update.id, update.change);
        if let Some(rendering) = renderings.after(id, change) {
            return Ok(rendering);
        }
        // A rendering may be reused for every change that it shows. A task that came with the
        // update shows that change. One that `render` reads shows at least all changes up to now,
        // so the number is taken before the read; a later change may be in it too, and then is
        // rendered once more for nothing.
        let covers = match &update.task {
            // As it was read when the change was delivered.
            Some(_) => change,
            None => self.project.hub().changes,
        };
        let rendering = render(update).await?;
        renderings.put(id, covers, rendering.clone());
        Ok(rendering)
    }
}

impl Drop for TaskWaiter {
    fn drop(&mut self) {
        self.hub.leave(&self.subject, &self.project, &self.mailbox);
    }
}

/// Maximum number of changes that are read together.
const CHANGES_AT_ONCE: usize = 256;
/// Maximum number of tasks in one query of a check.
const CHECKED_AT_ONCE: usize = 1_000;
/// Minimum pause between two checks.
const CHECK_PAUSE: Duration = Duration::from_secs(2);
/// Added to that pause for each awaited task and each project, so that checks cost the store
/// little.
const CHECK_PAUSE_PER_TASK: Duration = Duration::from_millis(1);
const CHECK_PAUSE_PER_PROJECT: Duration = Duration::from_millis(20);
/// Pause before a check when a change was missed.
const MISSED_PAUSE: Duration = Duration::from_millis(100);

/// Follows `changes` until no client waits or the service stops.
async fn follow(
    hub: Weak<SharedHub>,
    tasks: Arc<dyn TaskStore>,
    mut changes: ChangeReceiver,
    stopping: CancellationToken,
) {
    // Two sources of changes. Notifications are fast, but may be lost: another process's may not
    // arrive, or a read of the store may fail. Checks compare the state of everything that clients
    // wait for, and find whatever was lost. The hub delivers a state once, however it was found.
    let mut look = pin!(sleep(CHECK_PAUSE));
    // Whether the next check was brought forward.
    let mut is_early = false;
    loop {
        let heard = tokio::select! {
            biased;
            () = stopping.cancelled() => {
                if let Some(hub) = hub.upgrade() {
                    hub.close();
                }
                return;
            }
            change = changes.next() => Some(change),
            () = look.as_mut() => None,
        };
        // Weak: the follower must not keep a hub alive that nobody uses any more.
        let Some(hub) = hub.upgrade() else {
            return;
        };
        if hub.is_abandoned() {
            return;
        }
        let has_missed = match heard {
            Some(first) => !deliver_changes(&hub, &*tasks, &mut changes, first).await,
            None => {
                if let Err(error) = check_all(&hub, &*tasks).await {
                    tracing::debug!(%error, "tasks with waiting clients not read");
                }
                is_early = false;
                look.set(sleep(check_pause(&hub)));
                false
            }
        };
        // Brought forward once per check: during an outage every change is missed, and a check for
        // each would make it worse.
        if has_missed && !is_early {
            is_early = true;
            look.set(sleep(MISSED_PAUSE));
        }
    }
}

/// Delivers `first` and all other changes received by now; returns whether none was missed.
async fn deliver_changes(
    shared: &SharedHub,
    tasks: &dyn TaskStore,
    changes: &mut ChangeReceiver,
    first: TaskChange,
) -> bool {
    let mut ids = BTreeSet::new();
    let mut next = Some(first);
    let mut is_complete = true;
    while let Some(change) = next {
        match change {
            TaskChange::Of(id) => drop(ids.insert(id)),
            TaskChange::Unknown => is_complete = false,
        }
        next = if ids.len() < CHANGES_AT_ONCE {
            changes.try_next()
        } else {
            None
        };
    }
    // Most changes concern nobody: reading only the tasks that clients wait for makes the cost
    // depend on the waiting clients, not on the load of the service.
    let ids = shared.concerning(ids);
    let read = join_all(ids.iter().map(|id| tasks.task(*id))).await;
    let mut read: Vec<_> = ids.into_iter().zip(read).collect();
    // In the order of their ends: the id of an event says that its client has all earlier ones.
    read.sort_by_key(|(_, read)| read.as_ref().ok()?.as_ref()?.finished_at_ms);
    for (id, read) in read {
        match read {
            Ok(task) => shared.deliver(id, task.as_ref()),
            Err(_) => is_complete = false,
        }
    }
    is_complete
}

/// Delivers all changes that were missed.
async fn check_all(shared: &SharedHub, tasks: &dyn TaskStore) -> Result<(), StoreError> {
    for some in shared.begin_check().chunks(CHECKED_AT_ONCE) {
        let ids: Vec<TaskId> = some.iter().map(|(id, _)| *id).collect();
        let glances = tasks.glance(&ids).await?;
        for ((id, project), glance) in some.iter().zip(glances) {
            project.hub().deliver_glance(*id, glance, None);
        }
    }
    for (name, since_ms, project) in shared.followed() {
        let request = EndedRequest {
            project: name.to_string(),
            since_ms,
            limit: EVENTS_RESUMED_MAX,
        };
        // Read before the ended tasks, so that a task which ends in between is reported as ended.
        let unfinished = tasks.unfinished(&name).await?;
        let ended = tasks.ended(request).await?;
        project.hub().deliver_project(&unfinished, &ended);
    }
    Ok(())
}

/// The pause before the next check.
fn check_pause(hub: &SharedHub) -> Duration {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (tasks, followers) = hub.counts();
    let tasks = CHECK_PAUSE_PER_TASK.saturating_mul(count(tasks));
    let projects = CHECK_PAUSE_PER_PROJECT.saturating_mul(count(followers));
    CHECK_PAUSE.max(tasks.saturating_add(projects))
}

/// Number of checks for which an ended task of a project is remembered as delivered. Together they
/// last longer than the period for which the store reports ends again.
const CHECKS_REMEMBERED: u64 = 60;

/// The subject of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchSubject {
    pub(crate) project: Arc<str>,
    /// `None`: changes of all tasks of the project.
    pub(crate) task: Option<TaskId>,
}

/// All mailboxes of a project, by subject.
#[derive(Debug, Default)]
struct ProjectHub {
    tasks: HashMap<TaskId, WatchedTask>,
    /// `None` while nobody waits for all tasks of the project.
    followed: Option<FollowedProject>,
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
    fn join(&mut self, subject: &WatchSubject) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        let boxes = match subject.task {
            Some(id) => &mut self.tasks.entry(id).or_default().boxes,
            None => &mut self.followed.get_or_insert_default().boxes,
        };
        boxes.push(mailbox.clone());
        mailbox
    }

    fn leave(&mut self, subject: &WatchSubject, mailbox: &Arc<Mailbox>) {
        let boxes = match subject.task {
            Some(id) => self.tasks.get_mut(&id).map(|one| &mut one.boxes),
            None => self.followed.as_mut().map(|one| &mut one.boxes),
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
        match subject.task {
            Some(id) => drop(self.tasks.remove(&id)),
            None => self.followed = None,
        }
    }

    /// Closes all mailboxes; later changes are delivered to nobody.
    fn close(&mut self) {
        let tasks = std::mem::take(&mut self.tasks).into_values();
        let followed = self.followed.take().map(|one| one.boxes);
        for mailbox in tasks.map(|one| one.boxes).chain(followed).flatten() {
            mailbox.close();
        }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.followed.is_none()
    }

    /// The time from which the ends in this project must be delivered, if it is followed.
    fn next_ms(&self) -> Option<UnixMs> {
        let project = self.followed.as_ref()?;
        project.since_ms.map(|_| project.next_ms)
    }

    /// Delivers a task that was read; `None` if it no longer exists.
    fn deliver(&mut self, id: TaskId, task: Option<&Arc<Task>>) {
        let glance = task.and_then(|task| TaskGlance::from_task(task));
        self.deliver_glance(id, glance, task);
        let (Some(task), Some(glance)) = (task, glance) else {
            return;
        };
        let looks = self.checks;
        if let Some(project) = &mut self.followed {
            project.change = self.changes;
            project.deliver(glance, Some(task), looks);
        }
    }

    /// Delivers a task's state to the clients that wait for it.
    fn deliver_glance(&mut self, id: TaskId, glance: Option<TaskGlance>, task: Option<&Arc<Task>>) {
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
    fn record_read(&mut self, unfinished: &[TaskGlance], ended: &EndedTasks) {
        let looks = self.checks;
        self.changes += 1;
        let Some(project) = &mut self.followed else {
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
    fn deliver_project(&mut self, unfinished: &[TaskGlance], ended: &EndedTasks) {
        let looks = self.checks;
        self.changes += 1;
        let Some(project) = &mut self.followed else {
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
struct SharedHub(Mutex<HubProjects>);

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
struct WatchedProject {
    hub: Mutex<ProjectHub>,
    /// One of its clients renders at a time: the others get the result, and other projects a turn.
    renderings: tokio::sync::Mutex<RenderingCache>,
}

impl WatchedProject {
    fn hub(&self) -> MutexGuard<'_, ProjectHub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedHub {
    fn lock(&self) -> MutexGuard<'_, HubProjects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins, and calls `follow` if nobody follows changes.
    fn join(
        &self,
        subject: &WatchSubject,
        follow: impl FnOnce(),
    ) -> (Arc<WatchedProject>, Arc<Mailbox>) {
        let mut all = self.lock();
        let entry = all.named.entry(subject.project.clone());
        let entry = entry.or_insert_with(|| HubEntry {
            project: Arc::default(),
            waits: 0,
        });
        entry.waits += 1;
        let project = entry.project.clone();
        match subject.task {
            Some(id) => *all.tasks.entry(id).or_default() += 1,
            None => all.followers += 1,
        }
        if !std::mem::replace(&mut all.is_followed, true) {
            follow();
        }
        // The two locks are never held together, so there is no order to keep between them.
        drop(all);
        let mailbox = project.hub().join(subject);
        (project, mailbox)
    }

    fn leave(&self, subject: &WatchSubject, project: &WatchedProject, mailbox: &Arc<Mailbox>) {
        project.hub().leave(subject, mailbox);
        let mut all = self.lock();
        match subject.task {
            Some(id) => {
                if let Some(waits) = all.tasks.get_mut(&id) {
                    *waits -= 1;
                    if *waits == 0 {
                        all.tasks.remove(&id);
                    }
                }
            }
            None => all.followers -= 1,
        }
        if let Some(entry) = all.named.get_mut(&subject.project) {
            entry.waits -= 1;
            if entry.waits == 0 {
                all.named.remove(&subject.project);
            }
        }
    }

    /// Whether no client waits, so that changes need not be followed until one joins.
    fn is_abandoned(&self) -> bool {
        let mut all = self.lock();
        all.is_followed = !all.named.is_empty();
        !all.is_followed
    }

    #[cfg(test)]
    fn is_followed(&self) -> bool {
        self.lock().is_followed
    }

    /// Closes all mailboxes.
    fn close(&self) {
        for (_, project) in self.all() {
            project.hub().close();
        }
    }

    /// Keeps the tasks whose changes may concern a waiting client.
    fn concerning(&self, ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
        let all = self.lock();
        let ids = ids.into_iter();
        ids.filter(|id| all.followers > 0 || all.tasks.contains_key(id))
            .collect()
    }

    /// Delivers a task that was read; `None` if it no longer exists.
    fn deliver(&self, id: TaskId, task: Option<&Arc<Task>>) {
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
    fn begin_check(&self) -> Vec<(TaskId, Arc<WatchedProject>)> {
        let mut awaited = Vec::new();
        for (_, project) in self.all() {
            let mut hub = project.hub();
            hub.checks += 1;
            awaited.extend(hub.tasks.keys().map(|id| (*id, project.clone())));
        }
        awaited
    }

    /// The followed projects, and the time from which their ends must be delivered.
    fn followed(&self) -> Vec<(Arc<str>, UnixMs, Arc<WatchedProject>)> {
        let followed = self.all().into_iter().filter_map(|(name, project)| {
            let since_ms = project.hub().next_ms()?;
            Some((name, since_ms, project))
        });
        followed.collect()
    }

    /// Number of awaited tasks and of waits for whole projects.
    fn counts(&self) -> (usize, usize) {
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
mod hub_tests;
#[cfg(test)]
mod tests;
