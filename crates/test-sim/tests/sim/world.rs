//! What a simulated life is made of: the clock, the service over its files, the processes with the workers, and the
//! witness with the book. Opening, closing and killing the service happen here.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use kinora_api::{Api, ApiSettings};
use kinora_blobs::faulty::FaultyBlobs;
use kinora_blobs::sign::{SigningSecret, UrlSigner};
use kinora_blobs::{BlobStore, DiskReserve, LocalBlobs};
use kinora_contract::{Clock, KeyText, ModelCatalog, built_in_cards};
use kinora_store::faulty::FaultyStore;
use kinora_store::{KeyActor, KeyScope, NewKey, StoreHandles};
use kinora_system::scratch::ScratchFolder;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::base::Base;
use crate::book::{Book, Cause};
use crate::clocks::{SimClock, WrongClock};
use crate::ledger::{HeldFiles, Ledger};
use crate::moment::at_one_moment;
use crate::process::Process;
use crate::rng::{Rng, SeededEntropy};
use crate::submit::Submit;
use crate::witness::{Open, Witness};

/// Processes with a worker each.
pub(crate) const WORKERS: usize = 2;

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
pub(crate) const NOW_MS: u64 = kinora_contract::RELEASED_MS + YEAR_MS;

pub(crate) type StorePlan = kinora_store::faulty::Plan<kinora_store::faulty::StoreMethod>;
pub(crate) type BlobPlan = kinora_blobs::faulty::Plan<kinora_blobs::faulty::BlobMethod>;

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
    /// As workers and API see it.
    pub(crate) seen: StoreHandles,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) router: Router,
}

/// One life.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) store_plan: Arc<StorePlan>,
    pub(crate) blob_plan: Arc<BlobPlan>,
    /// Whether calls are made to fail.
    pub(crate) injecting: bool,
    /// Whether the database may not grow: then its own calls fail, as on a full disk.
    pub(crate) full: bool,
    pub(crate) keys: [KeyText; 2],
    pub(crate) witness: Arc<Witness>,
    pub(crate) processes: [Process; WORKERS],
    /// Requests made so far.
    pub(crate) requests: u64,
    /// Those with an idempotency key, to be sent again.
    pub(crate) sent: Vec<Submit>,
    /// Files that the looks for orphans have removed.
    pub(crate) orphans: u64,
    service: Option<Service>,
    base: Base,
    entropy: Arc<SeededEntropy>,
    folder: tempfile::TempDir,
    /// Which copy of the database is served: each kill leaves its own.
    copy: u32,
}

impl World {
    /// `wrong_ms_max` is how far the workers' own clocks may be from the store's.
    pub(crate) async fn new(
        seed: u64,
        clock: Arc<SimClock>,
        wrong_ms_max: u64,
        base: Base,
        trace: Trace,
    ) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut key = || {
            let random = [(); 64].map(|()| rng.next() as u8);
            KeyText::from_random(&random).expect("enough usable bytes")
        };
        let keys = [key(), key()];
        let witness = Witness::new(clock.clone(), trace, rng.next());
        let mut clocks = WrongClock::of_each::<WORKERS>(&clock, seed, wrong_ms_max).into_iter();
        let processes = std::array::from_fn(|k| {
            let own = clocks.next().expect("one for each");
            Process::new(k, own, witness.clone())
        });
        let mut world = Self {
            clock: clock.clone(),
            store_plan: Arc::new(StorePlan::seeded(rng.next())),
            blob_plan: Arc::new(BlobPlan::seeded(rng.next())),
            injecting: false,
            full: false,
            keys,
            witness,
            processes,
            requests: 0,
            sent: Vec::new(),
            orphans: 0,
            service: None,
            base,
            entropy: Arc::new(SeededEntropy::seeded(rng.next())),
            folder: folder(),
            copy: 0,
            rng,
        };
        world.open(HeldFiles::new()).await;
        let keys = world.witness.open().real.keys;
        for (project, key) in PROJECTS.iter().zip(&world.keys) {
            let by = KeyActor {
                user: "sim".to_owned(),
                host: "sim".to_owned(),
            };
            keys.add_key(api_key(project, key), &by).await.unwrap();
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

    /// The book, for a moment.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.witness.book()
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.witness.trace
    }

    /// Compares the stores with the book.
    pub(crate) async fn observe(&self) {
        self.witness.observe().await;
    }

    /// A panic of a worker's task would end that task alone.
    pub(crate) fn nothing_has_panicked(&self) {
        if let Some(text) = crate::lives::panicked() {
            panic!("{text}");
        }
    }

