//! One job in an engine process, from the service's side: sends the job, forwards its output
//! (cropped to the planned clip), answers its requests for source frames, and kills a process that
//! ignores a cancel, sends too many messages or uses too much memory. It starts no process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kinora_contract::limits::{ENGINE_MESSAGES_MAX, ENGINE_MESSAGES_PER_SECOND_MAX};
use kinora_contract::{Clock, FailureCode, Stopwatch};
use kinora_engine::{
    ClipPlan, ClipSink, EngineError, FrameCrop, FrameJob, FrameSelection, JobControl, RenderGrid,
    VideoPlayback,
};

use crate::materials::{self, bytes_to_samples};
use crate::message::{EngineMessage, HostMessage, shorten};
use crate::process::{EngineProcess, Received};
use crate::protocol::{JobEnding, LengthDecision};

/// How often to check for a cancel while there is no output.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of times a source may play at once, and in total per job.
const PLAYING_MAX: usize = 4;
const PLAYS_MAX: u32 = 16;
/// Maximum number of answers waiting to be taken: one in transit while the next is requested.
const UNTAKEN_MAX: usize = 2;

/// Outcome of a job, and whether its process can be reused.
pub(crate) enum JobOutcome {
    /// The process can take another job.
    Reusable(Result<(), EngineError>),
    /// The process must be killed: it ignored a cancel or its orders, or still holds memory.
    MustKill(Result<(), EngineError>),
    /// The process died.
    Exited,
}

pub(crate) struct JobRun<'a> {
    pub process: &'a EngineProcess,
    /// How long the process may take to obey a cancel.
    pub yield_limit: Duration,
    pub assignment: JobAssignment<'a>,
    /// Number of orders up to the end of the assignment. They do not count as unanswered requests: an
    /// engine may request frames before it has read all its materials.
    pub assigned: usize,
    pub sink: &'a mut dyn ClipSink,
    pub control: &'a JobControl,
    pub remarks: &'a MisconductLog,
    pub memory_bytes_max: Option<u64>,
    /// Maximum time of the job, whatever its progress.
    pub limit: Duration,
    pub clock: &'a Arc<dyn Clock>,
}

