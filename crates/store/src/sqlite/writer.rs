//! The single writing thread and its jobs. It puts all queued jobs into one transaction, commits (and
//! so syncs) it, publishes the result to readers, and only then answers. A failing job does not fail
//! its neighbours, and nothing of a failed transaction is visible or remembered.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use kinora_contract::{Clock, Stopwatch};
use rusqlite::{Connection, ErrorCode};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::fault::{SqliteFault, SqliteResult};
use super::files::StoreFiles;
use super::high_water_mark::HighWaterMark;
use super::locks::StoreLocks;
use super::memory::StoreMemory;
use super::transaction::{WriterState, WriterTransaction, execute_control, roll_back};
use super::{recovery, thread_join, transaction};
use crate::backend::StoreOperation;
use crate::work::LeasedChange;
use crate::{SqliteOptions, StoreError, commit_metrics};

/// Maximum number of queued requests; further ones wait, which holds back their callers.
const QUEUED_MAX: usize = 4_096;

/// The writer's queue. Dropping it lets the writer finish the queued requests, and waits for that,
/// but no longer than ten seconds.
#[derive(Debug)]
pub(super) enum WriterHandle {
    Thread {
        jobs: Option<mpsc::Sender<Box<dyn WriterJob>>>,
        thread: Option<JoinHandle<()>>,
    },
    /// No thread ([`SqliteOptions::on_the_spot`]).
    Inline(InlineWriter),
}

