//! Random operations on a store, through two handles in turn, and on an embedded store without
//! threads: all answers and all readable data must be equal.

mod operation;
mod steps;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kinora_contract::{FailureCode, ManualClock, Priority, Task};
use proptest::test_runner::{Config, TestRunner};

use self::operation::{FileOperation, Operation, SETTLED, operations};
use self::steps::{RETENTION_MS, postpone, sweep};
use super::bench::{Bench as _, any_call_off};

use super::fixtures::{
    LEASE_MS, MODELS, NOW, artifact, cancelled, claiming, id, of_model, renewal, spec, with_images,
};
use super::uploads::{file, file_id};
use super::{Harness, Site};
use crate::{
    Chore, ChoreKind, ChoreWork, ClaimRequest, DeleteOutcome, EmbeddedStore, FetchReport,
    FileBounds, FilePageRequest, IdempotencyKey, InsertOutcome, Lease, LeaseRenewal, ListOrder,
    LongTasks, NewFile, NewTask, PageRequest, QueueBounds, QuotaUsage, ReferenceFetch,
    ReleasedAttempt, TallyRequest,
};

const PROJECTS: [&str; 3] = ["one", "two", "three"];
const BOUNDS: QueueBounds = QueueBounds {
    waiting_max: 6,
    project_unfinished_max: 4,
    ..QueueBounds::NONE
};
/// Lifetime of an idempotency key.
const BOUND_MS: u64 = 50_000;

/// The case: 100 sequences of up to 40 operations; only 30 if each operation goes to a server.
pub async fn random_operations_agree_with_an_embedded_store(harness: &impl Harness) {
    let number = AtomicU32::new(0);
    tokio::task::block_in_place(|| {
        let config = Config {
            cases: [100, 30][usize::from(harness.outlives_its_processes())],
            failure_persistence: None,
            ..Config::default()
        };
        let tested = TestRunner::new(config).run(&operations(), |operations| {
            let name = format!("agreement-{}", number.fetch_add(1, Ordering::Relaxed));
            tokio::runtime::Handle::current().block_on(async {
                let clock = Arc::new(ManualClock::at(NOW));
                let first = Site::of(harness.stores(&name, clock.clone()).await, clock.clone());
                let second = harness.open_second(&first, &name, clock.clone()).await;
                let embedded = EmbeddedStore::open(clock.clone());
                let other = Site::of(embedded.stores.clone(), clock.clone());
                let mut tested = Side::of([first, second]);
                let mut wanted = Side::of([other.clone(), other]);
                // Processes do not know each other's promises of places in a full queue.
                tested.submits_to_first = harness.outlives_its_processes();
                for operation in operations {
                    clock.advance(1);
                    operation.pass_time(&clock);
                    let answer = tested.step(&operation).await;
                    assert_eq!(answer, wanted.step(&operation).await, "{operation:?}");
                    agree(&tested, &wanted).await;
                }
            });
            Ok(())
        });
        tested.unwrap_or_else(|failure| panic!("{failure}"));
    });
}

/// Compares all readable data.
async fn agree(tested: &Side, wanted: &Side) {
    let (shown, wanted) = (tested.shown().await, wanted.shown().await);
    for (one, other) in shown.iter().zip(&wanted) {
        assert_eq!(one, other);
    }
    assert_eq!(shown.len(), wanted.len());
}

/// A store, and what the operations remember about it.
struct Side {
    handles: [Site; 2],
    /// Number of operations so far.
    steps: usize,
    /// Number of tasks submitted so far.
    submitted: u64,
    /// Number of files added so far.
    uploaded: u64,
    /// Whether all tasks are submitted through the first handle.
    submits_to_first: bool,
    runs: Vec<Lease>,
    fetches: Vec<ReferenceFetch>,
}

impl Side {
    fn of(handles: [Site; 2]) -> Self {
        Self {
            handles,
            steps: 0,
            submitted: 0,
            uploaded: 0,
            submits_to_first: false,
            runs: Vec::new(),
            fetches: Vec::new(),
        }
    }

