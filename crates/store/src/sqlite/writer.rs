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

use super::fault::{Done, Fault};
use super::files::Files;
use super::locks::Locks;
use super::mark::Mark;
use super::memory::Memory;
use super::transaction::{Batch, Standing, control, roll_back};
use super::{ending, recover, transaction};
use crate::backend::Operation;
use crate::work::LeasedChange;
use crate::{SqliteOptions, StoreError, metered};

/// Maximum number of queued requests; further ones wait, which holds back their callers.
const QUEUED_MAX: usize = 4_096;

/// The writer's queue. Dropping it lets the writer finish the queued requests, and waits for that,
/// but no longer than ten seconds.
#[derive(Debug)]
pub(super) enum Writer {
    Thread {
        jobs: Option<mpsc::Sender<Box<dyn Job>>>,
        thread: Option<JoinHandle<()>>,
    },
    /// No thread ([`SqliteOptions::on_the_spot`]).
    Spot(Spot),
}

impl Writer {
    pub(super) fn start(
        conn: Connection,
        standing: Standing,
        memory: Arc<Memory>,
        kept: Kept,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = State {
            conn,
            standing,
            memory: memory.clone(),
            kept,
            writes: Writes::new(clock.clone(), memory),
            clock,
            runtime: Handle::try_current().ok().filter(|_| !options.on_the_spot),
            queue: jobs.downgrade(),
        };
        if options.on_the_spot {
            return Ok(Self::Spot(Spot::of(state)));
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
        let job = Box::new(Call {
            operation,
            output: None,
            reply,
        });
        match self {
            Self::Thread { jobs, .. } => {
                let jobs = jobs.as_ref().ok_or_else(closed)?;
                jobs.send(job).await.map_err(|_| closed())?;
            }
            Self::Spot(spot) => spot.serve_with_others(job).await,
        }
        answer.await.map_err(|_| closed())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Self::Thread { jobs, thread } = self {
            drop(jobs.take());
            ending::join(thread.take(), "store writer");
        }
    }
}

/// Interval of the writer's own attempts while writes fail.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Interval of checks for requests in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Tracks the writes of one writer.
struct Writes {
    clock: Arc<dyn Clock>,
    /// While writes fail: time since the last attempt.
    tried: Option<Stopwatch>,
    /// Publishes the state to readers.
    memory: Arc<Memory>,
}

impl Writes {
    const fn new(clock: Arc<dyn Clock>, memory: Arc<Memory>) -> Self {
        Self {
            clock,
            tried: None,
            memory,
        }
    }

    /// Records the outcome of a write: a store that stays unavailable is logged once.
    fn note(&mut self, failure: Option<&Fault>) {
        // One line at the change of the state, not one per failed commit: a full disk would fill the
        // log too.
        match (failure, &self.tried) {
            (Some(error), None) => tracing::error!(%error, "store writes failing"),
            (None, Some(_)) => tracing::info!("store writes recovered"),
            _ => {}
        }
        self.tried = failure.map(|_| Stopwatch::start(&self.clock));
        self.memory.set_writable(failure.is_none());
    }

