//! The one thread that writes. It takes whatever is queued into one transaction, commits (and
//! so syncs) it, shows the result to readers, and only then answers. A request that fails does
//! not fail its neighbours, and nothing of a failed transaction is seen or remembered.

mod job;
mod spot;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use kinora_contract::Clock;
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::batch::{self, Batch};
use super::ending;
use super::fault::{Done, Fault};
use super::files::Files;
use super::index::Index;
use super::mark::Mark;
use super::memory::Memory;
use super::schema::Locks;
use super::starts;
use super::writes::{self, Writes, is_busy};
use crate::{SqliteOptions, StoreError};
use job::Call;
pub(super) use job::{Job, Operation, unattended};
use spot::Spot;

/// Requests that wait for the writer; more wait for a place, which holds back their callers.
const QUEUED_MAX: usize = 4_096;
/// Requests of one transaction: bounds what a failing neighbour makes to be done again.
const BATCH_MAX: usize = 1_024;
/// So often a transaction that SQLite gave up as a whole is begun again without the culprit.
const RESTARTS_MAX: usize = 8;

/// The writer's door. Dropping it lets the writer finish what is queued, and waits for it, but no longer
/// than [`ending::LIMIT`].
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
        index: Index,
        memory: Arc<Memory>,
        kept: Kept,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = State {
            conn,
            index,
            memory: memory.clone(),
            kept,
            clock,
            writes: Writes::new(memory),
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

    /// Does `operation`; returns once it is on disk.
    pub(super) async fn call<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
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

/// For each job of a transaction, why it failed.
type Failures = Vec<Option<StoreError>>;

/// Result of a committed transaction.
struct Committed {
    failures: Failures,
    /// Whether it wrote anything: an empty one works on a full disk.
    wrote: bool,
}

/// A way to run the jobs of a transaction.
type Run = fn(&mut Batch<'_>, &mut [Box<dyn Job>]) -> Done<Failures>;

/// State of the writer besides its connection.
pub(super) struct Kept {
    pub(super) files: Files,
    pub(super) mark: Mark,
    /// Held as long as the thread may write, also after the closing store has stopped waiting for it.
    pub(super) _locks: Arc<Locks>,
}

/// Everything that the writer's thread owns.
struct State {
    conn: Connection,
    index: Index,
    memory: Arc<Memory>,
    kept: Kept,
    /// By which everything in the store is stamped and judged.
    clock: Arc<dyn Clock>,
    /// Whether writes work.
    writes: Writes,
    /// Where callers wait; the runtime in which the store was opened.
    runtime: Option<Handle>,
    /// This writer's own door; weak, so that closing it is not prevented.
    queue: mpsc::WeakSender<Box<dyn Job>>,
}

impl State {
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
            while jobs.len() < BATCH_MAX {
                let Ok(job) = queue.try_recv() else { break };
                jobs.push(job);
            }
            let failures = self.commit(&mut jobs);
            self.answer(jobs.drain(..).zip(failures).collect(), &mut own);
        }
    }

    /// The last writes.
    fn end(&mut self) {
        // Not beside files that others have put there.
        if self.kept.files.refusal(&self.conn).is_none() {
            starts::end(&self.conn);
        }
        self.kept.files.carry_over_last(&self.conn);
    }

    /// Answers each job. Several are answered from within the runtime, where waking a neighbour
    /// costs a push to a queue; from this thread it would cost a system call each.
    fn answer(
        &self,
        done: Vec<(Box<dyn Job>, Option<StoreError>)>,
        own: &mut VecDeque<Box<dyn Job>>,
    ) {
        let runtime = self.runtime.as_ref().filter(|_| done.len() > 1);
        let is_urgent = |job: &dyn Job| runtime.is_none() || job.is_urgent();
        let (urgent, others): (Vec<_>, Vec<_>) =
            done.into_iter().partition(|(job, _)| is_urgent(&**job));
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
                    // A closed writer takes no more; the lease runs out by itself.
                    let _ = queue.send(job).await;
                }
            }
        });
    }

    /// Commits the jobs, and returns the result of each.
    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        let refusal = self.kept.files.refusal(&self.conn);
        self.memory.set_in_place(refusal.is_none());
        if let Some(text) = refusal {
            return jobs.iter().map(|_| Some(unavailable(&text))).collect();
        }
        let together = self.attempt(jobs, run_together);
        if matches!(&together, Err(Fault::Sql(error)) if is_full(error)) {
            self.kept.files.log.make_room();
        }
        let done = match together {
            Err(Fault::Sql(error)) if is_hopeless(&error) => Err(Fault::Sql(error)),
            Err(_) => self.attempt(jobs, run_apart),
            done => done,
        };
        match &done {
            Err(fault) => {
                self.writes.note(Some(fault));
                if !is_busy(fault) {
                    writes::overwrite_failed(&self.conn);
                }
            }
            Ok(done) if done.wrote => self.writes.note(None),
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

    /// One transaction. Readers see it after its commit; after a failure all is as before.
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>], run: Run) -> Done<Committed> {
        control(&self.conn, "BEGIN IMMEDIATE")?;
        let rows_before = self.conn.total_changes();
        let mut batch = Batch::new(&self.conn, &mut self.index, self.clock.read());
        let done = run(&mut batch, jobs).and_then(|failures| {
            kinora_crash::point("store.before_commit");
            let changes = batch.write_sums(jobs.len() as u64, rows_before)?;
            control(&self.conn, "COMMIT")?;
            kinora_crash::point("store.after_commit");
            batch.settle(changes);
            Ok(failures)
        });
        match done {
            Ok(failures) => {
                if batch.erases() {
                    self.kept.files.log.erase();
                }
                // A commit that changed nothing leaves the log as it is.
                let wrote = self.conn.total_changes() > rows_before;
                if wrote {
                    self.kept.files.log.committed();
                }
                self.memory.publish(batch.into_changes());
                self.memory.show_gaps(self.index.gaps.all());
                self.kept.mark.write(self.index.changes);
                Ok(Committed { failures, wrote })
            }
            Err(fault) => {
                batch.undo_to(batch::Mark::default());
                roll_back(&self.conn);
                Err(fault)
            }
        }
    }
}