    /// Performs the operation, and returns its outcome without the numbers that each store chooses.
    async fn step(&mut self, operation: &Operation) -> String {
        let site = self.handles[self.steps % 2].clone();
        self.steps += 1;
        match *operation {
            Operation::Insert {
                project,
                model,
                key,
                images,
                priority,
                file,
            } => {
                let mut new = self.new_task(project, model, key, images);
                new.priority = Priority::ALL[priority];
                new.files = file.map(file_id).into_iter().collect();
                self.insert(&site, new).await
            }
            Operation::File(operation) => self.step_file(&site, operation).await,
            Operation::TakeFetches { count } => {
                let fetches = site.take(count).await;
                let told = fetches.iter().map(|fetch| (fetch.task.id, fetch.tries));
                let told = format!("{:?}", told.collect::<Vec<_>>());
                self.fetches.extend(fetches);
                told
            }
            Operation::SettleFetch { fetch, how } => self.settle_fetch(&site, fetch, how).await,
            Operation::Claim {
                worker,
                count,
                models,
                slots,
                project_slots_max,
                long,
            } => {
                let served = |model: &usize| models & (1 << model) != 0;
                let models = (0..MODELS.len()).filter(served);
                let request = ClaimRequest {
                    worker: format!("worker {worker}"),
                    models: models.map(|model| MODELS[model].to_owned()).collect(),
                    slots,
                    project_slots_max,
                    long_tasks: long.map(long_tasks),
                    ..claiming(count)
                };
                self.claim(&site, request).await
            }
            Operation::Cancel { task, project } => {
                let project = PROJECTS[project];
                let tasks = &site.tasks;
                let cancel = tasks.cancel(project, id(task), cancelled(), RETENTION_MS);
                format!("{:?}", cancel.await.unwrap())
            }
            Operation::Delete { task, project } => self.delete(&site, task, project).await,
            Operation::Sweep { after_ms, trusts } => sweep(&site, after_ms, trusts).await,
            Operation::DeleteAll => self.delete_all(&site).await,
            Operation::SetClock { .. } => String::new(),
            Operation::Chores => self.do_chores(&site).await,
            Operation::Postpone => postpone(&site).await,
            Operation::ChargeReferences { task, bytes } => {
                let charged = site.work.charge_references(id(task), bytes).await;
                format!("{charged:?}")
            }
            Operation::Renew { run, progress } => self.renew(&site, run, progress).await,
            Operation::Finish { run, well } => self.finish(&site, run, well).await,
            Operation::Release { run, attempt } => self.release(&site, run, attempt).await,
        }
    }

    fn new_task(&self, project: usize, model: usize, key: Option<u8>, images: usize) -> NewTask {
        let project = PROJECTS[project];
        let mut new = NewTask {
            idempotency: key.map(|key| IdempotencyKey {
                key: key.to_string(),
                fingerprint: [u8::try_from(model).unwrap(); 32],
                bound_ms: BOUND_MS,
            }),
            bounds: BOUNDS,
            ..of_model(self.submitted, project, MODELS[model])
        };
        if images > 0 {
            new.spec.inputs = with_images(0, project, images).spec.inputs;
        }
        new.spec.draft = images == 2;
        new
    }

    async fn insert(&mut self, site: &Site, new: NewTask) -> String {
        self.submitted += 1;
        let site = if self.submits_to_first {
            &self.handles[0]
        } else {
            site
        };
        let twin = match &new.idempotency {
            Some(key) => site.tasks.find_twin(&new.project, key).await.unwrap(),
            None => None,
        };
        let came = match site.tasks.insert(new).await.unwrap() {
            // The time to return is only an estimate.
            InsertOutcome::QueueFull(_) => "queue full".to_owned(),
            InsertOutcome::ProjectFull(_) => "project full".to_owned(),
            other => format!("{other:?}"),
        };
        format!("{came}, twin {twin:?}")
    }

    async fn step_file(&mut self, site: &Site, operation: FileOperation) -> String {
        match operation {
            FileOperation::Add {
                project,
                content,
                key,
            } => self.add_file(site, project, content, key).await,
            FileOperation::Confirm { file } => {
                let confirmed = site.files.confirm_file(file_id(file)).await;
                format!("{:?}", confirmed.unwrap())
            }
            FileOperation::Delete { file, project } => {
                let delete = site.files.delete_file(PROJECTS[project], file_id(file));
                format!("{:?}", delete.await.unwrap())
            }
        }
    }

