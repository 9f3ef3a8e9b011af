//! A child process: spawns it with a restricted environment, writes orders to it, reads its
//! messages, logs its standard error, and kills and reaps it with every process that it started.
//! Only dedicated threads block on its pipes, so it can always be killed.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kinora_contract::FailureCode;
use kinora_engine::EngineError;
use kinora_system::process;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tracing::Span;

use crate::family;
use crate::message::{EngineMessage, HostMessage};
use crate::sandbox::{Confinement, SandboxRole, clear_environment, order_devices_by_bus};
use crate::wire::{MessageBounds, WireMessage};

/// Capacity of the queue of messages to the service: one being handled and one ready, so that
/// neither side waits for the other.
const WAITING_MAX: usize = 2;
/// The maximum that the system grants to any user (pipe(7), `pipe-max-size`).
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// How long to wait for a process that has closed its output: its own exit status explains more than
/// a kill would.
const EXIT_GRACE: Duration = Duration::from_secs(1);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Number of processes that this one has started, for their marks.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A running process that takes orders `O` and sends messages `T`. Dropping this kills it.
#[derive(Debug)]
pub(crate) struct ChildProcess<O, T> {
    child: Child,
    orders: Sender<O>,
    /// Number of orders queued so far, and of those written to the pipe.
    queued: AtomicUsize,
    written: Arc<AtomicUsize>,
    messages: Receiver<T>,
    bounds: Arc<MessageBounds>,
    tail: LogTail,
    /// Reads the tail until its pipe is closed.
    log: Option<JoinHandle<()>>,
    job_span: JobSpan,
    oom_kills_before: Option<u64>,
    /// Mark of a process and its descendants; `None` if it is confined and can start none.
    mark: Option<String>,
    is_reaped: bool,
}

/// An engine process.
pub(crate) type EngineProcess = ChildProcess<HostMessage, EngineMessage>;

/// The result of listening for a while.
pub(crate) enum Received<T> {
    Message(T),
    Silence,
    /// The output has ended.
    Closed,
}

impl<O: WireMessage, T: WireMessage> ChildProcess<O, T> {
    /// Starts the process; the log uses `name`. A confined one gets only the allowed environment
    /// variables, and its scratch folder is created.
    ///
    /// # Errors
    /// If the system cannot start it, or the folder cannot be created.
    pub(crate) fn start(
        name: &str,
        mut command: Command,
        confinement: Option<&Confinement>,
        bounds: MessageBounds,
    ) -> io::Result<Self> {
        // A separate process group: Ctrl-C at the service's terminal reaches only the service.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        if let Some(confinement) = confinement {
            let scratch = confinement.scratch.as_deref();
            scratch.map(make_scratch).transpose()?;
            clear_environment(&mut command, scratch);
        }
        // Most sandboxed processes cannot start others. The rest need a mark by which to find descendants that have left
        // their process group.
        let starts_programs =
            confinement.is_none_or(|confinement| confinement.role == SandboxRole::Server);
        let mark = starts_programs.then(|| {
            let (name, mark) = family::mark(STARTED.fetch_add(1, Ordering::Relaxed));
            command.env(name, &mark);
            mark
        });
        order_devices_by_bus(&mut command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let oom_kills_before = process::oom_kills();
        let mut child = command.spawn()?;
        // Two queues of different kinds. Orders are unbounded and written by a thread, because
        // the caller must never block on a pipe that a hung process does not read: it could then
        // neither cancel nor kill it. Messages are bounded, so an engine that renders faster
        // than the encoder takes frames blocks on its own pipe instead of filling the service's
        // memory.
        let (orders, ordered) = mpsc::channel();
        let (tell, told) = mpsc::sync_channel(WAITING_MAX);
        let (tail, job_span) = (LogTail::default(), JobSpan::current());
        let (written, bounds) = (Arc::<AtomicUsize>::default(), Arc::new(bounds));
        let input = child.stdin.take();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        // From here on, an early return kills the child.
        let mut this = Self {
            child,
            orders,
            queued: AtomicUsize::new(0),
            written: written.clone(),
            messages: told,
            bounds: bounds.clone(),
            tail: tail.clone(),
            log: None,
            job_span: job_span.clone(),
            oom_kills_before,
            mark,
            is_reaped: false,
        };
        if let Some(input) = input {
            start_thread("child-orders", move || {
                write_all(input, &ordered, &written);
            })?;
        }
        if let Some(output) = output {
            widen(&output);
            let job_span = job_span.clone();
            start_thread("child-answers", move || {
                read_all(output, &tell, &bounds, &job_span);
            })?;
        }
        if let Some(errors) = errors {
            let name = name.to_owned();
            let log = start_thread("child-log", move || tail.collect(&name, errors, &job_span));
            this.log = Some(log?);
        }
        tracing::debug!(name, process_id = this.child.id(), "child process started");
        Ok(this)
    }