impl<'a> JobRun<'a> {
    fn memory(&self) -> MemoryLimit<'a> {
        MemoryLimit::new(self.process, self.memory_bytes_max, self.clock)
    }

    /// Runs the job to its end.
    pub(crate) fn run(mut self) -> JobOutcome {
        let (mut playing, mut silence) = (SourcePlaybacks::default(), DeclaredSilence::default());
        let mut memory = self.memory();
        let (begun, mut rate) = (
            Stopwatch::start(self.clock),
            MessageRate::from_now(self.clock),
        );
        loop {
            // Checked once per message, not only in silence: an engine that sends frames without
            // pause must not outrun a cancel or its time limit.
            if self.control.cancel.is_cancelled() {
                return self.stop(EngineError::Cancelled);
            }
            if begun.elapsed() >= self.limit {
                return self.stop(EngineError::CodedFailure {
                    code: FailureCode::GenerationTimeout,
                    cause: "the job took longer than host.run_seconds".to_owned(),
                });
            }
            if let Err(error) = memory.check() {
                return JobOutcome::MustKill(Err(error));
            }
            match self.process.receive(POLL_INTERVAL) {
                Received::Silence => {}
                Received::Closed => return JobOutcome::Exited,
                Received::Message(EngineMessage::Ended(ending)) => {
                    return self.outcome_of(ending.into_result());
                }
                Received::Message(told) => {
                    let counted = rate.count();
                    let passed = counted
                        .and_then(|()| self.handle_message(told, &mut playing, &mut silence));
                    if let Err(error) = passed {
                        return match error {
                            // The process itself misbehaved: kill it without asking. Any other
                            // error (a full disk, a failing encoder) is ours, and the engine
                            // gets the chance to stop cleanly and serve the next job.
                            EngineError::Crashed { .. } => JobOutcome::MustKill(Err(error)),
                            error => self.stop(error),
                        };
                    }
                }
            }
        }
    }

    fn handle_message(
        &mut self,
        told: EngineMessage,
        playing: &mut SourcePlaybacks,
        silence: &mut DeclaredSilence,
    ) -> Result<(), EngineError> {
        // Signs of life first. They count as progress only during a declared phase: otherwise an
        // engine whose keep-alive thread runs on while its work hangs would never be stopped.
        // Any message about the work itself ends the phase.
        match told {
            EngineMessage::Alive => {
                return if silence.is_allowed() {
                    self.record_progress()
                } else {
                    Ok(())
                };
            }
            EngineMessage::Phase(phase) => {
                tracing::debug!(
                    phase = shorten(phase.name.clone()),
                    "engine declared a phase"
                );
                silence.allow(phase.limit(), self.clock);
                return Ok(());
            }
            EngineMessage::Unknown => return Ok(()),
            _ => silence.end(),
        }
        match told {
            EngineMessage::Decided(LengthDecision { frames }) => self.sink.decide(frames)?,
            EngineMessage::Progress(fraction) => self.control.forward_progress(fraction)?,
            EngineMessage::Preview(picture) => {
                self.control.preview.show(picture);
                self.record_progress()?;
            }
            EngineMessage::Frame(rgb) => {
                self.sink.frame(&rgb)?;
                self.record_progress()?;
            }
            EngineMessage::Audio(pcm) => {
                self.sink.audio(&bytes_to_samples(&pcm))?;
                self.record_progress()?;
            }
            EngineMessage::Play(number) => playing.start(number, self.assignment.job)?,
            EngineMessage::Next(number) => {
                // An engine requests a frame after taking the previous one. Frames wait here until
                // taken, so an engine that only sends requests would fill the service's memory.
                if !self.may_answer() {
                    return Err(violation("it requests frames without taking them"));
                }
                self.process.send(playing.answer_next(number));
            }
            EngineMessage::Close(number) => playing.end(number),
            EngineMessage::Confined(_)
            | EngineMessage::Hello(_)
            | EngineMessage::Opened
            | EngineMessage::Alive
            | EngineMessage::Phase(_)
            | EngineMessage::Unknown
            | EngineMessage::Ended(_) => {}
        }
        Ok(())
    }

    /// Records progress for a message that states no fraction.
    fn record_progress(&self) -> Result<(), EngineError> {
        self.control
            .forward_progress(self.control.progress.fraction())
    }

    /// Requests a stop and waits briefly for it.
    fn stop(&self, because: EngineError) -> JobOutcome {
        self.process.send(HostMessage::Cancel);
        let start = Stopwatch::start(self.clock);
        let mut memory = self.memory();
        while start.elapsed() < self.yield_limit {
            if let Err(error) = memory.check() {
                tracing::warn!(%error, "engine process killed while it ended a cancelled job");
                return JobOutcome::MustKill(Err(because));
            }
            match self.process.receive(POLL_INTERVAL) {
                Received::Message(EngineMessage::Ended(ending)) => {
                    if ending == JobEnding::Done {
                        self.remarks.record(ProcessMisconduct::DoneAfterCancel);
                    }
                    return self.outcome_of(Err(because));
                }
                // An engine that waits for a frame of its source cannot see the cancel: answer,
                // so that it returns from the wait.
                Received::Message(EngineMessage::Next(_)) if self.may_answer() => {
                    self.process.send(HostMessage::Unreadable);
                }
                Received::Message(_) | Received::Silence => {}
                Received::Closed => {
                    self.remarks.record(ProcessMisconduct::ExitedAfterCancel);
                    return JobOutcome::MustKill(Err(because));
                }
            }
        }
        let seconds = self.yield_limit.as_secs_f64();
        tracing::warn!(
            seconds,
            "engine process killed: it did not end a cancelled job in time"
        );
        self.remarks.record(ProcessMisconduct::IgnoredCancel);
        JobOutcome::MustKill(Err(because))
    }

    /// Decides whether the process can be reused after a job that it ended itself.
    fn outcome_of(&self, result: Result<(), EngineError>) -> JobOutcome {
        // Out of memory: allocators and GPU runtimes keep what they reserved, so only the end of the
        // process frees it for the next attempt. Broken: the engine itself asked to be replaced.
        let must_end = matches!(
            result,
            Err(EngineError::OutOfMemory(_) | EngineError::Broken(_))
        );
        if !must_end && self.has_taken_all() {
            JobOutcome::Reusable(result)
        } else {
            JobOutcome::MustKill(result)
        }
    }

    fn may_answer(&self) -> bool {
        self.process.untaken_after(self.assigned) <= UNTAKEN_MAX
    }

    /// Waits briefly for the process to take its orders. Materials wait here until taken, so an
    /// engine that ends each job unread would fill the service's memory.
    fn has_taken_all(&self) -> bool {
        let start = Stopwatch::start(self.clock);
        while !self.process.has_taken_all() {
            if start.elapsed() >= self.yield_limit {
                tracing::warn!("engine process killed: it did not read its orders");
                self.remarks.record(ProcessMisconduct::LeftOrdersUnread);
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }
}

/// A long silent phase declared by the engine, with its time limit: until it ends, keep-alive
/// messages count as progress. Example: an engine that compiles kernels for 90 s declares a
/// phase of 120 s, then sends only keep-alives until its first frame.
#[derive(Default)]
struct DeclaredSilence(Option<(Stopwatch, Duration)>);

impl DeclaredSilence {
    fn allow(&mut self, limit: Duration, clock: &Arc<dyn Clock>) {
        self.0 = Some((Stopwatch::start(clock), limit));
    }

    fn is_allowed(&self) -> bool {
        let declared = self.0.as_ref();
        declared.is_some_and(|(begun, limit)| begun.elapsed() < *limit)
    }

    fn end(&mut self) {
        self.0 = None;
    }
}

/// The error for a protocol violation; the process is killed.
fn violation(what: &str) -> EngineError {
    EngineError::Crashed {
        code: FailureCode::GenerationFailed,
        cause: format!("engine process killed: {what}"),
    }
}

/// The playing sources of a job, by the numbers that the engine process assigned.
#[derive(Default)]
pub(crate) struct SourcePlaybacks {
    by_number: BTreeMap<u32, Box<dyn VideoPlayback>>,
    begun: u32,
}

impl SourcePlaybacks {
    /// Starts another one. Each has its own decoder, and engines play a source once or twice.
    pub(crate) fn start(&mut self, number: u32, job: &FrameJob<'_>) -> Result<(), EngineError> {
        self.begun += 1;
        if self.by_number.len() >= PLAYING_MAX || self.begun > PLAYS_MAX {
            return Err(violation("it plays its source too many times"));
        }
        let source = job.materials.source.as_ref();
        if let Some(Ok(playback)) = source.map(|source| source.play()) {
            self.by_number.insert(number, playback);
        }
        Ok(())
    }

    pub(crate) fn answer_next(&mut self, number: u32) -> HostMessage {
        let playing = self.by_number.get_mut(&number);
        match playing.map(|playback| playback.next_frame()) {
            Some(Ok(Some(rgb))) => HostMessage::Frame(rgb),
            Some(Ok(None)) => HostMessage::NoFrame,
            Some(Err(_)) | None => HostMessage::Unreadable,
        }
    }

    pub(crate) fn end(&mut self, number: u32) {
        self.by_number.remove(&number);
    }
}

/// A job as it is sent to an engine process: the head, then its materials.
#[derive(Clone, Copy)]
pub(crate) struct JobAssignment<'a> {
    pub job: &'a FrameJob<'a>,
    /// The clip as the engine renders it.
    pub clip: ClipPlan,
    /// Whether the engine is built into this executable.
    pub is_own: bool,
    /// Whether the engine decides how many frames the clip has.
    pub is_undecided: bool,
    /// Whether to add messages and keys of a later protocol version, which the engine must skip.
    pub has_unknowns: bool,
}

