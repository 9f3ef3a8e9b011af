//! [`HostedEngine`], the service's side: implements [`Engine`] with a process that is started on
//! demand, reused for the next job, and replaced when it fails.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kinora_contract::{Clock, FailureCode, Stopwatch, VideoSpec, Warning};
use kinora_engine::places::Places;
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineCapabilities, EngineDescription, EngineError,
    FrameJob, JobControl, JobMaterials, WorkStage,
};
use rustix::io::Errno;

use crate::capabilities::find_mismatch;
use crate::family;
use crate::message::{EngineMessage, HostMessage, shorten};
use crate::process::{EngineProcess, Received};
use crate::protocol::{self, EngineHello, EngineIntroduction, OpenRequest};
use crate::run::{
    self, GridSink, JobAssignment, JobOutcome, JobRun, MemoryLimit, MessageRate, MisconductLog,
    ProcessMisconduct, SourcePlaybacks,
};
use crate::sandbox::{self, Confinement};
use crate::seats::{OpenProcess, ProcessSeat, ProcessSeats};
use crate::wire::MessageBounds;

/// How often to check for a cancel while an engine opens.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Options for hosting an engine.
pub struct HostOptions {
    /// Makes the command of a process that calls [`crate::serve`].
    pub command: Box<dyn Fn() -> Command + Send + Sync>,
    /// The first message to such a process.
    pub open: OpenRequest,
    /// Capabilities that the configuration promises for a command. `None`: the command is this
    /// executable, which gets more of a job than the protocol carries and has the engine's own
    /// planner.
    pub promises: Option<EngineCapabilities>,
    /// Devices, one process for each. Empty: `processes` many, which choose their devices
    /// themselves.
    pub devices: Vec<String>,
    /// Maximum number of concurrent jobs, each in its own process with its own engine, if
    /// `devices` is empty. At least 1.
    pub processes: usize,
    /// Maximum time for an engine to open (to load its weights).
    pub open_limit: Duration,
    /// Maximum time of a job, whatever its progress.
    pub run_limit: Duration,
    /// Maximum resident memory of a process before it is killed. `None`: limited only by the
    /// system.
    pub memory_bytes_max: Option<u64>,
    /// Sandbox of the processes. `None`: they may access everything that the service may, with
    /// its environment.
    pub confinement: Option<Confinement>,
    /// Measures limits and pauses.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions")
            .field("open", &self.open.name)
            .field("processes", &self.processes)
            .field("open_limit", &self.open_limit)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("confinement", &self.confinement)
            .finish_non_exhaustive()
    }
}

/// An engine that runs in separate processes.
pub struct HostedEngine {
    planner: Arc<dyn ClipPlanner>,
    options: HostOptions,
    seats: ProcessSeats,
    /// Whether the confinement was already logged.
    is_confinement_logged: AtomicBool,
    remarks: MisconductLog,
    /// Whether jobs contain messages and keys that no engine knows.
    sends_unknowns: AtomicBool,
}

impl HostedEngine {
    /// Hosts the engine described by `planner`. Starts no process before the first job.
    pub fn new(planner: Arc<dyn ClipPlanner>, options: HostOptions) -> Self {
        let devices = if options.devices.is_empty() {
            vec![None; options.processes.max(1)]
        } else {
            options.devices.iter().cloned().map(Some).collect()
        };
        let seats = ProcessSeats::new(devices, options.clock.clone());
        Self {
            planner,
            options,
            seats,
            is_confinement_logged: AtomicBool::new(false),
            remarks: MisconductLog::default(),
            sends_unknowns: AtomicBool::new(false),
        }
    }

    /// Sets whether jobs contain messages and keys of a later protocol version, which an engine
    /// must skip.
    pub fn send_unknowns(&self, are_sent: bool) {
        self.sends_unknowns.store(are_sent, Ordering::Relaxed);
    }

    /// The most severe misbehaviour of a process since the last call, which the results of its
    /// jobs do not show.
    pub fn take_misconduct(&self) -> Option<ProcessMisconduct> {
        self.remarks.take()
    }

    /// Checks whether the engine can be opened, in a process that exits immediately.
    ///
    /// # Errors
    /// The error of opening it.
    pub fn try_open(&self) -> Result<(), EngineError> {
        let device = self.options.devices.first();
        self.start(device, &JobControl::default()).map(drop)
    }

    /// Starts a process, opens the engine, and returns what it says it can do. The process then
    /// exits.
    ///
    /// # Errors
    /// As [`HostedEngine::try_open`].
    pub fn introduction(&self) -> Result<EngineIntroduction, EngineError> {
        let device = self.options.devices.first();
        let ready = self.start(device, &JobControl::default())?;
        Ok(ready.introduction)
    }