/// All jobs in a row: the usual way, which costs nothing extra.
fn run_together(batch: &mut Batch<'_>, jobs: &mut [Box<dyn Job>]) -> Done<Failures> {
    jobs.iter_mut().try_for_each(|job| job.run(batch))?;
    Ok(jobs.iter().map(|_| None).collect())
}

/// Each job behind a savepoint, so that those that fail leave the others alone.
fn run_apart(batch: &mut Batch<'_>, jobs: &mut [Box<dyn Job>]) -> Done<Failures> {
    let mut failures: Failures = jobs.iter().map(|_| None).collect();
    for restarts in 0.. {
        let lost = run_each(batch, jobs, &mut failures)?;
        let Some(text) = lost else { break };
        // Full disks and the like end the whole transaction: begin again without the culprit.
        batch.undo_to(batch::Mark::default());
        // Without a job left an empty commit would hide that nothing can be written.
        if restarts == RESTARTS_MAX || failures.iter().all(Option::is_some) {
            return Err(Fault::GivenUp(text));
        }
        control(batch.conn, "BEGIN IMMEDIATE")?;
    }
    Ok(failures)
}

/// Runs those that have not failed yet; tells why the transaction was lost, where it was.
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
            batch.undo_to(mark);
            control(batch.conn, "ROLLBACK TO job")?;
        }
        control(batch.conn, "RELEASE job")?;
    }
    Ok(None)
}

/// Begins, ends or undoes a transaction, or a part of one. Every commit does: these statements are prepared once.
fn control(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Whether trying the jobs one by one cannot help.
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

pub(super) fn roll_back(conn: &Connection) {
    // Some errors have rolled back already.
    if !conn.is_autocommit()
        && let Err(error) = control(conn, "ROLLBACK")
    {
        tracing::error!(%error, "the store's transaction does not roll back");
    }
}

fn unavailable(text: &str) -> StoreError {
    StoreError::Unavailable(text.into())
}

fn closed() -> StoreError {
    unavailable("the store is closed")
}