    async fn add_file(
        &mut self,
        site: &Site,
        project: usize,
        content: u64,
        key: Option<u8>,
    ) -> String {
        let new = NewFile {
            idempotency: key.map(|key| IdempotencyKey {
                key: key.to_string(),
                fingerprint: [u8::try_from(content).unwrap(); 32],
                bound_ms: BOUND_MS,
            }),
            lifetime_ms: RETENTION_MS,
            bounds: FileBounds {
                files_max: 4,
                project_bytes_max: u64::MAX,
                bytes_max: u64::MAX,
            },
            ..file(self.uploaded, PROJECTS[project], content)
        };
        self.uploaded += 1;
        format!("{:?}", site.files.add_file(new).await.unwrap())
    }

    async fn settle_fetch(&self, site: &Site, fetch: usize, how: usize) -> String {
        let Some(fetch) = self.fetches.iter().rev().nth(fetch) else {
            return String::new();
        };
        let all: [FetchReport; SETTLED] = [
            FetchReport::AtHand,
            FetchReport::Failed {
                failure: FailureCode::ReferenceUnreachable.into(),
                retention_ms: RETENTION_MS,
            },
            FetchReport::Back { pause_ms: 9_000 },
        ];
        let settled = site.work.complete_fetch(fetch, all[how].clone()).await;
        format!("{settled:?}")
    }

    async fn claim(&mut self, site: &Site, request: ClaimRequest) -> String {
        let mut told = Vec::new();
        let is_claimable = site.work.has_claimable(&request).await.unwrap();
        let claims = site.work.claim(request).await.unwrap();
        assert!(is_claimable || claims.is_empty(), "{claims:?}");
        for claim in claims {
            let is_larger = |lease: &Lease| lease.token < claim.lease.token;
            assert!(self.runs.iter().all(is_larger));
            self.runs.push(claim.lease);
            told.push((claim.task, claim.ticket));
        }
        format!("claimable {is_claimable}: {told:?}")
    }

    /// One of the last runs, counted from the newest, with its number.
    fn run(&self, back: usize) -> Option<(usize, &Lease)> {
        self.runs.iter().enumerate().rev().nth(back)
    }

    async fn renew(&self, site: &Site, run: usize, progress: u8) -> String {
        let Some((_, lease)) = self.run(run) else {
            return String::new();
        };
        let preview = Arc::from([progress]);
        site.work.put_preview(lease, preview).await.unwrap();
        let renewal = LeaseRenewal {
            ticket: progress
                .is_multiple_of(2)
                .then(|| format!("ticket {progress}")),
            ..renewal(progress)
        };
        format!("{:?}", site.work.renew(lease, LEASE_MS, renewal).await)
    }

    async fn finish(&self, site: &Site, run: usize, well: bool) -> String {
        let Some((number, lease)) = self.run(run) else {
            return String::new();
        };
        let outcome = match well {
            true => Ok(artifact(&format!("run {number}"))),
            false => Err(FailureCode::GenerationFailed.into()),
        };
        let finished = site.work.finish(lease, outcome, RETENTION_MS).await;
        format!("{finished:?}")
    }

    async fn release(&self, site: &Site, run: usize, attempt: usize) -> String {
        let Some((_, lease)) = self.run(run) else {
            return String::new();
        };
        let all = [
            ReleasedAttempt::Counts,
            ReleasedAttempt::Forgiven,
            ReleasedAttempt::ReferencesLost,
        ];
        format!("{:?}", site.work.release(lease, all[attempt]).await)
    }

    /// The caller removes the files in the chores that it gets.
    async fn delete(&self, site: &Site, task: u64, project: usize) -> String {
        let deleted = site.tasks.delete(PROJECTS[project], id(task)).await;
        match deleted.unwrap() {
            DeleteOutcome::NotFound => "not found".to_owned(),
            DeleteOutcome::Deleted { files } => {
                let told = format!("{:?}", self.works(&files));
                let done = files.into_iter().map(Chore::done).collect();
                site.tasks.complete_deletion(done).await.unwrap();
                told
            }
        }
    }