impl WriterHandle {
    pub(super) fn start(
        conn: Connection,
        writer_state: WriterState,
        memory: Arc<StoreMemory>,
        resources: WriterResources,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = CommitLoop {
            conn,
            state: writer_state,
            memory: memory.clone(),
            resources,
            writes: WriteHealth::new(clock.clone(), memory),
            clock,
            runtime: Handle::try_current().ok().filter(|_| !options.on_the_spot),
            queue: jobs.downgrade(),
        };
        if options.on_the_spot {
            return Ok(Self::Inline(InlineWriter::new(state)));
        }
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = thread.spawn(move || state.serve(queue))?;
        Ok(Self::Thread {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs `operation`; returns once it is on disk.
    pub(super) async fn call<O: WriterStep>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(WriterCall {
            operation,
            output: None,
            reply,
        });
        match self {
            Self::Thread { jobs, .. } => {
                let jobs = jobs.as_ref().ok_or_else(closed_error)?;
                jobs.send(job).await.map_err(|_| closed_error())?;
            }
            Self::Inline(spot) => spot.serve_with_others(job).await,
        }
        answer.await.map_err(|_| closed_error())?
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        if let Self::Thread { jobs, thread } = self {
            drop(jobs.take());
            thread_join::join(thread.take(), "store writer");
        }
    }
}

/// Interval of the writer's own attempts while writes fail.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Interval of checks for requests in between.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Tracks the writes of one writer.
struct WriteHealth {
    clock: Arc<dyn Clock>,
    /// While writes fail: time since the last attempt.
    failed_attempt: Option<Stopwatch>,
    /// Publishes the state to readers.
    memory: Arc<StoreMemory>,
}

impl WriteHealth {
    const fn new(clock: Arc<dyn Clock>, memory: Arc<StoreMemory>) -> Self {
        Self {
            clock,
            failed_attempt: None,
            memory,
        }
    }

    /// Records the outcome of a write: a store that stays unavailable is logged once.
    fn record_outcome(&mut self, failure: Option<&SqliteFault>) {
        // One line at the change of the state, not one per failed commit: a full disk would fill the
        // log too.
        match (failure, &self.failed_attempt) {
            (Some(error), None) => tracing::error!(%error, "store writes failing"),
            (None, Some(_)) => tracing::info!("store writes recovered"),
            _ => {}
        }
        self.failed_attempt = failure.map(|_| Stopwatch::start(&self.clock));
        self.memory.set_writable(failure.is_none());
    }

    /// Waits for a job, and meanwhile tries to write if writes fail; `None` when the queue is
    /// closed.
    fn next_job(
        &mut self,
        conn: &Connection,
        queue: &mut Receiver<Box<dyn WriterJob>>,
    ) -> Option<Box<dyn WriterJob>> {
        // A full disk may get space again while no client writes. Somebody has to try, or a store
        // that clients see as unavailable would stay so. The queue's blocking receive takes no
        // timeout, so the thread polls it between the attempts.
        while let Some(tried) = &self.failed_attempt {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if tried.elapsed() < TRY_EVERY => {
                    std::thread::sleep(POLL_EVERY);
                }
                // Another program has replaced the files: a write would go to the old ones, and its
                // success would prove nothing.
                Err(TryRecvError::Empty) if !self.memory.is_in_place() => {
                    std::thread::sleep(POLL_EVERY);
                }
                Err(TryRecvError::Empty) => {
                    let tried = write_filler(conn);
                    self.record_outcome(tried.err().as_ref());
                }
            }
        }
        queue.blocking_recv()
    }
}

/// Overwrites a failed commit in the log before its callers learn of the failure: a restart would
/// find its records there.
///
/// Success does not prove that the next commit will work: writes count as failing until a later one
/// succeeds.
fn overwrite_failed(conn: &Connection) {
    if let Err(fault) = write_filler(conn) {
        tracing::debug!(%fault, "failed commit not overwritten");
    }
}

/// Writes a meaningless row about as large as a task, and removes it: it takes no space from any
/// task.
fn write_filler(conn: &Connection) -> SqliteResult<()> {
    let written = conn.execute_batch(
        "BEGIN IMMEDIATE; \
         INSERT OR REPLACE INTO write_try (number, filler) VALUES (0, randomblob(32768)); \
         COMMIT",
    );
    if written.is_err() {
        roll_back(conn);
    } else if let Err(error) = conn.execute_batch("DELETE FROM write_try") {
        tracing::debug!(%error, "filler row not removed; the next one replaces it");
        roll_back(conn);
    }
    Ok(written?)
}

/// Whether another process is writing, so that nothing of the transaction was written.
fn is_busy(fault: &SqliteFault) -> bool {
    let SqliteFault::Sql(error) = fault else {
        return false;
    };
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Maximum number of requests in one transaction: limits the work that one failing request causes
/// to be repeated.
const BATCH_MAX: usize = 1_024;
/// Maximum number of restarts, without the culprit, of a transaction that SQLite has given up as a
/// whole.
const RESTARTS_MAX: usize = 8;

/// The error of each failed job of a transaction.
type JobFailures = Vec<Option<StoreError>>;

/// Result of a committed transaction.
struct CommittedJobs {
    failures: JobFailures,
    /// Whether it wrote anything: an empty one works even on a full disk.
    wrote: bool,
}

/// How to run the jobs of a transaction: [`run_together`] or [`run_apart`].
type RunJobs =
    fn(&mut WriterTransaction<'_>, &mut [Box<dyn WriterJob>]) -> SqliteResult<JobFailures>;

/// State of the writer besides its connection.
pub(super) struct WriterResources {
    pub(super) files: StoreFiles,
    pub(super) mark: HighWaterMark,
    /// Held while the thread may write, even after the closing store has stopped waiting for it.
    pub(super) _locks: Arc<StoreLocks>,
}

/// Everything that the writer's thread owns.
struct CommitLoop {
    conn: Connection,
    state: WriterState,
    memory: Arc<StoreMemory>,
    resources: WriterResources,
    /// Determines all times in the store.
    clock: Arc<dyn Clock>,
    /// Whether writes work.
    writes: WriteHealth,
    /// The runtime of the callers, in which the store was opened.
    runtime: Option<Handle>,
    /// This writer's own queue; weak, so that it does not prevent closing.
    queue: mpsc::WeakSender<Box<dyn WriterJob>>,
}

impl CommitLoop {
    /// Commits all queued requests until the queue is closed.
    fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn WriterJob>>) {
        let mut own = VecDeque::new();
        let mut jobs: Vec<Box<dyn WriterJob>> = Vec::new();
        loop {
            jobs.extend(own.drain(..));
            if jobs.is_empty() {
                let Some(job) = self.writes.next_job(&self.conn, &mut queue) else {
                    return self.finish();
                };
                jobs.push(job);
            }
            // Group commit: all jobs that queued up during the last sync share the next one. If a
            // sync takes 5 ms, one job takes 5 ms and so do 500 together. No timer collects them: a
            // busy writer finds them waiting, and an idle one starts at once.
            while jobs.len() < BATCH_MAX {
                let Ok(job) = queue.try_recv() else { break };
                jobs.push(job);
            }
            let failures = self.commit(&mut jobs);
            self.respond(jobs.drain(..).zip(failures).collect(), &mut own);
        }
    }

    /// Makes the last writes: marks the stop as clean, and runs a checkpoint.
    fn finish(&mut self) {
        // In replaced files the mark would be lost, or stand in another store.
        if self
            .resources
            .files
            .refusal(&self.conn, self.clock.steady())
            .is_none()
        {
            recovery::record_clean_stop(&self.conn);
        }
        self.resources.files.run_last_checkpoint(&self.conn);
    }

    /// Answers each job. Several are answered from within the runtime, where waking another task
    /// costs a push to a queue; from this thread it would cost a system call each.
    fn respond(
        &self,
        done: Vec<(Box<dyn WriterJob>, Option<StoreError>)>,
        own: &mut VecDeque<Box<dyn WriterJob>>,
    ) {
        let runtime = self.runtime.as_ref().filter(|_| done.len() > 1);
        let (urgent, others): (Vec<_>, Vec<_>) = done
            .into_iter()
            .partition(|(job, _)| runtime.is_none() || job.is_urgent());
        for (job, failure) in urgent {
            own.extend(job.respond(failure));
        }
        let Some(runtime) = runtime.filter(|_| !others.is_empty()) else {
            return;
        };
        let queue = self.queue.clone();
        runtime.spawn(async move {
            let unclaimed = others
                .into_iter()
                .flat_map(|(job, failure)| job.respond(failure));
            for job in unclaimed.collect::<Vec<_>>() {
                if let Some(queue) = queue.upgrade() {
                    // A closed writer accepts nothing more; the lease expires.
                    let _ = queue.send(job).await;
                }
            }
        });
    }

    /// Commits the jobs, and returns the result of each.
    fn commit(&mut self, jobs: &mut [Box<dyn WriterJob>]) -> JobFailures {
        let refusal = self
            .resources
            .files
            .refusal(&self.conn, self.clock.steady());
        self.memory.set_in_place(refusal.is_none());
        if let Some(text) = refusal {
            // Checked before the transaction, not after it: a commit into a removed file succeeds.
            return jobs.iter().map(|_| Some(unavailable(&text))).collect();
        }
        let watch = Stopwatch::start(&self.clock);
        // First without savepoints, which cost two statements per job. A transaction with a failing
        // job is rare; it is rolled back, and runs again with each job in a savepoint of its own.
        let together = self.attempt(jobs, run_together);
        if matches!(&together, Err(SqliteFault::Sql(error)) if is_full(error)) {
            self.resources.files.log.request_space();
        }
        let done = match together {
            // The disk or another process fails every job alike: one by one, a full queue would
            // wait out the same timeout a thousand times.
            Err(SqliteFault::Sql(error)) if fails_all_jobs(&error) => Err(SqliteFault::Sql(error)),
            Err(_) => self.attempt(jobs, run_apart),
            done => done,
        };
        match &done {
            Err(fault) => {
                self.writes.record_outcome(Some(fault));
                if !is_busy(fault) {
                    overwrite_failed(&self.conn);
                }
            }
            Ok(done) if done.wrote => {
                self.writes.record_outcome(None);
                commit_metrics::commit_took(watch.elapsed());
            }
            Ok(_) => {}
        }
        match done {
            Ok(done) => done.failures,
            Err(fault) => {
                let text = fault.to_string();
                jobs.iter().map(|_| Some(unavailable(&text))).collect()
            }
        }
    }

    /// One transaction. Readers see it after its commit; after a failure nothing has changed.
    fn attempt(
        &mut self,
        jobs: &mut [Box<dyn WriterJob>],
        run: RunJobs,
    ) -> SqliteResult<CommittedJobs> {
        // Takes the write lock now. A deferred transaction would take it at its first write, where
        // SQLite fails at once instead of waiting if another process has written meanwhile
        // (<https://sqlite.org/lang_transaction.html>).
        execute_control(&self.conn, "BEGIN IMMEDIATE")?;
        let rows_before = self.conn.total_changes();
        let mut batch = WriterTransaction::new(&mut self.conn, &mut self.state, self.clock.read());
        let done = run(&mut batch, jobs).and_then(|failures| {
            kinora_system::crash::point("store.before_commit");
            let changes = batch.write_totals(jobs.len() as u64, rows_before)?;
            execute_control(batch.conn, "COMMIT")?;
            kinora_system::crash::point("store.after_commit");
            batch.set_changes(changes);
            Ok(failures)
        });
        match done {
            Ok(failures) => {
                if batch.erases() {
                    self.resources.files.log.request_erasure();
                }
                // A commit without changes leaves the log untouched.
                let wrote = batch.conn.total_changes() > rows_before;
                if wrote {
                    self.resources.files.log.record_commit();
                }
                // Before the answers, so that a caller that reads at once sees its own change. The
                // mark follows the sync: it must never count a change that a crash could take.
                self.memory.publish(batch.into_changes());
                self.resources.mark.write(self.state.changes);
                Ok(CommittedJobs { failures, wrote })
            }
            Err(fault) => {
                batch.undo_to(transaction::UndoPoint::default());
                roll_back(batch.conn);
                Err(fault)
            }
        }
    }
}

/// All jobs in sequence: the usual way, without extra cost.
fn run_together(
    batch: &mut WriterTransaction<'_>,
    jobs: &mut [Box<dyn WriterJob>],
) -> SqliteResult<JobFailures> {
    jobs.iter_mut().try_for_each(|job| job.run(batch))?;
    Ok(jobs.iter().map(|_| None).collect())
}

/// Each job in a savepoint, so that failing jobs leave the others alone.
fn run_apart(
    batch: &mut WriterTransaction<'_>,
    jobs: &mut [Box<dyn WriterJob>],
) -> SqliteResult<JobFailures> {
    let mut failures: JobFailures = jobs.iter().map(|_| None).collect();
    // A failed job keeps its error over the restarts, so each restart has one job less.
    for restarts in 0.. {
        let lost = run_each(batch, jobs, &mut failures)?;
        let Some(text) = lost else { break };
        // A full disk, for example, ends the whole transaction: restart it without the culprit.
        batch.undo_to(transaction::UndoPoint::default());
        // With no job left, an empty commit would hide that nothing can be written.
        if restarts == RESTARTS_MAX || failures.iter().all(Option::is_some) {
            return Err(SqliteFault::GivenUp(text));
        }
        execute_control(batch.conn, "BEGIN IMMEDIATE")?;
    }
    Ok(failures)
}

/// Runs the jobs that have not failed yet; returns why the transaction was lost, if it was.
fn run_each(
    batch: &mut WriterTransaction<'_>,
    jobs: &mut [Box<dyn WriterJob>],
    failures: &mut [Option<StoreError>],
) -> SqliteResult<Option<String>> {
    for (job, failure) in jobs
        .iter_mut()
        .zip(failures)
        .filter(|(_, failure)| failure.is_none())
    {
        let mark = batch.undo_point();
        execute_control(batch.conn, "SAVEPOINT job")?;
        if let Err(fault) = job.run(batch) {
            let text = fault.to_string();
            *failure = Some(fault.into());
            if batch.conn.is_autocommit() {
                return Ok(Some(text));
            }
            // Memory and database go back together. ROLLBACK TO keeps the savepoint open, so the
            // RELEASE below serves both cases.
            batch.undo_to(mark);
            execute_control(batch.conn, "ROLLBACK TO job")?;
        }
        execute_control(batch.conn, "RELEASE job")?;
    }
    Ok(None)
}

/// Whether trying the jobs one by one is pointless.
fn fails_all_jobs(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, PermissionDenied, ReadOnly, SystemIoFailure,
    };
    matches!(
        error.sqlite_error_code(),
        Some(
            CannotOpen
                | DatabaseBusy
                | DatabaseLocked
                | PermissionDenied
                | ReadOnly
                | SystemIoFailure
        )
    )
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}

fn unavailable(text: &str) -> StoreError {
    StoreError::Unavailable(text.into())
}

/// A writer without a thread: the caller's task commits its own job and all others that wait.
pub(super) struct InlineWriter(Box<Mutex<InlineQueue>>);

/// The writer's state and its waiting jobs.
struct InlineQueue {
    state: CommitLoop,
    queue: VecDeque<Box<dyn WriterJob>>,
}

impl InlineWriter {
    fn new(state: CommitLoop) -> Self {
        let queue = VecDeque::new();
        Self(Box::new(Mutex::new(InlineQueue { state, queue })))
    }

