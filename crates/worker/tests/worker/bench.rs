//! What a test stands on: a store, a folder of blobs, a clock, workers, and conditions to wait
//! for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinora_blobs::faulty::{self as blobs, FaultyBlobs};
use kinora_blobs::{BlobStore, LocalBlobs};
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, Clock, FailureCode, FrameSize, ManualClock, Priority, RunningClock, Size, Task,
    TaskId, TaskPhase, TaskState, VideoInputs, VideoLength, VideoSpec, WorkerReadiness,
};
use kinora_media::{InProcessFilms, RecorderOptions};
use kinora_store::faulty::{self as store, FaultyStore};
use kinora_store::sqlite::SqliteStore;
use kinora_store::{
    CancelOutcome, ChoreWork, DeleteOutcome, InsertOutcome, NewTask, OpenOptions, QueueBounds,
    StoreHandles, SubmitBudgets,
};
use kinora_system::scratch::ScratchFolder;
use kinora_traces::TaskTracer;
use kinora_worker::{
    AnyEngine, EngineLineup, FaultBackoff, ReferenceGatherer, ServedEngine, Shutdown, Worker,
    WorkerOptions, WorkerOrigin, WorkerPools,
};
use tokio::task::JoinHandle;

use crate::engines::Puppet;
use crate::held::HeldBlobs;

/// Only a failing test waits so long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// The hour at which tests begin.
pub(crate) const NOW: u64 = kinora_contract::RELEASED_MS + 24 * 60 * 60 * 1000;
/// For pauses that are waited for in real time.
pub(crate) fn real_clock() -> Arc<dyn Clock> {
    let begun = Instant::now();
    Arc::new(RunningClock::at(NOW, move || begun.elapsed()))
}

/// One that reaches this machine, as the callers' host.
pub(crate) fn fetcher() -> kinora_http_fetch::ReferenceFetcher {
    let options = kinora_http_fetch::FetchOptions {
        allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
        host_connections_max: 64,
        ..kinora_http_fetch::FetchOptions::default()
    };
    kinora_http_fetch::ReferenceFetcher::new(options, real_clock()).unwrap()
}

/// So long that a heartbeat renews for progress alone while a test runs.
pub(crate) const LEASE_MS: u64 = 600_000;
pub(crate) const RETENTION_MS: u64 = 10 * LEASE_MS;

pub(crate) const PROJECT: &str = "project";
/// The model of tests that need only one.
pub(crate) const MODEL: &str = "model";