    /// Starts a process and opens its engine.
    fn start(
        &self,
        device: Option<&String>,
        control: &JobControl,
    ) -> Result<OpenProcess, EngineError> {
        let name = &self.planner.describe().name;
        let (mut command, confinement) =
            ((self.options.command)(), self.options.confinement.as_ref());
        if let Some(device) = device {
            // Not only in `OpenRequest`: CUDA reads it when the library is loaded, which may precede
            // any message.
            command.env("CUDA_VISIBLE_DEVICES", device);
        }
        let started = EngineProcess::start(name, command, confinement, MessageBounds::default());
        let process = started.map_err(|error| not_started(&error))?;
        tracing::info!(
            engine = name,
            process_id = process.id(),
            "engine process started"
        );
        if let Some(confinement) = confinement {
            process.send(HostMessage::Confine(confinement.clone()));
        }
        let device = device.cloned();
        process.send(HostMessage::Open(Box::new(OpenRequest {
            device,
            ..self.options.open.clone()
        })));
        let mut hello = None;
        let start = Stopwatch::start(&self.options.clock);
        let mut memory =
            MemoryLimit::new(&process, self.options.memory_bytes_max, &self.options.clock);
        let mut rate = MessageRate::from_now(&self.options.clock);
        // Loading weights may take minutes without a message, so memory and message limits apply
        // from the first byte, before there is a job.
        while start.elapsed() < self.options.open_limit {
            memory.check()?;
            // Loading weights sends no progress; `open_limit` applies instead.
            control.report(WorkStage::Preparing, 0.0)?;
            let heard = process.receive(POLL_INTERVAL);
            // Counted before it is interpreted, whatever it is: messages of unknown kinds cost
            // as much.
            if matches!(heard, Received::Message(_)) {
                rate.count()?;
            }
            match heard {
                Received::Message(EngineMessage::Confined(lacking)) => {
                    self.log_confinement(&lacking);
                }
                Received::Message(EngineMessage::Hello(told)) => {
                    self.check_hello(&told)?;
                    hello = Some(told);
                }
                Received::Message(EngineMessage::Opened) => {
                    let Some(hello) = hello else {
                        return Err(protocol_error("it opened without a hello"));
                    };
                    let seconds = start.elapsed().as_secs_f64();
                    let [sdk, version] =
                        [hello.sdk.clone(), hello.engine.version.clone()].map(shorten);
                    tracing::info!(engine = name, sdk, version, seconds, "engine opened");
                    return Ok(OpenProcess {
                        process,
                        introduction: hello.introduction(),
                    });
                }
                Received::Message(EngineMessage::Ended(ending)) => {
                    ending.into_result()?;
                    break;
                }
                Received::Message(_) | Received::Silence => {}
                Received::Closed => return Err(process.post_mortem()),
            }
        }
        Err(EngineError::Crashed {
            code: FailureCode::GenerationTimeout,
            cause: "the engine did not open in time".to_owned(),
        })
    }

    /// Opens a process at this seat ahead of its first job. `opened` counts the processes opened
    /// so far, of `processes`.
    fn warm_seat(
        &self,
        seat: ProcessSeat<'_>,
        opened: &AtomicUsize,
        processes: usize,
        control: &JobControl,
    ) {
        let (engine, device) = (&self.planner.describe().name, seat.device().cloned());
        match self.start(device.as_ref(), control) {
            Ok(ready) => {
                seat.release_with(ready);
                let opened = opened.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::info!(engine, device, opened, processes, "engine process is warm");
            }
            Err(EngineError::Cancelled) => {}
            Err(error) => {
                seat.record_outage(&error.to_string());
                tracing::warn!(
                    engine, device, %error,
                    "engine process did not open; a task will open it again"
                );
            }
        }
    }

    /// The job as it is sent to a process.
    fn assignment<'a>(&self, job: &'a FrameJob<'a>) -> JobAssignment<'a> {
        let promises = self.options.promises;
        JobAssignment {
            job,
            clip: promises.map_or(job.clip, |promises| {
                run::rendered_clip(job.clip, promises.grid)
            }),
            is_own: promises.is_none(),
            is_undecided: self.planner.decides_length(job.spec),
            has_unknowns: self.sends_unknowns.load(Ordering::Relaxed),
        }
    }