    async fn delete_all(&self, site: &Site) -> String {
        let mut told = Vec::new();
        for task in 0..self.submitted {
            for project in 0..PROJECTS.len() {
                told.push(self.delete(site, task, project).await);
            }
        }
        // All files have expired.
        told.push(sweep(site, 0, true).await);
        for project in PROJECTS {
            let usage = site.tasks.usage(project).await.unwrap();
            assert_eq!(usage, QuotaUsage::default(), "{project}");
        }
        format!("{told:?}")
    }

    /// Does all chores, in any order.
    async fn do_chores(&self, site: &Site) -> String {
        let mut told = Vec::new();
        for kind in [ChoreKind::RemoveFile, any_call_off()] {
            loop {
                let some = site.take_chores(kind.clone()).await;
                if some.is_empty() {
                    break;
                }
                told.extend(self.works(&some));
                let done = some.into_iter().map(Chore::done).collect();
                site.chores.complete_chores(done).await.unwrap();
            }
        }
        told.sort_unstable();
        format!("{told:?}")
    }

    /// The work of the chores, with runs in place of their tokens.
    fn works(&self, chores: &[Chore]) -> Vec<String> {
        let work = |chore: &Chore| match &chore.work {
            ChoreWork::RemoveFile(key) => {
                let file = |lease: &Lease| lease.file_keys().iter().position(|one| one == key);
                let mut runs = self.runs.iter().enumerate();
                let of_run = runs.find_map(|(run, lease)| Some((run, file(lease)?)));
                of_run.map_or_else(|| key.clone(), |(run, file)| format!("{file} of run {run}"))
            }
            other => format!("{other:?}"),
        };
        let told = |chore: &Chore| format!("{}, try {}", work(chore), chore.attempts);
        chores.iter().map(told).collect()
    }

    /// All readable data, through the handle that did not perform the last operation.
    async fn shown(&self) -> Vec<String> {
        let site = &self.handles[self.steps % 2];
        let mut shown = Vec::new();
        for number in 0..self.submitted {
            for project in PROJECTS {
                let task = site.tasks.get(project, id(number)).await.unwrap();
                task.iter().for_each(|task| assert_times(task));
                shown.push(format!("task {number} of {project}: {task:?}"));
            }
            let preview = site.tasks.preview(id(number)).await.unwrap();
            shown.push(format!("preview {number}: {preview:?}"));
        }
        let lost = site.work.find_lost(&self.runs).await.unwrap();
        shown.push(format!("lost: {lost:?}"));
        for project in PROJECTS {
            let request = PageRequest {
                project: project.to_owned(),
                after: None,
                limit: 100,
                order: ListOrder::Ascending,
            };
            let tasks = site.tasks.list(request).await.unwrap().tasks;
            let listed: Vec<_> = tasks.iter().map(|task| task.id).collect();
            let usage = site.tasks.usage(project).await.unwrap();
            let files = site.files.list_files(FilePageRequest {
                project: project.to_owned(),
                after: None,
                limit: 100,
                order: ListOrder::Descending,
                purpose: None,
            });
            let files = files.await.unwrap().files;
            shown.push(format!("{project}: {listed:?}, {usage:?}, {files:?}"));
        }
        shown.push(format!("{:?}", site.tasks.counts().await.unwrap()));
        let tallies = site.operations.tallies(&TallyRequest::default()).await;
        shown.push(format!("{:?}", tallies.unwrap()));
        let overview = site.operations.overview().await.unwrap();
        shown.push(format!("{overview:?}"));
        shown
    }
}

/// Times of a task never run backwards, whatever the clock does.
fn assert_times(task: &Task) {
    let later = [task.started_at_ms, task.finished_at_ms];
    let times = [Some(task.created_at_ms)].into_iter().chain(later);
    let times: Vec<u64> = times.flatten().collect();
    assert!(times.is_sorted(), "{times:?} of {}", task.id);
}

/// Limits a claim to `count` tasks that cost more than one of the first model.
fn long_tasks(count: usize) -> LongTasks {
    LongTasks {
        cost_over: spec(MODELS[0]).cost(),
        count,
    }
}
