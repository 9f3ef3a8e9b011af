//! The engine under a check: a job without progress is ended as by the service, and what the results of jobs do not say
//! about the process is put into words for its author.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials,
};
use kinora_engine_host::{HostedEngine, ProcessMisconduct};

use crate::system;

/// Time between looks at the progress.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum lifetime of a process after the end of its input. It must end at once, but the system
/// takes a moment to release the memory of a device.
const END_OF_INPUT_LIMIT: Duration = Duration::from_secs(10);

/// A remark on the conduct of a process that the results of its jobs do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConductRemark {
    Nothing,
    /// A stopped job was over before the process could obey.
    DoneBeforeCancel,
    /// A fault, in words for the engine's author.
    Fault(String),
}

pub(super) struct WatchedEngine {
    engine: HostedEngine,
    yield_limit: Duration,
    silence_max: Duration,
    was_silent: AtomicBool,
}

impl WatchedEngine {
    pub(super) const fn new(
        engine: HostedEngine,
        yield_limit: Duration,
        silence_max: Duration,
    ) -> Self {
        Self {
            engine,
            yield_limit,
            silence_max,
            was_silent: AtomicBool::new(false),
        }
    }

    pub(super) const fn engine(&self) -> &HostedEngine {
        &self.engine
    }

    /// Whether a job made no progress for too long. Later ones would take as long to fail.
    pub(super) fn was_silent(&self) -> bool {
        self.was_silent.load(Ordering::Acquire)
    }

    /// Whether a process ends with its input in the middle of this job.
    pub(super) fn ends_with_input(&self, job: &FrameJob<'_>) -> Result<bool, EngineError> {
        let control = JobControl::default();
        self.watch(&control, || {
            let engine = &self.engine;
            engine.ends_with_input(job, &control, END_OF_INPUT_LIMIT)
        })
    }

    /// The remark on the process's conduct since the last call.
    pub(super) fn evaluate_conduct(&self) -> ConductRemark {
        let conduct = self.engine.take_misconduct();
        let seconds = self.yield_limit.as_secs_f64();
        // Silence first: the job was cancelled because of it, and what followed would read like a
        // fault of its own.
        if self.was_silent() {
            let silence = self.silence_max.as_secs();
            let text = format!(
                "no progress for {silence} s: the job was ended. Send `p` or `f` while the work advances, declare a phase \
                 (`g`) for long silent work, or raise --silence-seconds, and host.silence_seconds of the service"
            );
            return ConductRemark::Fault(text);
        }
        let fault = match conduct {
            Some(ProcessMisconduct::IgnoredCancel) => format!(
                "no end of the job within {seconds} s of a cancel: the process was killed. Read messages while a job runs, and \
                 send `e` after a `c`; `yield_seconds` of the hello allows up to 30 s"
            ),
            Some(ProcessMisconduct::ExitedAfterCancel) => {
                "the process exited after a cancel without an end of the job (`e`)".to_owned()
            }
            Some(ProcessMisconduct::LeftOrdersUnread) => format!(
                "messages of the job still unread {seconds} s after its end: the process was killed. Read a job and its \
                 materials to the end, even if you refuse it"
            ),
            Some(ProcessMisconduct::DoneAfterCancel) => return ConductRemark::DoneBeforeCancel,
            None => return ConductRemark::Nothing,
        };
        ConductRemark::Fault(fault)
    }

    /// Cancels the work once it makes no progress for too long.
    fn watch<T>(&self, control: &JobControl, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            // The sender is dropped with this scope, even on a panic.
            let (_at_work, left) = mpsc::channel::<()>();
            scope.spawn(move || self.watch_progress(control, &left));
            work()
        })
    }

    fn watch_progress(&self, control: &JobControl, left: &Receiver<()>) {
        // As the service does: any report counts as progress, so that an engine which loads for
        // minutes and says so is not ended.
        let mut still = system::stopwatch();
        let mut seen = control.progress.reports();
        while left.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let reports = control.progress.reports();
            if reports != seen {
                seen = reports;
                still.restart();
            } else if still.elapsed() >= self.silence_max {
                self.was_silent.store(true, Ordering::Release);
                control.cancel.cancel();
                return;
            }
        }
    }
}

impl ClipPlanner for WatchedEngine {
    fn describe(&self) -> &EngineDescription {
        self.engine.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.engine.plan(spec, materials)
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        self.engine.decides_length(spec)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.engine.warnings(spec, materials)
    }
}

impl Engine for WatchedEngine {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        self.watch(control, || self.engine.generate(job, sink, control))
    }

    fn unload(&self) {
        self.engine.unload();
    }
}