impl JobAssignment<'_> {
    /// Queues the job, and limits what the process may send for it. Returns the number of orders that
    /// the process has been given so far.
    pub(crate) fn order_from(&self, process: &EngineProcess) -> usize {
        let mut head = materials::job_head(self.job, self.clip, self.is_own);
        if self.is_undecided {
            head.clip = head.clip.with_open_length();
        }
        head.unknown = self.has_unknowns.then_some(true);
        // Before the job is queued: the reader checks each frame's length against these limits,
        // and the first frame may arrive at once.
        process.bounds().set_clip(head.clip);
        let order_unknown = || {
            if self.has_unknowns {
                process.send(HostMessage::Unknown);
            }
        };
        // In `kinora engine check`: a message of a later version before, between and after the
        // real ones, which an engine must skip wherever it appears.
        order_unknown();
        process.send(HostMessage::Job(Box::new(head)));
        order_unknown();
        for bytes in materials::material_bytes(self.job.materials) {
            process.send(HostMessage::Material(bytes));
        }
        order_unknown();
        process.queued()
    }
}

/// Time between checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Limit on the resident memory of an engine process and its descendants, from its start to its
/// end.
pub(crate) struct MemoryLimit<'a> {
    process: &'a EngineProcess,
    /// Maximum resident bytes. `None`: limited only by the system.
    most: Option<u64>,
    checked: Stopwatch,
}

impl<'a> MemoryLimit<'a> {
    pub(crate) fn new(
        process: &'a EngineProcess,
        most: Option<u64>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self {
            process,
            most,
            checked: Stopwatch::start(clock),
        }
    }

    /// Checks the limit if the interval has passed. After an error the process must be killed.
    ///
    /// # Errors
    /// [`EngineError::Crashed`] with `out_of_memory`.
    pub(crate) fn check(&mut self) -> Result<(), EngineError> {
        let Some(most) = self
            .most
            .filter(|_| self.checked.elapsed() >= CHECK_INTERVAL)
        else {
            return Ok(());
        };
        self.checked.restart();
        // Reading `/proc` for a whole process tree takes milliseconds, hence the interval. An
        // engine can exceed the limit for up to 250 ms; the system's own limits guard against
        // worse.
        match self.process.resident_bytes() {
            Some(held) if held > most => Err(EngineError::Crashed {
                code: FailureCode::OutOfMemory,
                cause: format!("killed at {held} bytes of memory, of {most} allowed"),
            }),
            _ => Ok(()),
        }
    }
}

