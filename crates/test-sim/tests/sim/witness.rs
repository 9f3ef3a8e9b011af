//! Who sees every effect on the two stores: after each of them the store is compared with the book, and the blobs
//! with the store. It also knows since when each worker has been well, and passes the store's hints on in an order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Clock, ClockReading, Task, TaskId, TaskState};
use kinora_store::{Lease, ListOrder, PageRequest, StoreHandles};
use tokio::sync::watch;

use crate::book::{Book, Cause, Known};
use crate::clocks::SimClock;
use crate::ledger::Ledger;
use crate::rng::Rng;
use crate::world::{PROJECTS, Trace, WORKERS};

/// Hints that get lost, in a hundred: polling is the truth.
const LOST_HINTS: u64 = 10;

/// What is open, below all faults.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) real: StoreHandles,
    pub(crate) ledger: Arc<Ledger>,
}

#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) clock: Arc<SimClock>,
    pub(crate) trace: Trace,
    book: Mutex<Book>,
    /// Of everything that workers do and meet.
    chance: Mutex<Rng>,
    open: Mutex<Option<Open>>,
    health: Mutex<Health>,
    hints: Mutex<Vec<Hint>>,
    /// Until when each worker believes that it has a task, at most.
    beliefs: Mutex<BTreeMap<(usize, String), u64>>,
    /// A cancel and a sweep are to come together with the next finish.
    races: Mutex<bool>,
}

/// By the steady time of the store's clock.
#[derive(Debug, Default)]
struct Health {
    well_since_ms: [u64; WORKERS],
    hangs: [bool; WORKERS],
    /// Calls may fail.
    troubled: bool,
}

/// Which counter moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    Work,
    Withdrawals,
}

