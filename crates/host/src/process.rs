//! An engine's process as the service has it: started, listened to, told, and in the end buried.
//! Nobody here blocks on its pipes but threads of their own, so that it can always be killed.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use kinora_contract::FailureCode;
use kinora_engine::EngineError;

use crate::memory;
use crate::message::{Message, Order, Told};
use crate::tail::Tail;

/// Messages that wait for the service: enough that neither side waits for the other's turn.
const WAITING_MAX: usize = 2;
/// A process that has closed its output ends soon by itself; its own status tells more than ours.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// A living process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    orders: Sender<Order>,
    told: Receiver<Told>,
    tail: Tail,
    oom_kills_before: Option<u64>,
}

/// What came of listening for a while.
pub(crate) enum Heard {
    Told(Told),
    Nothing,
    /// There will be nothing any more.
    Gone,
}

impl Process {
    /// Starts it for the engine of this name.
    ///
    /// # Errors
    /// When the system does not let it start.
    pub(crate) fn start(engine: &str, mut command: Command) -> io::Result<Self> {
        // A group of its own: Ctrl-C at the service's terminal is the service's alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let oom_kills_before = memory::oom_kills();
        let mut child = command.spawn()?;
        let (orders, ordered) = mpsc::channel();
        let (tell, told) = mpsc::sync_channel(WAITING_MAX);
        let tail = Tail::default();
        if let Some(input) = child.stdin.take() {
            start_thread("engine-orders", move || write_all(input, &ordered))?;
        }
        if let Some(output) = child.stdout.take() {
            start_thread("engine-answers", move || read_all(output, &tell))?;
        }
        if let Some(errors) = child.stderr.take() {
            let (tail, engine) = (tail.clone(), engine.to_owned());
            start_thread("engine-log", move || tail.follow(&engine, errors))?;
        }
        tracing::info!(
            engine,
            process_id = child.id(),
            "an engine's process starts"
        );
        Ok(Self {
            child,
            orders,
            told,
            tail,
            oom_kills_before,
        })
    }

    /// Tells it something. Whether it is still there is learnt by listening.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Listens for up to `wait`.
    pub(crate) fn listen(&self, wait: Duration) -> Heard {
        match self.told.recv_timeout(wait) {
            Ok(told) => Heard::Told(told),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Gone,
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        memory::resident_bytes(self.child.id())
    }

    /// Why it is gone, of its own accord.
    pub(crate) fn post_mortem(mut self) -> EngineError {
        let status = self.last_status();
        let how = status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
        let code = if self.tail.speaks_of_memory() || self.was_ended_for_memory(status) {
            FailureCode::OutOfMemory
        } else {
            FailureCode::GenerationFailed
        };
        EngineError::Crashed {
            code,
            cause: format!("{how}: {}", self.tail.text()),
        }
    }

    fn last_status(&mut self) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < LAST_BREATH {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Whether the kernel ended it for want of memory. It might have been another process in the
    /// same moment; a kill by hand does not move the counter.
    fn was_ended_for_memory(&self, status: Option<ExitStatus>) -> bool {
        #[cfg(unix)]
        let killed = status.is_some_and(|status| {
            std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
        });
        #[cfg(not(unix))]
        let killed = status.is_some();
        killed && self.oom_kills_before < memory::oom_kills()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

fn write_all(mut to: impl Write, ordered: &Receiver<Order>) {
    while let Ok(order) = ordered.recv() {
        if order.write(&mut to).is_err() {
            return;
        }
    }
}

fn read_all(mut from: impl Read, tell: &SyncSender<Told>) {
    loop {
        match Told::read(&mut from) {
            Ok(Some(told)) => {
                if tell.send(told).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "an engine's process does not make sense");
                return;
            }
        }
    }
}
