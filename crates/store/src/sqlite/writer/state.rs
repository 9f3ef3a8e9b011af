//! The writer's state, and how it runs jobs in a transaction. A failing request does not fail its
//! neighbours, and nothing of a failed transaction is visible or remembered.

use std::collections::VecDeque;
use std::sync::Arc;

use kinora_contract::{Clock, Stopwatch};
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::super::batch::{self, Batch};
use super::super::fault::{Done, Fault};
use super::super::files::Files;
use super::super::job::Job;
use super::super::locks::Locks;
use super::super::mark::Mark;
use super::super::memory::Memory;
use super::super::standing::Standing;
use super::super::starts;
use super::super::writes::{self, Writes, control, is_busy, roll_back};
use crate::{StoreError, metered};

/// Maximum number of requests in one transaction: limits the work that one failing request causes
/// to be repeated.
const BATCH_MAX: usize = 1_024;
/// Maximum number of restarts, without the culprit, of a transaction that SQLite has given up as a
/// whole.
const RESTARTS_MAX: usize = 8;

/// The error of each failed job of a transaction.
pub(super) type Failures = Vec<Option<StoreError>>;

/// Result of a committed transaction.
struct Committed {
    failures: Failures,
    /// Whether it wrote anything: an empty one works even on a full disk.
    wrote: bool,
}

/// A way to run the jobs of a transaction.
type Run = fn(&mut Batch<'_>, &mut [Box<dyn Job>]) -> Done<Failures>;

/// State of the writer besides its connection.
pub(in super::super) struct Kept {
    pub(in super::super) files: Files,
    pub(in super::super) mark: Mark,
    /// Held while the thread may write, even after the closing store has stopped waiting for it.
    pub(in super::super) _locks: Arc<Locks>,
}

/// Everything that the writer's thread owns.
pub(super) struct State {
    pub(super) conn: Connection,
    pub(super) standing: Standing,
    pub(super) memory: Arc<Memory>,
    pub(super) kept: Kept,
    /// Determines all times in the store.
    pub(super) clock: Arc<dyn Clock>,
    /// Whether writes work.
    pub(super) writes: Writes,
    /// The runtime of the callers, in which the store was opened.
    pub(super) runtime: Option<Handle>,
    /// This writer's own queue; weak, so that it does not prevent closing.
    pub(super) queue: mpsc::WeakSender<Box<dyn Job>>,
}

impl State {
    /// Commits all queued requests until the queue is closed.
    pub(super) fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
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
    pub(super) fn end(&mut self) {
        // Not if others have replaced the files.
        if self
            .kept
            .files
            .refusal(&self.conn, self.clock.steady())
            .is_none()
        {
            starts::end(&self.conn);
        }
        self.kept.files.carry_over_last(&self.conn);
    }

    /// Answers each job. Several are answered from within the runtime, where waking another task
    /// costs a push to a queue; from this thread it would cost a system call each.
    pub(super) fn answer(
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
                    // A closed writer accepts nothing more; the lease expires.
                    let _ = queue.send(job).await;
                }
            }
        });
    }

    /// Commits the jobs, and returns the result of each.
    pub(super) fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        let refusal = self.kept.files.refusal(&self.conn, self.clock.steady());
        self.memory.set_in_place(refusal.is_none());
        if let Some(text) = refusal {
            return jobs.iter().map(|_| Some(unavailable(&text))).collect();
        }
        let watch = Stopwatch::start(&self.clock);
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
        control(&self.conn, "BEGIN IMMEDIATE")?;
        let rows_before = self.conn.total_changes();
        let mut batch = Batch::new(&mut self.conn, &mut self.standing, self.clock.read());
        let done = run(&mut batch, jobs).and_then(|failures| {
            kinora_crash::point("store.before_commit");
            let changes = batch.write_sums(jobs.len() as u64, rows_before)?;
            control(batch.conn, "COMMIT")?;
            kinora_crash::point("store.after_commit");
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
                self.memory.publish(batch.into_changes());
                self.kept.mark.write(self.standing.changes);
                Ok(Committed { failures, wrote })
            }
            Err(fault) => {
                batch.undo_to(batch::Mark::default());
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
    for restarts in 0.. {
        let lost = run_each(batch, jobs, &mut failures)?;
        let Some(text) = lost else { break };
        // A full disk, for example, ends the whole transaction: restart it without the culprit.
        batch.undo_to(batch::Mark::default());
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