pub(crate) struct Bench {
    pub(crate) store: StoreHandles,
    /// The store as workers see it, and how it fails them.
    faulty: StoreHandles,
    pub(crate) store_plan: Arc<store::Plan<store::StoreMethod>>,
    pub(crate) blobs: Arc<FaultyBlobs>,
    pub(crate) blob_plan: Arc<blobs::Plan<blobs::BlobMethod>>,
    pub(crate) held: Arc<HeldBlobs>,
    pub(crate) clock: Arc<ManualClock>,
    submitted: AtomicU64,
    pub(crate) scratch: Arc<ScratchFolder>,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::of_two_processes(false)
    }

    /// The test sees the store as an API process does, and workers have another view of it, which hears no hints where it
    /// is deaf.
    pub(crate) fn of_two_processes(deaf: bool) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOW));
        let clock = Arc::new(clock);
        let options = OpenOptions::new(clock.clone());
        let store = SqliteStore::open(&folder.path().join("kinora.db"), &options).unwrap();
        let store = StoreHandles::from_store(Arc::new(store));
        let plan = Arc::new(store::Plan::seeded(1));
        let seen = if deaf {
            FaultyStore::wrap_deaf(store.clone(), plan.clone())
        } else {
            FaultyStore::wrap(store.clone(), plan.clone())
        };
        Self::on(folder, clock, store, (seen, plan))
    }

    /// On a store whose steady clock is `clock`.
    pub(crate) fn over(store: StoreHandles, clock: Arc<ManualClock>) -> Self {
        let plan = Arc::new(store::Plan::seeded(1));
        let seen = FaultyStore::wrap(store.clone(), plan.clone());
        Self::on(tempfile::tempdir().unwrap(), clock, store, (seen, plan))
    }

    fn on(
        folder: tempfile::TempDir,
        clock: Arc<ManualClock>,
        store: StoreHandles,
        (faulty, store_plan): (StoreHandles, Arc<store::Plan<store::StoreMethod>>),
    ) -> Self {
        let blobs = LocalBlobs::open(folder.path().join("results")).unwrap();
        let held = Arc::new(HeldBlobs::new(Arc::new(blobs)));
        let scratch = ScratchFolder::create(&folder.path().join("work")).unwrap();
        let blob_plan = Arc::new(blobs::Plan::seeded(1));
        Self {
            faulty,
            store_plan,
            store,
            blobs: Arc::new(FaultyBlobs::new(held.clone(), blob_plan.clone())),
            blob_plan,
            held,
            clock,
            submitted: AtomicU64::new(0),
            scratch: Arc::new(scratch),
            _folder: folder,
        }
    }

    /// A worker with one slot for [`MODEL`], which sees the store through its faults.
    pub(crate) fn worker(&self, engine: &Arc<Puppet>) -> Worker {
        self.worker_of([(MODEL, engine)])
    }

    /// The same, by a clock that stands still: it sees no time pass, so that it renews nothing when the store's clock
    /// moves on, and no lease of its own runs out.
    pub(crate) fn worker_without_time(&self, engine: &Arc<Puppet>) -> Worker {
        Worker {
            clock: Arc::new(ManualClock::at(NOW)),
            ..self.worker(engine)
        }
    }

    pub(crate) fn worker_of<'a>(
        &self,
        engines: impl IntoIterator<Item = (&'a str, &'a Arc<Puppet>)>,
    ) -> Worker {
        let served = engines.into_iter().map(|(model, engine)| {
            let served = ServedEngine {
                seats: None,
                device: None,
                engine: AnyEngine::Frames(engine.clone()),
                progress_timeout: DEADLINE,
                preset: None,
            };
            (model.to_owned(), served)
        });
        Worker {
            work: self.faulty.work.clone(),
            chores: self.faulty.chores.clone(),
            workers: self.faulty.workers.clone(),
            pauses: self.faulty.pauses.clone(),
            blobs: self.blobs.clone(),
            lineup: EngineLineup::new(served),
            references: Arc::new(ReferenceGatherer::new(fetcher(), self.scratch.clone())),
            backoff: FaultBackoff::new(WorkerReadiness::default(), real_clock()),
            scratch: self.scratch.clone(),
            pools: WorkerPools::new(1),
            films: Arc::new(InProcessFilms),
            policy: None,
            tracer: TaskTracer::default(),
            clock: self.clock.clone(),
            patience: real_clock(),
            settings: WorkerOptions {
                name: "worker".to_owned(),
                origin: WorkerOrigin::default(),
                slots: 1,
                project_slots_max: 0,
                short_slot_memory: Duration::ZERO,
                lease_ms: LEASE_MS,
                sweep_every: Duration::from_millis(10),
                heartbeat_every: Duration::from_millis(10),
                drain_limit: DEADLINE,
                retention_ms: RETENTION_MS,
                failed_retention_ms: RETENTION_MS,
                waiting_ms_max: None,
                tombstone_ms: RETENTION_MS,
                clock_settle_ms: 0,
                attempts_max: 3,
                start_pause_max: Duration::from_secs(10),
                settled_after: Duration::ZERO,
                recorder: RecorderOptions {
                    encoder_threads: 1,
                    ..RecorderOptions::default()
                },
                marker: None,
                film_signer: None,
            },
        }
    }

    /// Submits a task for [`MODEL`].
    pub(crate) async fn submit(&self) -> TaskId {
        self.submit_to(MODEL).await
    }

    pub(crate) async fn submit_to(&self, model: &str) -> TaskId {
        self.submit_spec(spec(model)).await
    }

    pub(crate) async fn submit_high(&self, model: &str) -> TaskId {
        self.insert(PROJECT, spec(model), Priority::High).await
    }

    pub(crate) async fn submit_spec(&self, spec: VideoSpec) -> TaskId {
        self.insert(PROJECT, spec, Priority::Normal).await
    }

    /// Submits a task of another project.
    pub(crate) async fn submit_as(&self, project: &str, model: &str) -> TaskId {
        self.insert(project, spec(model), Priority::Normal).await
    }

    pub(crate) async fn submit_spec_as(&self, project: &str, spec: VideoSpec) -> TaskId {
        self.insert(project, spec, Priority::Normal).await
    }

    async fn insert(&self, project: &str, spec: VideoSpec, priority: Priority) -> TaskId {
        let number = self.submitted.fetch_add(1, Ordering::SeqCst);
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        let id = TaskId::from_parts(NOW + number, random);
        let new = NewTask {
            id,
            project: project.to_owned(),
            spec,
            metadata: BTreeMap::new(),
            priority,
            idempotency: None,
            callback: None,
            files: Vec::new(),
            trace: None,
            bounds: QueueBounds::NONE,
            cost: None,
            budgets: SubmitBudgets::default(),
        };
        let inserted = self.store.tasks.insert(new).await.unwrap();
        assert!(
            matches!(inserted, InsertOutcome::Inserted(_)),
            "{inserted:?}"
        );
        id
    }

    /// What the project of all tasks has stored.
    pub(crate) async fn usage(&self) -> kinora_store::QuotaUsage {
        self.store.tasks.usage(PROJECT).await.unwrap()
    }

    /// The task as it stands, `None` once it is deleted.
    pub(crate) async fn find(&self, id: TaskId) -> Option<Arc<Task>> {
        self.store.tasks.get(PROJECT, id).await.unwrap()
    }

    /// What its run shows of it.
    pub(crate) async fn preview(&self, id: TaskId) -> Option<Arc<[u8]>> {
        self.store.tasks.preview(id).await.unwrap()
    }

    pub(crate) async fn task(&self, id: TaskId) -> Arc<Task> {
        self.find(id).await.expect("the task is there")
    }

    pub(crate) async fn phase(&self, id: TaskId) -> TaskPhase {
        self.task(id).await.state.phase()
    }

    /// Waits until the task is in this phase.
    pub(crate) async fn reaches(&self, id: TaskId, phase: TaskPhase) -> Arc<Task> {
        let what = format!("{id} becomes {phase:?}");
        until(&what, async || self.phase(id).await == phase).await;
        self.task(id).await
    }

    /// Waits until the task is completed.
    pub(crate) async fn completes(&self, id: TaskId) -> Artifact {
        self.ends(id).await.expect("a completed task")
    }

    /// Waits until the task is failed, and returns code and message.
    pub(crate) async fn fails(&self, id: TaskId) -> (String, String) {
        self.ends(id).await.expect_err("a failed task")
    }

    /// Waits until the task is finished.
    pub(crate) async fn ends(&self, id: TaskId) -> Result<Artifact, (String, String)> {
        self.ends_in(PROJECT, id).await
    }

    /// Waits until the task is finished, and lets the store's time pass while it waits for a worker or a pause.
    pub(crate) async fn ends_after_pauses(&self, id: TaskId) -> Result<Artifact, (String, String)> {
        let ended = async || {
            let phase = self.phase(id).await;
            if phase == TaskPhase::Waiting {
                self.clock.advance(1_000);
                // Slowly, so that no lease ends of a fetch that has begun meanwhile.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            phase.is_terminal()
        };
        until(&format!("{id} ends"), ended).await;
        self.ends(id).await
    }

    /// The phase of a task of another project.
    pub(crate) async fn phase_in(&self, project: &str, id: TaskId) -> TaskPhase {
        self.find_in(project, id).await.state.phase()
    }

    async fn find_in(&self, project: &str, id: TaskId) -> Arc<Task> {
        let found = self.store.tasks.get(project, id).await.unwrap();
        found.expect("the task is there")
    }

    /// Waits until the task of another project is finished.
    pub(crate) async fn ends_in(
        &self,
        project: &str,
        id: TaskId,
    ) -> Result<Artifact, (String, String)> {
        let ended = async || self.phase_in(project, id).await.is_terminal();
        until(&format!("{id} ends"), ended).await;
        match &self.find_in(project, id).await.state {
            TaskState::Completed(artifact) => Ok((**artifact).clone()),
            TaskState::Failed(failure) => Err((failure.code.clone(), failure.message.clone())),
            other => panic!("{other:?}"),
        }
    }

    /// Puts of files that workers have begun.
    pub(crate) fn files_begun(&self) -> u64 {
        self.blob_plan.calls(blobs::BlobMethod::PutFile)
    }

    /// Outcomes that workers have tried to write.
    pub(crate) fn finishes(&self) -> u64 {
        self.store_plan.calls(store::StoreMethod::Finish)
    }

    /// Tasks that workers have tried to give back.
    pub(crate) fn releases(&self) -> u64 {
        self.store_plan.calls(store::StoreMethod::Release)
    }

    /// Waits until every heartbeat has looked after its lease again: a renewal that was due
    /// before is done.
    pub(crate) async fn heartbeats_go_round(&self) {
        let looks = || self.store_plan.calls(store::StoreMethod::FindLost);
        // The first one may have been under way, and one may be the last of a run that has ended.
        let enough = looks() + 3;
        until("the heartbeats go round", async || looks() >= enough).await;
    }

    /// Cancels as the API does.
    pub(crate) async fn cancel(&self, id: TaskId) -> CancelOutcome {
        let failure = FailureCode::Cancelled.into();
        let tasks = &self.store.tasks;
        let cancelled = tasks.cancel(PROJECT, id, failure, RETENTION_MS);
        cancelled.await.unwrap()
    }

    /// Deletes as the API does.
    pub(crate) async fn delete(&self, id: TaskId) {
        let deleted = self.store.tasks.delete(PROJECT, id).await.unwrap();
        let DeleteOutcome::Deleted { files } = deleted else {
            panic!("{deleted:?}")
        };
        let mut done = Vec::new();
        for chore in files {
            let ChoreWork::RemoveFile(key) = &chore.work else {
                panic!("{chore:?}")
            };
            self.blobs.delete(key).await.unwrap();
            done.push(chore.done());
        }
        self.store.tasks.complete_deletion(done).await.unwrap();
    }
}

/// A worker at work.
pub(crate) struct Running {
    pub(crate) shutdown: Shutdown,
    working: JoinHandle<usize>,
}

impl Running {
    pub(crate) fn start(worker: Worker) -> Self {
        let shutdown = Shutdown::default();
        let working = tokio::spawn(worker.work(shutdown.clone()));
        Self { shutdown, working }
    }

    pub(crate) fn is_working(&self) -> bool {
        !self.working.is_finished()
    }

    /// Waits for the end of `work`, which must have been asked for.
    pub(crate) async fn returns(self) {
        let returned = tokio::time::timeout(DEADLINE, self.working).await;
        returned.expect("work() returns").unwrap();
    }

    /// Asks for an orderly stop and waits for it: nothing is under way any more.
    pub(crate) async fn drained(self) {
        self.shutdown.drain();
        self.returns().await;
    }
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < DEADLINE, "not reached: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn spec(model: &str) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: model.to_owned(),
        prompt: "a lighthouse".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(1280, 720)),
        seed: 1,
        generate_audio: true,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}