    /// Refuses an engine with another major version of the protocol, or without the promised
    /// features.
    fn check_hello(&self, hello: &EngineHello) -> Result<(), EngineError> {
        let (theirs, ours) = (hello.protocol, protocol::VERSION);
        if theirs.major != ours.major {
            return Err(unsuitable(&format!(
                "it speaks version {}.{} of the engine protocol, and this kinora {}.{}",
                theirs.major, theirs.minor, ours.major, ours.minor
            )));
        }
        let promises = self.options.promises;
        match promises.and_then(|promises| find_mismatch(promises, hello)) {
            Some(difference) => Err(unsuitable(&difference)),
            None => Ok(()),
        }
    }

    /// Logs, once, which parts of the sandbox this system lacks.
    fn log_confinement(&self, lacking: &[String]) {
        if !self.is_confinement_logged.swap(true, Ordering::Relaxed) {
            sandbox::log(&self.planner.describe().name, lacking);
        }
    }
}

/// The error for a process that breaks the protocol while it opens.
fn protocol_error(what: &str) -> EngineError {
    EngineError::Failed(format!("the engine cannot be used: {what}"))
}

/// The error for an engine that contradicts the configuration. No other place can help, so the task
/// fails and its client need not wait for the operator.
fn unsuitable(what: &str) -> EngineError {
    EngineError::CodedFailure {
        code: FailureCode::GenerationFailed,
        cause: format!("the engine cannot be used: {what}"),
    }
}

/// The error of a process that could not be opened. Unless the caller or this machine is the cause,
/// the place is at fault and no task: its device may be gone. Too little memory stays the job's
/// failure, which tells the client what to change.
fn not_opened(error: EngineError, seat: &ProcessSeat<'_>) -> EngineError {
    match error {
        EngineError::Cancelled | EngineError::CodedFailure { .. } => error,
        EngineError::OutOfMemory(_)
        | EngineError::Crashed {
            code: FailureCode::OutOfMemory,
            ..
        } => {
            seat.record_outage(&error.to_string());
            error
        }
        error => {
            let cause = error.to_string();
            seat.record_outage(&cause);
            EngineError::NoPlace(cause)
        }
    }
}

/// The error for a process that did not start. If the system is out of descriptors, processes,
/// memory or disk space, the error code blames the system, and the attempt does not count.
fn not_started(error: &io::Error) -> EngineError {
    let cause = format!("engine process could not be started: {error}");
    let is_exhausted = matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::OutOfMemory
            | ErrorKind::WouldBlock
    );
    let errno = Errno::from_io_error(error);
    if is_exhausted || matches!(errno, Some(Errno::MFILE | Errno::NFILE)) {
        let code = FailureCode::StorageFailed;
        return EngineError::CodedFailure { code, cause };
    }
    EngineError::Crashed {
        code: FailureCode::GenerationFailed,
        cause,
    }
}

impl fmt::Debug for HostedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedEngine")
            .field("engine", self.planner.describe())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ClipPlanner for HostedEngine {
    fn describe(&self) -> &EngineDescription {
        self.planner.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.planner.plan(spec, materials)
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        self.planner.decides_length(spec)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.planner.warnings(spec, materials)
    }
}

impl Engine for HostedEngine {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        let (seat, waiting) = self.seats.claim(control)?;
        let ready = match waiting {
            Some(ready) => ready,
            None => {
                let started = self.start(seat.device(), control);
                started.map_err(|error| not_opened(error, &seat))?
            }
        };
        let assignment = self.assignment(job);
        // Declared outside the branch because the borrowed sink must live as long as the run.
        let mut on_grid;
        let sink: &mut dyn ClipSink = if assignment.is_own {
            sink
        } else {
            on_grid = GridSink::new(sink, job, assignment.clip);
            &mut on_grid
        };
        // The process may have been started by another task, or by a warm-up: its log lines
        // belong to this one now.
        ready.process.follow_caller();
        let run = JobRun {
            process: &ready.process,
            yield_limit: ready.introduction.yield_limit,
            assigned: assignment.order_from(&ready.process),
            assignment,
            sink,
            control,
            remarks: &self.remarks,
            memory_bytes_max: self.options.memory_bytes_max,
            limit: self.options.run_limit,
            clock: &self.options.clock,
        };
        match run.run() {
            JobOutcome::Reusable(ended) => {
                seat.release_with(ready);
                ended
            }
            JobOutcome::MustKill(ended) => {
                // Kill the process before the seat is free again: the next one would find the
                // device's memory taken.
                drop(ready);
                if let Err(error @ (EngineError::Crashed { .. } | EngineError::Broken(_))) = &ended
                {
                    seat.record_outage(&error.to_string());
                }
                ended
            }
            JobOutcome::Exited => {
                let error = ready.process.post_mortem();
                seat.record_outage(&error.to_string());
                Err(error)
            }
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(self.seats.places())
    }