    /// Queues `job`, and returns once it is committed. If the caller goes away meanwhile, the job runs
    /// with the next one.
    async fn serve_with_others(&self, job: Box<dyn WriterJob>) {
        self.lock().queue.push_back(job);
        // Yields once: tasks that are ready now queue their jobs too, as they would while the
        // thread syncs. The first to continue commits all; the others find their answers.
        let mut others_came = false;
        poll_fn(|context| {
            if others_came {
                return Poll::Ready(());
            }
            others_came = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.lock().commit_all();
    }

    fn lock(&self) -> MutexGuard<'_, InlineQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InlineQueue {
    fn commit_all(&mut self) {
        while !self.queue.is_empty() {
            let mut jobs: Vec<_> = self.queue.drain(..).collect();
            let failures = self.state.commit(&mut jobs);
            let done = jobs.into_iter().zip(failures).collect();
            self.state.respond(done, &mut self.queue);
        }
    }
}

impl Drop for InlineQueue {
    fn drop(&mut self) {
        self.commit_all();
        self.state.finish();
    }
}

impl fmt::Debug for InlineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InlineWriter")
    }
}

/// A change by the writer, which can be retried after an undo: a [`StoreOperation`], or what only this
/// database does.
pub(super) trait WriterStep: Send + 'static {
    type Output: Send + 'static;