    /// Log lines about this process belong to the caller's span from now on.
    pub(crate) fn follow_caller(&self) {
        self.job_span.follow_caller();
    }

    /// Queues an order. If the process is gone, listening will say so.
    pub(crate) fn send(&self, order: O) {
        // Counted before it is sent: `written` must never overtake `queued`.
        self.queued.fetch_add(1, Ordering::AcqRel);
        let _ = self.orders.send(order);
    }

    /// Closes its standard input once all queued orders are written.
    pub(crate) fn close_input(&mut self) {
        // The thread that writes ends with the other sender.
        self.orders = mpsc::channel().0;
    }

    /// Number of orders queued so far.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    /// Number of orders after the first `first` that the process has not taken yet.
    pub(crate) fn untaken_after(&self, first: usize) -> usize {
        // An order counts as taken once it is written to the pipe. The pipe of standard input
        // keeps its default size (64 KiB on Linux), which is less than a frame, so a frame is
        // written only while the process reads it.
        let taken = self.written.load(Ordering::Acquire);
        self.queued().saturating_sub(taken.max(first))
    }

    /// Whether the process has taken every order.
    pub(crate) fn has_taken_all(&self) -> bool {
        self.untaken_after(0) == 0
    }

    /// The limits on its messages.
    pub(crate) fn bounds(&self) -> &MessageBounds {
        &self.bounds
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits up to `wait` for a message.
    pub(crate) fn receive(&self, wait: Duration) -> Received<T> {
        match self.messages.recv_timeout(wait) {
            Ok(told) => Received::Message(told),
            Err(RecvTimeoutError::Timeout) => Received::Silence,
            Err(RecvTimeoutError::Disconnected) => Received::Closed,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.has_exited()
    }

    /// Whether the process has exited. Does not reap it, so that its process id and group id are
    /// not reused.
    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let found = self.pid().map(|pid| waitid(WaitId::Pid(pid), options));
        !matches!(found, Some(Ok(None)))
    }

    /// Resident memory in bytes of the process and its descendants.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        match self.mark {
            None => process::resident_bytes(self.child.id()),
            Some(_) => family::family_resident_bytes(self.child.id()),
        }
    }

    /// The error for a process that exited on its own.
    pub(crate) fn post_mortem(mut self) -> EngineError {
        let status = self.last_status();
        let how = status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
        let code = if self.tail.reports_exhausted_memory()
            || process::was_killed_for_memory(status, self.oom_kills_before)
        {
            FailureCode::OutOfMemory
        } else {
            FailureCode::GenerationFailed
        };
        EngineError::Crashed {
            code,
            cause: format!("{how}: {}", self.tail.text()),
        }
    }

    /// The last lines of its standard error, joined.
    pub(crate) fn last_lines(&self) -> String {
        self.tail.text()
    }

    /// Reaps it if it exits within the grace period, after its last lines are read.
    pub(crate) fn last_status(&mut self) -> Option<ExitStatus> {
        for _ in 0..EXIT_GRACE.as_millis() / EXIT_POLL_INTERVAL.as_millis() {
            if self.has_exited() {
                // Kill before reaping: an unreaped leader keeps the id of its process group from
                // being given to another process.
                self.kill_family();
                self.await_log();
                self.is_reaped = true;
                return self.child.wait().ok();
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
        None
    }

    /// Nobody writes to the pipe any more, but the last lines may still be in it.
    fn await_log(&self) {
        for _ in 0..EXIT_GRACE.as_millis() / EXIT_POLL_INTERVAL.as_millis() {
            if self.log.as_ref().is_none_or(JoinHandle::is_finished) {
                return;
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
    }
}

impl<O, T> ChildProcess<O, T> {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Kills the process and its descendants. Call it before reaping: afterwards the ids may
    /// belong to others.
    fn kill_family(&mut self) {
        if let Some(mark) = &self.mark {
            family::kill_tree(self.child.id(), mark);
        }
        if let Some(pid) = self.pid() {
            // Fails only if all are gone.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl<O, T> Drop for ChildProcess<O, T> {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill_family();
            let _ = self.child.wait();
        }
    }
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Creates a folder for a process, accessible only to its owner.
///
/// # Errors
/// If it cannot be created.
pub fn make_scratch(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Frames are megabytes: a larger pipe saves context switches. A failure does no harm.
fn widen(pipe: &ChildStdout) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

fn write_all<O: WireMessage>(mut to: impl Write, ordered: &Receiver<O>, written: &AtomicUsize) {
    while let Ok(order) = ordered.recv() {
        if order.write(&mut to).is_err() {
            return;
        }
        written.fetch_add(1, Ordering::AcqRel);
    }
}

fn read_all<T: WireMessage>(
    mut from: impl Read,
    tell: &SyncSender<T>,
    bounds: &MessageBounds,
    job_span: &JobSpan,
) {
    loop {
        // After an invalid message the position in the stream is unknown, so reading cannot
        // resume: the thread ends, its sender with it, and the listener sees the process as
        // gone.
        match T::read(&mut from, bounds) {
            Ok(Some(told)) => {
                if tell.send(told).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                job_span.log(|| tracing::warn!(%error, "child process sent an invalid message"));
                return;
            }
        }
    }
}

const LINES: usize = 12;
const LINE_BYTES_MAX: u64 = 1_000;

/// How libraries report exhausted memory, in lower case.
const OUT_OF_MEMORY: &[&str] = &[
    "out of memory",
    "bad_alloc",
    "failed to allocate",
    "memory allocation of",
    "cannot allocate memory",
];

/// The last few lines, shared with the thread that reads them.
#[derive(Clone, Debug, Default)]
struct LogTail(Arc<Mutex<VecDeque<String>>>);

impl LogTail {
    /// Stores and logs lines until the end of the stream.
    fn collect(&self, engine: &str, from: impl Read, job_span: &JobSpan) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            // Native code may print progress bars without a line break for hours: read bounded pieces,
            // so that a longer line counts as several.
            match from
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                continue;
            }
            job_span.log(|| tracing::debug!(engine, "{line}"));
            let mut lines = self.lines();
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    /// The lines, joined.
    fn text(&self) -> String {
        Vec::from(self.lines().clone()).join(" | ")
    }

    /// Whether the lines report exhausted memory.
    fn reports_exhausted_memory(&self) -> bool {
        let text = self.text().to_lowercase();
        OUT_OF_MEMORY.iter().any(|words| text.contains(words))
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The span of the current job, shared by the threads that log for a process: they outlive a
/// job, and each line must name the task that it belongs to.
#[derive(Clone, Debug)]
struct JobSpan(Arc<Mutex<Span>>);

impl JobSpan {
    /// The span of the caller.
    fn current() -> Self {
        Self(Arc::new(Mutex::new(Span::current())))
    }

    /// Switches to the caller's span. It stays set after the job, because its last lines may
    /// arrive late.
    fn follow_caller(&self) {
        *self.lock() = Span::current();
    }

    /// Logs a line in the job's span.
    fn log(&self, line: impl FnOnce()) {
        // Do not hold the lock while a subscriber formats and writes the line.
        let span = self.lock().clone();
        span.in_scope(line);
    }

    fn lock(&self) -> MutexGuard<'_, Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_long_ones_cut() {
        let text: String = (0..40).map(|line| format!("line {line}\n\n")).collect();
        let tail = LogTail::default();
        let span = JobSpan::current();
        tail.collect("engine", (text + &"x".repeat(2_500)).as_bytes(), &span);
        let kept = tail.text();
        assert!(kept.starts_with("line 31 | "), "{kept}");
        assert!(!kept.contains("line 30"));
        assert!(kept.ends_with(&format!(" | {}", "x".repeat(500))));
        assert!(!tail.reports_exhausted_memory());
        let last = &b"CUDA error: out of memory at ggml-cuda.cu"[..];
        tail.collect("engine", last, &span);
        assert!(tail.reports_exhausted_memory());
    }
}