/// Limit on the number of messages in one job, or while an engine opens: far more than any engine
/// needs, and few enough that reading them costs the service little.
pub(crate) struct MessageRate {
    messages: u64,
    begun: Stopwatch,
}

impl MessageRate {
    pub(crate) fn from_now(clock: &Arc<dyn Clock>) -> Self {
        Self {
            messages: 0,
            begun: Stopwatch::start(clock),
        }
    }

    /// Counts a message.
    ///
    /// # Errors
    /// [`EngineError::Crashed`] for one too many; the process must be killed.
    pub(crate) fn count(&mut self) -> Result<(), EngineError> {
        self.messages += 1;
        // A fixed allowance plus a rate: short bursts pass, and a job of an hour may send more
        // than one of a second.
        let more = self.begun.elapsed().as_secs() * ENGINE_MESSAGES_PER_SECOND_MAX;
        if self.messages > ENGINE_MESSAGES_MAX + more {
            return Err(EngineError::Crashed {
                code: FailureCode::GenerationFailed,
                cause: "engine process killed: it sends too many messages".to_owned(),
            });
        }
        Ok(())
    }
}

/// Misbehaviour of a process that the result of its job does not show, in ascending order of
/// severity. The service does not mind (the next job starts a new process), but `kinora engine
/// check` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessMisconduct {
    /// A cancelled job ended as done: the work was over before the cancel took effect.
    DoneAfterCancel,
    /// The process did not read its orders after the end of a job, and was killed.
    LeftOrdersUnread,
    /// The process exited after a cancel, without an end of the job.
    ExitedAfterCancel,
    /// No end of the job within the time for a cancel; the process was killed.
    IgnoredCancel,
}

/// The most severe misbehaviour since the last call of `take`.
#[derive(Debug, Default)]
pub(crate) struct MisconductLog(Mutex<Option<ProcessMisconduct>>);

impl MisconductLog {
    fn record(&self, conduct: ProcessMisconduct) {
        let mut gravest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The variants are in ascending order of severity, and `None` is below all of them.
        *gravest = (*gravest).max(Some(conduct));
    }

    pub(crate) fn take(&self) -> Option<ProcessMisconduct> {
        let mut gravest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gravest.take()
    }
}

/// The clip that the engine renders for `clip`.
pub(crate) fn rendered_clip(clip: ClipPlan, grid: RenderGrid) -> ClipPlan {
    ClipPlan {
        size: grid.size(clip.size),
        frames: grid.frames(clip.frames),
        ..clip
    }
}

/// Adapts an engine that renders on its own grid to the planned clip: crops its larger frames
/// centrally, and drops those beyond the clip.
pub(crate) struct GridSink<'a> {
    sink: &'a mut dyn ClipSink,
    rendered: ClipPlan,
    crop: FrameCrop,
    keep: FrameSelection,
    received: u32,
    delivered: u32,
}

impl<'a> GridSink<'a> {
    pub(crate) fn new(sink: &'a mut dyn ClipSink, job: &FrameJob<'_>, rendered: ClipPlan) -> Self {
        let frames = job.clip.frames;
        Self {
            sink,
            rendered,
            crop: FrameCrop::middle(job.clip.size, rendered.size),
            // Frames beyond the requested length are cut off, unless the last one was given.
            keep: match job.materials.last_frame {
                Some(_) => FrameSelection::Spread(frames),
                None => FrameSelection::First(frames),
            },
            received: 0,
            delivered: 0,
        }
    }
}

impl ClipSink for GridSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        if frames == 0 || frames > self.rendered.frames {
            return Err(violation(
                "it decided for a length that its job does not allow",
            ));
        }
        if self.received > 0 {
            return Err(violation("it decided the length after the first frame"));
        }
        // The engine decides on its own grid, which may exceed what the client asked for:
        // recompute how many of those frames are delivered.
        self.rendered.frames = frames;
        self.keep = self.keep.at_most(frames);
        self.sink.decide(self.keep.count())
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        let index = self.received;
        if index >= self.rendered.frames {
            return Err(violation("it sends more frames than its clip has"));
        }
        self.received += 1;
        let Some(frame) = self.crop.cut(rgb, self.rendered.size) else {
            return Err(violation("it sends a frame of another size"));
        };
        // Rendered frames arrive in order, and so do the wanted ones, so one counter is enough.
        // Example: 5 rendered frames spread over 3 delivered ones keep 0, 2 and 4.
        let wanted = self.keep.source(self.delivered, self.rendered.frames);
        if self.delivered < self.keep.count() && wanted == index {
            self.delivered += 1;
            self.sink.frame(&frame)?;
        }
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.sink.audio(pcm)
    }
}
