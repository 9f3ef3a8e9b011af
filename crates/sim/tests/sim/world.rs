//! What a simulated life is made of: the clock, the service over its files, three workers, and
//! the book. Opening, closing and killing the service happen here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use kinora_api::{Api, Settings};
use kinora_blobs::faulty::FaultyBlobs;
use kinora_blobs::sign::{Secret, Signer};
use kinora_blobs::{BlobStore, LocalBlobs, Reserve};
use kinora_contract::{Catalog, Clock, KeyText, ManualClock, Task, TaskId, built_in_cards};
use kinora_store::faulty::FaultyStore;
use kinora_store::{Fetch, NewKey, OpenOptions, Order, PageRequest, Scope, SqliteOptions, Stores};
use kinora_worker::Trust;
use tokio_util::sync::CancellationToken;

use crate::book::{Book, Cause, Known};
use crate::chores::Runner;
use crate::clocks::WrongClock;
use crate::gate::GatedClock;
use crate::ledger::{HeldFiles, Ledger};
use crate::rng::{Rng, SeededEntropy};
use crate::submit::Submit;
use crate::worker::Worker;

pub(crate) const LEASE_MS: u64 = 30_000;
pub(crate) const SWEEP_MS: u64 = 5_000;
pub(crate) const HOUR_MS: u64 = 3_600_000;
pub(crate) const YEAR_MS: u64 = 365 * 24 * HOUR_MS;
pub(crate) const RETENTION_MS: u64 = 2 * HOUR_MS;
pub(crate) const TOMBSTONE_MS: u64 = 2 * HOUR_MS;
/// How long both clocks must have agreed.
pub(crate) const SETTLE_MS: u64 = 600_000;
pub(crate) const ATTEMPTS_MAX: u32 = 3;
pub(crate) const WAITING_MAX: u64 = 8;
pub(crate) const PROJECT_UNFINISHED_MAX: u64 = 6;
/// The longest Retry-After, and the grace after it.
pub(crate) const PROMISE_MS: u64 = 126_000;
pub(crate) const PROJECTS: [&str; 2] = ["one", "two"];
const NOW_MS: u64 = kinora_contract::RELEASED_MS + YEAR_MS;

pub(crate) type StorePlan = kinora_store::faulty::Plan<kinora_store::faulty::Method>;
pub(crate) type BlobPlan = kinora_blobs::faulty::Plan<kinora_blobs::faulty::Method>;

/// What has happened, for people.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn push(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    /// Adds what came of the last line.
    pub(crate) fn result(&self, text: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = lines.last_mut() {
            last.push_str(&format!(" -> {text}"));
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The service, open.
#[derive(Debug)]
pub(crate) struct Service {
    /// Without faults: for the book alone.
    pub(crate) real: Stores,
    /// As workers and API see it.
    pub(crate) seen: Stores,
    /// The store's clock.
    pub(crate) gate: Arc<GatedClock>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) router: Router,
}

/// One life.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store_plan: Arc<StorePlan>,
    pub(crate) blob_plan: Arc<BlobPlan>,
    /// Whether calls are made to fail.
    pub(crate) injecting: bool,
    /// Whether the database may not grow: then its own calls fail, as on a full disk.
    pub(crate) full: bool,
    pub(crate) keys: [KeyText; 2],
    pub(crate) book: Book,
    pub(crate) workers: [Worker; 3],
    /// The chores that each of two processes has in hand.
    pub(crate) runners: [Runner; 2],
    /// Tasks whose references the process is fetching, and the token of each task's last fetch.
    pub(crate) fetches: Vec<Fetch>,
    pub(crate) fetch_tokens: BTreeMap<TaskId, u64>,
    pub(crate) trace: Trace,
    /// Requests made so far.
    pub(crate) requests: u64,
    /// Those with an idempotency key, to be sent again.
    pub(crate) sent: Vec<Submit>,
    /// Files that the looks for orphans have removed.
    pub(crate) orphans: u64,
    /// Whether the sweeps of this process believe the wall clock.
    pub(crate) trust: Trust,
    service: Option<Service>,
    entropy: Arc<SeededEntropy>,
    folder: tempfile::TempDir,
    /// Which copy of the database is served: each kill leaves its own.
    copy: u32,
}