    /// Opens a process at every free seat, all at the same time.
    fn warm_up(&self, control: &JobControl) {
        let (engine, seats) = (&self.planner.describe().name, self.seats.claim_cold());
        let (processes, opened) = (seats.len(), AtomicUsize::new(0));
        tracing::info!(engine, processes, "warming up engine");
        thread::scope(|scope| {
            // One thread for each seat: opening blocks for as long as the weights take to load,
            // and devices load at the same time.
            for seat in seats {
                let started = thread::Builder::new()
                    .name("engine-warm-up".to_owned())
                    .spawn_scoped(scope, || self.warm_seat(seat, &opened, processes, control));
                if let Err(error) = started {
                    tracing::warn!(engine, %error, "could not start a thread to open an engine process");
                }
            }
        });
        let opened = opened.into_inner();
        tracing::info!(engine, opened, processes, "engine warmed up");
    }

    /// Ends all idle processes.
    fn unload(&self) {
        for ready in self.seats.take_idle() {
            let process_id = ready.process.id();
            // Waits for the process to exit, so that its memory is free when this returns.
            drop(ready);
            let engine = &self.planner.describe().name;
            tracing::info!(engine, process_id, "idle engine process ended");
        }
    }
}

impl HostedEngine {
    /// Closes the standard input of a process in the middle of `job`, at its first progress, and
    /// returns whether it and its descendants exited within `limit`, as they must when the
    /// service dies. Kills them otherwise. For `kinora engine check`; the service kills its
    /// processes itself.
    ///
    /// # Errors
    /// If no process starts, it exits before, or `control` cancels.
    pub fn ends_with_input(
        &self,
        job: &FrameJob<'_>,
        control: &JobControl,
        limit: Duration,
    ) -> Result<bool, EngineError> {
        let (seat, waiting) = self.seats.claim(control)?;
        let ready = match waiting {
            Some(ready) => ready,
            None => self.start(seat.device(), control)?,
        };
        self.assignment(job).order_from(&ready.process);
        let OpenProcess { mut process, .. } = ready;
        if !reaches_progress(&process, job, control)? {
            return Err(process.post_mortem());
        }
        process.close_input();
        let start = Stopwatch::start(&self.options.clock);
        while start.elapsed() < limit {
            // This loop has its own time limit, so the wait must not count as silence of the job.
            let _ = control.forward_progress(control.progress.fraction());
            if is_gone(&process) {
                return Ok(true);
            }
            // Its output is read on, so that only its input can stop it.
            if matches!(process.receive(POLL_INTERVAL), Received::Closed) {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(false)
    }
}

/// Serves the job until its first sign of progress, or its end; `false` if the process exits before.
fn reaches_progress(
    process: &EngineProcess,
    job: &FrameJob<'_>,
    control: &JobControl,
) -> Result<bool, EngineError> {
    let mut playing = SourcePlaybacks::default();
    while !control.cancel.is_cancelled() {
        match process.receive(POLL_INTERVAL) {
            Received::Closed => return Ok(false),
            Received::Message(
                EngineMessage::Progress(_)
                | EngineMessage::Frame(_)
                | EngineMessage::Audio(_)
                | EngineMessage::Preview(_)
                | EngineMessage::Ended(_),
            ) => return Ok(true),
            Received::Message(EngineMessage::Play(number)) => playing.start(number, job)?,
            Received::Message(EngineMessage::Next(number)) => {
                process.send(playing.answer_next(number));
            }
            Received::Message(EngineMessage::Close(number)) => playing.end(number),
            Received::Message(_) | Received::Silence => {}
        }
    }
    process.send(HostMessage::Cancel);
    Err(EngineError::Cancelled)
}

fn is_gone(process: &EngineProcess) -> bool {
    !process.is_alive() && !family::has_descendants(process.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_has_no_more_to_give_is_told_from_one_that_never_will() {
        let started = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            not_started(&error)
        };
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::AGAIN,
            Errno::NOMEM,
            Errno::NOSPC,
        ] {
            let EngineError::CodedFailure { code, .. } = started(errno) else {
                panic!("{errno} costs an attempt");
            };
            assert_eq!(code, FailureCode::StorageFailed, "{errno}");
        }
        assert!(matches!(started(Errno::NOENT), EngineError::Crashed { .. }));
    }
}