    /// Begins the process with worker `k`.
    pub(crate) fn begin(&mut self, k: usize) {
        let service = self.service.as_ref().expect("the service is open");
        let folder = self.folder.path();
        self.processes[k].begin(&service.seen, &service.blobs, folder);
    }

    pub(crate) fn begin_all(&mut self) {
        self.witness.all_shaken(self.may_fail());
        for k in 0..WORKERS {
            self.begin(k);
        }
    }

    /// Whether the database is gone with the process that serves it.
    pub(crate) const fn is_embedded(&self) -> bool {
        matches!(self.base, Base::Sqlite)
    }

    async fn open(&mut self, held: HeldFiles) {
        let stride = self.rng.below(1 << 40) + 1;
        let clock = self.clock.clone();
        let real = self
            .base
            .open(&self.database(), clock, stride, self.full)
            .await;
        let blobs = LocalBlobs::open(self.folder.path().join("results")).unwrap();
        let ledger = Ledger::new(Arc::new(blobs), self.clock.clone(), held);
        let ledger = Arc::new(ledger);
        let seen = FaultyStore::wrap(real.clone(), self.store_plan.clone());
        let blobs: Arc<dyn BlobStore> =
            Arc::new(FaultyBlobs::new(ledger.clone(), self.blob_plan.clone()));
        let router = kinora_api::router(Api {
            tasks: seen.tasks.clone(),
            files: real.files.clone(),
            keys: real.keys.clone(),
            webhooks: real.webhooks.clone(),
            operations: real.operations.clone(),
            pauses: real.pauses.clone(),
            blobs: blobs.clone(),
            availability: kinora_api::ModelAvailability::new(
                seen.workers.clone(),
                seen.pauses.clone(),
                self.clock.clone(),
            ),
            catalog: Arc::new(ModelCatalog::new(built_in_cards()).unwrap()),
            signer: Arc::new(UrlSigner::new(SigningSecret::new([7; 32]), None)),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            settings: Arc::new(ApiSettings {
                project_tasks_max: u64::MAX,
                project_bytes_max: u64::MAX,
                bytes_max: u64::MAX,
                reserve: DiskReserve::default(),
                budgets: kinora_api::ProjectBudgets::default(),
                base_url: "http://sim".to_owned(),
                waiting_max: WAITING_MAX,
                project_unfinished_max: PROJECT_UNFINISHED_MAX,
                failed_retention_ms: RETENTION_MS,
                redirects: false,
                form_uploads: false,
                studio: false,
                reference_ports: kinora_contract::reference_url::AllowedPorts::default(),
            }),
            gate: None,
            uploads: kinora_api::Uploads::new(
                Arc::new(ScratchFolder::create(&self.folder.path().join("uploads")).unwrap()),
                Arc::new(Semaphore::new(1)),
            ),
            turns: kinora_api::RequestTurns::default(),
            rendered: kinora_api::ObjectCache::default(),
            watch: kinora_api::TaskWatch::default(),
            readiness: kinora_contract::WorkerReadiness::default(),
            tracer: kinora_traces::TaskTracer::default(),
            sign_in: None,
            lost: kinora_api::LostFiles::default(),
            stopping: CancellationToken::new(),
        });
        self.witness.set_open(Some(Open {
            real,
            ledger: ledger.clone(),
        }));
        self.service = Some(Service {
            seen,
            blobs,
            ledger,
            router,
        });
    }

    /// Closes the store in order and opens it again. Everything that ran has been stopped before.
    pub(crate) async fn reopen(&mut self) {
        let service = self.service.take().expect("the service is open");
        let held = service.ledger.held().clone();
        drop(service);
        self.witness.set_open(None);
        if self.is_embedded() {
            // Fetches and chores go with their process, and so do their tokens.
            let mut book = self.book();
            book.taken.end_all();
            book.fetch_tokens.clear();
        }
        self.open(held).await;
        self.after_reopening().await;
    }

    /// Ends the service without a word, and opens what lies on the disk at that moment, torn as
    /// the last, unacknowledged write to the log may be.
    pub(crate) async fn kill(&mut self) {
        for process in &mut self.processes {
            process.die().await;
        }
        match self.is_embedded() {
            true => at_one_moment(self.lose_power()),
            false => at_one_moment(self.reopen()),
        }
        self.begin_all();
    }

    async fn lose_power(&mut self) {
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
        if self.is_embedded() {
            self.book().note(Cause::Reopened { full: self.full });
        }
        self.observe().await;
        self.look_for_orphans().await;
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
        scopes: KeyScope::VIDEOS.to_vec(),
        models: None,
        requests_per_minute: None,
        unfinished_max: None,
        budget: kinora_store::Budget::default(),
        created_at_ms: 0,
        expires_at_ms: None,
    }
}