    /// Waits for a job, and meanwhile tries to write if writes fail; `None` when the queue is
    /// closed.
    fn next_job(
        &mut self,
        conn: &Connection,
        queue: &mut Receiver<Box<dyn Job>>,
    ) -> Option<Box<dyn Job>> {
        // A full disk may get space again while no client writes. Somebody has to try, or a store
        // that clients see as unavailable would stay so. The queue's blocking receive takes no
        // timeout, so the thread polls it between the attempts.
        while let Some(tried) = &self.tried {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if tried.elapsed() < TRY_EVERY => {
                    std::thread::sleep(LOOK_EVERY);
                }
                // Another program has replaced the files: a write would go to the old ones, and its
                // success would prove nothing.
                Err(TryRecvError::Empty) if !self.memory.is_in_place() => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(TryRecvError::Empty) => {
                    let tried = write_filler(conn);
                    self.note(tried.err().as_ref());
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
fn write_filler(conn: &Connection) -> Done<()> {
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
fn is_busy(fault: &Fault) -> bool {
    let Fault::Sql(error) = fault else {
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
type Failures = Vec<Option<StoreError>>;

/// Result of a committed transaction.
struct Committed {
    failures: Failures,
    /// Whether it wrote anything: an empty one works even on a full disk.
    wrote: bool,
}

/// How to run the jobs of a transaction: [`run_together`] or [`run_apart`].
type Run = fn(&mut Batch<'_>, &mut [Box<dyn Job>]) -> Done<Failures>;

/// State of the writer besides its connection.
pub(super) struct Kept {
    pub(super) files: Files,
    pub(super) mark: Mark,
    /// Held while the thread may write, even after the closing store has stopped waiting for it.
    pub(super) _locks: Arc<Locks>,
}

/// Everything that the writer's thread owns.
struct State {
    conn: Connection,
    standing: Standing,
    memory: Arc<Memory>,
    kept: Kept,
    /// Determines all times in the store.
    clock: Arc<dyn Clock>,
    /// Whether writes work.
    writes: Writes,
    /// The runtime of the callers, in which the store was opened.
    runtime: Option<Handle>,
    /// This writer's own queue; weak, so that it does not prevent closing.
    queue: mpsc::WeakSender<Box<dyn Job>>,
}

impl State {
    /// Commits all queued requests until the queue is closed.
    fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut own = VecDeque::new();
        let mut jobs: Vec<Box<dyn Job>> = Vec::new();
        loop {
            jobs.extend(own.drain(..));
            if jobs.is_empty() {
                let Some(job) = self.writes.next_job(&self.conn, &mut queue) else {
                    return self.end();
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
            self.answer(jobs.drain(..).zip(failures).collect(), &mut own);
        }
    }

    /// Makes the last writes: marks the stop as clean, and runs a checkpoint.
    fn end(&mut self) {
        // In replaced files the mark would be lost, or stand in another store.
        if self
            .kept
            .files
            .refusal(&self.conn, self.clock.steady())
            .is_none()
        {
            recover::end(&self.conn);
        }
        self.kept.files.carry_over_last(&self.conn);
    }

    /// Answers each job. Several are answered from within the runtime, where waking another task
    /// costs a push to a queue; from this thread it would cost a system call each.
    fn answer(
        &self,
        done: Vec<(Box<dyn Job>, Option<StoreError>)>,
        own: &mut VecDeque<Box<dyn Job>>,
    ) {
        let runtime = self.runtime.as_ref().filter(|_| done.len() > 1);
        let (urgent, others): (Vec<_>, Vec<_>) = done
            .into_iter()
            .partition(|(job, _)| runtime.is_none() || job.is_urgent());
        for (job, failure) in urgent {
            own.extend(job.answer(failure));
        }
        let Some(runtime) = runtime.filter(|_| !others.is_empty()) else {
            return;
        };
        let queue = self.queue.clone();
        runtime.spawn(async move {
            let unclaimed = others
                .into_iter()
                .flat_map(|(job, failure)| job.answer(failure));
            for job in unclaimed.collect::<Vec<_>>() {
                if let Some(queue) = queue.upgrade() {
                    // A closed writer accepts nothing more; the lease expires.
                    let _ = queue.send(job).await;
                }
            }
        });
    }

    /// Commits the jobs, and returns the result of each.
    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        let refusal = self.kept.files.refusal(&self.conn, self.clock.steady());
        self.memory.set_in_place(refusal.is_none());
        if let Some(text) = refusal {
            // Checked before the transaction, not after it: a commit into a removed file succeeds.
            return jobs.iter().map(|_| Some(unavailable(&text))).collect();
        }
        let watch = Stopwatch::start(&self.clock);
        // First without savepoints, which cost two statements per job. A transaction with a failing
        // job is rare; it is rolled back, and runs again with each job in a savepoint of its own.
        let together = self.attempt(jobs, run_together);
        if matches!(&together, Err(Fault::Sql(error)) if is_full(error)) {
            self.kept.files.log.make_room();
        }
        let done = match together {
            // The disk or another process fails every job alike: one by one, a full queue would
            // wait out the same timeout a thousand times.
            Err(Fault::Sql(error)) if is_hopeless(&error) => Err(Fault::Sql(error)),
            Err(_) => self.attempt(jobs, run_apart),
            done => done,
        };
        match &done {
            Err(fault) => {
                self.writes.note(Some(fault));
                if !is_busy(fault) {
                    overwrite_failed(&self.conn);
                }
            }
            Ok(done) if done.wrote => {
                self.writes.note(None);
                metered::commit_took(watch.elapsed());
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
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>], run: Run) -> Done<Committed> {
        // Takes the write lock now. A deferred transaction would take it at its first write, where
        // SQLite fails at once instead of waiting if another process has written meanwhile
        // (<https://sqlite.org/lang_transaction.html>).
        control(&self.conn, "BEGIN IMMEDIATE")?;
        let rows_before = self.conn.total_changes();
        let mut batch = Batch::new(&mut self.conn, &mut self.standing, self.clock.read());
        let done = run(&mut batch, jobs).and_then(|failures| {
            kinora_system::crash::point("store.before_commit");
            let changes = batch.write_rest(jobs.len() as u64, rows_before)?;
            control(batch.conn, "COMMIT")?;
            kinora_system::crash::point("store.after_commit");
            batch.settle(changes);
            Ok(failures)
        });
        match done {
            Ok(failures) => {
                if batch.erases() {
                    self.kept.files.log.erase();
                }
                // A commit without changes leaves the log untouched.
                let wrote = batch.conn.total_changes() > rows_before;
                if wrote {
                    self.kept.files.log.committed();
                }
                // Before the answers, so that a caller that reads at once sees its own change. The
                // mark follows the sync: it must never count a change that a crash could take.
                self.memory.publish(batch.into_changes());
                self.kept.mark.write(self.standing.changes);
                Ok(Committed { failures, wrote })
            }
            Err(fault) => {
                batch.undo_to(transaction::Mark::default());
                roll_back(batch.conn);
                Err(fault)
            }
        }
    }
}

/// All jobs in sequence: the usual way, without extra cost.
fn run_together(batch: &mut Batch<'_>, jobs: &mut [Box<dyn Job>]) -> Done<Failures> {
    jobs.iter_mut().try_for_each(|job| job.run(batch))?;
    Ok(jobs.iter().map(|_| None).collect())
}

/// Each job in a savepoint, so that failing jobs leave the others alone.
fn run_apart(batch: &mut Batch<'_>, jobs: &mut [Box<dyn Job>]) -> Done<Failures> {
    let mut failures: Failures = jobs.iter().map(|_| None).collect();
    // A failed job keeps its error over the restarts, so each restart has one job less.
    for restarts in 0.. {
        let lost = run_each(batch, jobs, &mut failures)?;
        let Some(text) = lost else { break };
        // A full disk, for example, ends the whole transaction: restart it without the culprit.
        batch.undo_to(transaction::Mark::default());
        // With no job left, an empty commit would hide that nothing can be written.
        if restarts == RESTARTS_MAX || failures.iter().all(Option::is_some) {
            return Err(Fault::GivenUp(text));
        }
        control(batch.conn, "BEGIN IMMEDIATE")?;
    }
    Ok(failures)
}

/// Runs the jobs that have not failed yet; returns why the transaction was lost, if it was.
fn run_each(
    batch: &mut Batch<'_>,
    jobs: &mut [Box<dyn Job>],
    failures: &mut [Option<StoreError>],
) -> Done<Option<String>> {
    for (job, failure) in jobs
        .iter_mut()
        .zip(failures)
        .filter(|(_, failure)| failure.is_none())
    {
        let mark = batch.mark();
        control(batch.conn, "SAVEPOINT job")?;
        if let Err(fault) = job.run(batch) {
            let text = fault.to_string();
            *failure = Some(fault.into());
            if batch.conn.is_autocommit() {
                return Ok(Some(text));
            }
            // Memory and database go back together. ROLLBACK TO keeps the savepoint open, so the
            // RELEASE below serves both cases.
            batch.undo_to(mark);
            control(batch.conn, "ROLLBACK TO job")?;
        }
        control(batch.conn, "RELEASE job")?;
    }
    Ok(None)
}

/// Whether trying the jobs one by one is pointless.
fn is_hopeless(error: &rusqlite::Error) -> bool {
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
pub(super) struct Spot(Box<Mutex<Desk>>);

/// The writer's state and its waiting jobs.
struct Desk {
    state: State,
    queue: VecDeque<Box<dyn Job>>,
}

impl Spot {
    fn of(state: State) -> Self {
        let queue = VecDeque::new();
        Self(Box::new(Mutex::new(Desk { state, queue })))
    }

    /// Queues `job`, and returns once it is committed. If the caller goes away meanwhile, the job runs
    /// with the next one.
    async fn serve_with_others(&self, job: Box<dyn Job>) {
        self.desk().queue.push_back(job);
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
        self.desk().serve();
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn serve(&mut self) {
        while !self.queue.is_empty() {
            let mut jobs: Vec<_> = self.queue.drain(..).collect();
            let failures = self.state.commit(&mut jobs);
            let done = jobs.into_iter().zip(failures).collect();
            self.state.answer(done, &mut self.queue);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.serve();
        self.state.end();
    }
}

impl fmt::Debug for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spot")
    }
}

/// A change by the writer, which can be retried after an undo: an [`Operation`], or what only this
/// database does.
pub(super) trait WriterStep: Send + 'static {
    type Output: Send + 'static;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output>;

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

impl<O: Operation> WriterStep for O {
    type Output = O::Output;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<O::Output> {
        let done = Operation::apply(self, batch).now_or_never();
        // A batch answers every call at once.
        done.unwrap_or_else(|| Err(Fault::GivenUp("an operation waited".to_owned())))
    }

    fn is_urgent(&self) -> bool {
        Operation::is_urgent(self)
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::unclaimed(output)
    }
}

/// An operation and its caller, with the type erased.
pub(super) trait Job: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// As [`WriterStep::is_urgent`].
    fn is_urgent(&self) -> bool;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

struct Call<O: WriterStep> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: WriterStep> Job for Call<O> {
    fn run(&mut self, batch: &mut Batch<'_>) -> Done<()> {
        self.output = Some(self.operation.apply(batch)?);
        Ok(())
    }

    fn is_urgent(&self) -> bool {
        self.operation.is_urgent()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => O::unclaimed(output).into_iter().map(unattended).collect(),
            _ => Vec::new(),
        }
    }
}

/// A change without a waiting caller.
fn unattended(operation: LeasedChange) -> Box<dyn Job> {
    Box::new(Call {
        operation,
        output: None,
        reply: oneshot::channel().0,
    })
}

/// The error of a closed store.
fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