    fn apply(&self, batch: &mut WriterTransaction<'_>) -> SqliteResult<Self::Output>;

    /// Whether the caller waits on its own runtime, so that its answer must not depend on the
    /// runtime in which the store was opened.
    fn is_urgent(&self) -> bool {
        false
    }

    /// The changes to make if the caller has gone before the answer, such as releasing a claim.
    fn unclaimed(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

impl<O: StoreOperation> WriterStep for O {
    type Output = O::Output;

    fn apply(&self, batch: &mut WriterTransaction<'_>) -> SqliteResult<O::Output> {
        let done = StoreOperation::apply(self, batch).now_or_never();
        // A batch answers every call at once.
        done.unwrap_or_else(|| Err(SqliteFault::GivenUp("an operation waited".to_owned())))
    }

    fn is_urgent(&self) -> bool {
        StoreOperation::is_urgent(self)
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::return_grants(output)
    }
}

/// An operation and its caller, with the type erased.
pub(super) trait WriterJob: Send {
    fn run(&mut self, batch: &mut WriterTransaction<'_>) -> SqliteResult<()>;
    /// As [`WriterStep::is_urgent`].
    fn is_urgent(&self) -> bool;
    /// Answers with the result of the last run, or with the failure.
    fn respond(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn WriterJob>>;
}

struct WriterCall<O: WriterStep> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: WriterStep> WriterJob for WriterCall<O> {
    fn run(&mut self, batch: &mut WriterTransaction<'_>) -> SqliteResult<()> {
        self.output = Some(self.operation.apply(batch)?);
        Ok(())
    }

    fn is_urgent(&self) -> bool {
        self.operation.is_urgent()
    }

    fn respond(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn WriterJob>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed_error)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => O::unclaimed(output)
                .into_iter()
                .map(without_caller)
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// A change without a waiting caller.
fn without_caller(operation: LeasedChange) -> Box<dyn WriterJob> {
    Box::new(WriterCall {
        operation,
        output: None,
        reply: oneshot::channel().0,
    })
}

/// The error of a closed store.
fn closed_error() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