#[derive(Debug)]
struct Hint {
    counter: Counter,
    real: watch::Receiver<u64>,
    seen: watch::Sender<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Witness {
    pub(crate) fn new(clock: Arc<SimClock>, trace: Trace, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            clock,
            trace,
            book: Mutex::default(),
            chance: Mutex::new(Rng::seeded(seed)),
            open: Mutex::default(),
            health: Mutex::default(),
            hints: Mutex::default(),
            beliefs: Mutex::default(),
            races: Mutex::default(),
        })
    }

    /// The book, for a moment: it is never asked for twice at a time.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        match self.book.try_lock() {
            Ok(book) => book,
            Err(std::sync::TryLockError::Poisoned(book)) => book.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => panic!("the book is open already"),
        }
    }

    /// A number below `end`, drawn for a worker.
    pub(crate) fn draw(&self, end: u64) -> u64 {
        lock(&self.chance).below(end)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.draw(100) < chance
    }

    /// Adds a line to the story.
    pub(crate) fn tell(&self, line: &str) {
        let now_ms = self.clock.steady_ms();
        self.trace.push(format!("  {now_ms} {line}"));
    }

    pub(crate) fn set_open(&self, open: Option<Open>) {
        *lock(&self.open) = open;
    }

    pub(crate) fn open(&self) -> Open {
        lock(&self.open).clone().expect("the service is open")
    }

    /// Both clocks of the store.
    pub(crate) fn reading(&self) -> ClockReading {
        let clock: &dyn Clock = &*self.clock;
        clock.read()
    }

    /// Worker `k` begins anew, hangs or comes back.
    pub(crate) fn shaken(&self, k: usize, hangs: bool) {
        let mut health = lock(&self.health);
        health.hangs[k] = hangs;
        health.well_since_ms[k] = self.clock.steady_ms();
    }

    /// Something befalls all workers: a sleep of the machine, or stores that fail from now on or do no longer.
    pub(crate) fn all_shaken(&self, troubled: bool) {
        let mut health = lock(&self.health);
        health.troubled = troubled;
        health.well_since_ms = [self.clock.steady_ms(); WORKERS];
    }

    /// When something befell worker `k` last.
    pub(crate) fn shaken_ms(&self, k: usize) -> u64 {
        lock(&self.health).well_since_ms[k]
    }

    /// Worker `k` was told that it has this lease, and may believe so until then.
    pub(crate) fn believes(&self, k: usize, lease: &Lease, until_ms: u64) {
        let mut beliefs = lock(&self.beliefs);
        let belief = beliefs.entry((k, lease.task.to_string())).or_default();
        // A renewal that was asked for before another may be answered after it.
        *belief = until_ms.max(*belief);
    }

    /// Until when worker `k` may believe that it has this task.
    pub(crate) fn believed_until_ms(&self, k: usize, task: &str) -> u64 {
        let beliefs = lock(&self.beliefs);
        beliefs.get(&(k, task.to_owned())).copied().unwrap_or(0)
    }

    /// Since when each worker has been well.
    pub(crate) fn well_since_ms(&self) -> [Option<u64>; WORKERS] {
        let health = lock(&self.health);
        std::array::from_fn(|k| {
            let well = !health.troubled && !health.hangs[k];
            well.then_some(health.well_since_ms[k])
        })
    }

    /// Asks for a race at the next finish.
    pub(crate) fn race_next(&self) {
        *lock(&self.races) = true;
    }

    /// Whether this finish is to race.
    pub(crate) fn takes_race(&self) -> bool {
        std::mem::take(&mut *lock(&self.races))
    }

    /// A counter for one waiting worker: many that wait for one would be woken in no fixed order.
    pub(crate) fn hint(
        &self,
        counter: Counter,
        real: watch::Receiver<u64>,
    ) -> watch::Receiver<u64> {
        let (seen, hints) = watch::channel(0);
        lock(&self.hints).push(Hint {
            counter,
            real,
            seen,
        });
        hints
    }

    /// Passes on what the store's counters hint at, as far as it is not lost.
    pub(crate) fn pass_hints_on(&self) {
        let mut hints = lock(&self.hints);
        hints.retain(|hint| !hint.seen.is_closed());
        for hint in &mut *hints {
            // A store that was closed has none.
            if !hint.real.has_changed().unwrap_or(false) {
                continue;
            }
            hint.real.mark_unchanged();
            let lost = hint.counter == Counter::Work && self.percent(LOST_HINTS);
            if !lost {
                hint.seen.send_modify(|count| *count += 1);
            }
        }
    }

    /// Notes what was done, and looks whether every promise still holds.
    pub(crate) async fn note(&self, cause: Cause) {
        self.book().note(cause);
        self.observe().await;
    }

    /// Compares the store with the book, and the blobs with the store.
    pub(crate) async fn observe(&self) {
        let ids: Vec<(TaskId, String)> = {
            let mut book = self.book();
            book.look_at_company();
            let tasks = book.tasks.iter();
            tasks
                .map(|(id, known)| (*id, known.task.project.clone()))
                .collect()
        };
        let tasks = self.open().real.tasks;
        for (id, project) in ids {
            let found = tasks.get(&project, id).await.unwrap();
            self.book().observe(id, found.as_deref());
        }
        let submitted = |cause: &Cause| matches!(cause, Cause::Submitted { .. });
        let discovers = self.book().causes.iter().any(submitted);
        if discovers {
            self.discover().await;
        }
        self.book().settle();
        self.contents_are_there();
        self.pass_hints_on();
    }

    /// Enters the tasks that the book does not know yet.
    async fn discover(&self) {
        for project in PROJECTS {
            for task in self.listed(project).await {
                let mut book = self.book();
                if !book.tasks.contains_key(&task.id) {
                    book.enter(&task);
                }
            }
        }
    }

    /// All tasks of a project that are not expired, newest first.
    async fn listed(&self, project: &str) -> Vec<Task> {
        let request = PageRequest {
            project: project.to_owned(),
            after: None,
            limit: 10_000,
            order: ListOrder::Descending,
        };
        let page = self.open().real.tasks.list(request).await.unwrap();
        page.tasks.iter().map(|task| Task::clone(task)).collect()
    }

    /// Compares the blobs with the book.
    pub(crate) fn contents_are_there(&self) {
        let (open, book) = (self.open(), self.book());
        let held = open.ledger.held();
        for Known { task, .. } in book.tasks.values() {
            let TaskState::Completed(artifact) = &task.state else {
                continue;
            };
            for file in artifact.files() {
                assert_eq!(
                    held.get(&file.key).map(|held| &held.file),
                    Some(file),
                    "P4: {} is completed and its content is not there as recorded",
                    task.id
                );
            }
        }
    }
}