impl World {
    /// `wrong_ms_max` is how far the workers' own clocks may be from the store's.
    pub(crate) async fn new(seed: u64, wrong_ms_max: u64, trace: Trace) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut key = || {
            let random = [(); 64].map(|()| rng.next() as u8);
            KeyText::from_random(&random).expect("enough usable bytes")
        };
        let keys = [key(), key()];
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let mut world = Self {
            clock: clock.clone(),
            store_plan: Arc::new(StorePlan::seeded(rng.next())),
            blob_plan: Arc::new(BlobPlan::seeded(rng.next())),
            injecting: false,
            full: false,
            keys,
            book: Book::default(),
            workers: WrongClock::of_each(&clock, seed, wrong_ms_max).map(Worker::at),
            runners: Default::default(),
            fetches: Vec::new(),
            fetch_tokens: BTreeMap::new(),
            trace,
            requests: 0,
            sent: Vec::new(),
            orphans: 0,
            trust: Trust::new(SETTLE_MS),
            service: None,
            entropy: Arc::new(SeededEntropy::seeded(rng.next())),
            folder: folder(),
            copy: 0,
            rng,
        };
        world.open(HeldFiles::new()).await;
        for (project, key) in PROJECTS.iter().zip(&world.keys) {
            let added = world.service().real.keys.add_key(api_key(project, key));
            added.await.unwrap();
        }
        world
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().expect("the service is open")
    }

    /// Whether a call may fail at all.
    pub(crate) const fn may_fail(&self) -> bool {
        self.injecting || self.full
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join(format!("{}/kinora.db", self.copy))
    }

    /// The folder of files in the making.
    pub(crate) fn scratch(&self) -> PathBuf {
        let folder = self.folder.path().join("work");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    async fn open(&mut self, held: HeldFiles) {
        self.trust = Trust::new(SETTLE_MS);
        let url = format!("sqlite:{}", self.database().display());
        let sqlite = SqliteOptions {
            // Small, so that much is read from disk.
            finished_cached_bytes_max: 64 << 10,
            attempts_max: ATTEMPTS_MAX,
            // As large as it is: SQLite takes no less.
            pages_max: self.full.then_some(1),
            token_stride: self.rng.below(1 << 40) + 1,
            reads_on_the_spot: true,
            ..SqliteOptions::default()
        };
        let gate = Arc::new(GatedClock::of(self.clock.clone()));
        let clock = gate.clone();
        let options = OpenOptions { clock, sqlite };
        let real = kinora_store::open(&url, &options)
            .await
            .expect("P11: the store opens");
        let blobs = LocalBlobs::open(self.folder.path().join("results")).unwrap();
        let ledger = Ledger::new(Arc::new(blobs), self.clock.clone(), held);
        let ledger = Arc::new(ledger);
        let seen = FaultyStore::wrap(real.clone(), self.store_plan.clone());
        let blobs: Arc<dyn BlobStore> =
            Arc::new(FaultyBlobs::new(ledger.clone(), self.blob_plan.clone()));
        let router = kinora_api::router(Api {
            tasks: seen.tasks.clone(),
            keys: real.keys.clone(),
            blobs: blobs.clone(),
            catalog: Arc::new(Catalog::new(built_in_cards()).unwrap()),
            signer: Arc::new(Signer::new(Secret::new([7; 32]), None)),
            clock: self.clock.clone(),
            ids: Arc::default(),
            entropy: self.entropy.clone(),
            settings: Arc::new(Settings {
                project_tasks_max: u64::MAX,
                project_bytes_max: u64::MAX,
                bytes_max: u64::MAX,
                reserve: Reserve::default(),
                base_url: "http://sim".to_owned(),
                waiting_max: WAITING_MAX,
                project_unfinished_max: PROJECT_UNFINISHED_MAX,
                retention_ms: RETENTION_MS,
                reference_ports: kinora_contract::reference_url::Ports::default(),
            }),
            turns: kinora_api::Turns::default(),
            rendered: kinora_api::Rendered::default(),
            readiness: kinora_contract::Readiness::default(),
            lost: kinora_api::LostFiles::default(),
            stopping: CancellationToken::new(),
        });
        self.service = Some(Service {
            real,
            seen,
            gate,
            blobs,
            ledger,
            router,
        });
    }

    /// Closes the store in order and opens it again. Whoever ran something was told before.
    pub(crate) async fn reopen(&mut self) {
        let service = self.service.take().expect("the service is open");
        let held = service.ledger.held().clone();
        drop(service);
        // Fetches and chores go with their process, and so do their tokens.
        self.runners = Default::default();
        self.book.taken.end_all();
        self.fetches.clear();
        self.fetch_tokens.clear();
        self.open(held).await;
        self.after_reopening().await;
    }

    /// Ends the service without a word, and opens what lies on the disk at that moment, torn as
    /// the last, unacknowledged write to the log may be.
    pub(crate) async fn kill(&mut self) {
        for worker in &mut self.workers {
            worker.forget();
        }
        let from = self.database();
        self.copy += 1;
        let to = self.database();
        std::fs::create_dir(to.parent().unwrap()).unwrap();
        let log = |path: &Path| path.with_extension("db-wal");
        let read_log = || std::fs::read(log(&from)).unwrap_or_default();
        // Both of one moment: the log may be carried over and truncated between two looks.
        let mut bytes = read_log();
        loop {
            std::fs::copy(&from, &to).unwrap();
            let before = std::mem::replace(&mut bytes, read_log());
            if before == bytes {
                break;
            }
        }
        if self.rng.percent(50) {
            let torn = self.rng.below(5_000);
            bytes.extend((0..torn).map(|_| self.rng.next() as u8));
        }
        std::fs::write(log(&to), bytes).unwrap();
        // Never ahead of the log, so that no kill is taken for a loss.
        let mark = |path: &Path| path.with_extension("mark");
        std::fs::copy(mark(&from), mark(&to)).unwrap();
        self.reopen().await;
    }

    async fn after_reopening(&mut self) {
        self.book.note(Cause::Reopened { full: self.full });
        self.observe().await;
        self.look_for_orphans().await;
    }

    /// Compares the store with the book, and the blobs with the store.
    pub(crate) async fn observe(&mut self) {
        self.book.look_at_company();
        let tasks = self.service().real.tasks.clone();
        let ids: Vec<(TaskId, String)> = self
            .book
            .tasks
            .iter()
            .map(|(id, known)| (*id, known.task.project.clone()))
            .collect();
        for (id, project) in ids {
            let found = tasks.get(&project, id).await.unwrap();
            self.book.observe(id, found.as_deref());
        }
        if self
            .book
            .causes
            .iter()
            .any(|cause| matches!(cause, Cause::Submitted { .. }))
        {
            self.discover().await;
        }
        self.book.settle();
        self.contents_are_there();
    }

    /// Enters the tasks that the book does not know yet.
    pub(crate) async fn discover(&mut self) {
        for project in PROJECTS {
            for task in self.listed(project).await {
                if !self.book.tasks.contains_key(&task.id) {
                    self.book.enter(&task);
                }
            }
        }
    }

    /// All tasks of a project that are not expired, newest first.
    pub(crate) async fn listed(&self, project: &str) -> Vec<Task> {
        let request = PageRequest {
            project: project.to_owned(),
            after: None,
            limit: 10_000,
            order: Order::Descending,
        };
        let page = self.service().real.tasks.list(request).await.unwrap();
        page.tasks.iter().map(|task| Task::clone(task)).collect()
    }

    fn contents_are_there(&self) {
        let held = self.service().ledger.held();
        for Known { task, .. } in self.book.tasks.values() {
            let kinora_contract::State::Completed(artifact) = &task.state else {
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

/// In memory where there is such a folder: what is simulated is the order of things, and the
/// kernel's page cache outlives a simulated kill anyway.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.expect("a temporary folder")
}

fn api_key(project: &str, key: &KeyText) -> NewKey {
    NewKey {
        id: format!("key_{project}"),
        sha256: key.sha256(),
        name: project.to_owned(),
        project: project.to_owned(),
        scopes: Scope::ALL.to_vec(),
        models: None,
        requests_per_minute: None,
        unfinished_max: None,
        created_at_ms: 0,
        expires_at_ms: None,
    }
}
