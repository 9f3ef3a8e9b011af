//! The engine process: confines itself, opens one engine, and runs one job after another until its
//! standard input ends. It then kills itself, so it never outlives the service, whatever the
//! engine is doing.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kinora_contract::Size;
use kinora_engine::{
    ClipSink, Engine, EngineError, FrameJob, JobControl, SourceVideo, VideoPlayback,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::materials::{assemble, samples_to_bytes};
use crate::message::{EngineMessage, HostMessage};
use crate::protocol::{EngineHello, JobEnding, JobHead, LengthDecision, OpenRequest, SourceHead};
use crate::wire::{MessageBounds, WireMessage};
use crate::{family, sandbox};

/// Time between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the engine that `open` creates from the service's settings. Takes over standard input and
/// output: anything else written to standard output goes to standard error. Returns if the engine
/// cannot be opened; otherwise the process ends with the service.
///
/// # Errors
/// If standard input and output cannot be redirected.
pub fn serve(
    open: impl FnOnce(OpenRequest) -> Result<Box<dyn Engine>, EngineError>,
) -> io::Result<()> {
    // Closed in programs that the engine starts: while they had it open, the service would wait for messages of a dead
    // process.
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    // Native code prints to standard output, which would corrupt the messages: keep the real one for
    // ourselves, and let descriptor 1 lead to standard error.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    family::prefer_oom_kill();
    let line = ServiceLine::new(File::from(output));
    let first = confine(&line)?;
    // Orders are read on another thread, so that a cancel, an answer or the end of input arrives
    // while the engine works on this one.
    let (jobs, arrived) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || read_orders(first, &mut io::stdin().lock(), &jobs, &answers))?;
    let Ok(EngineInput::Open(settings)) = arrived.recv() else {
        die();
    };
    line.send(EngineMessage::Hello(Box::new(
        EngineHello::of_this_executable(),
    )));
    kinora_system::crash::point("host.opening");
    let engine = match open(*settings) {
        Ok(engine) => engine,
        Err(error) => {
            line.send(EngineMessage::Ended(JobEnding::from_result(Err(error))));
            return Ok(());
        }
    };
    kinora_system::crash::point("host.opened");
    line.send(EngineMessage::Opened);
    let answers = Arc::new(Mutex::new(answered));
    while let Ok(EngineInput::Job(head, control)) = arrived.recv() {
        let ended = run(&*engine, &head, &control, &line, &arrived, &answers);
        kinora_system::crash::point("host.done");
        line.send(EngineMessage::Progress(control.progress.fraction()));
        line.send(EngineMessage::Ended(JobEnding::from_result(ended)));
    }
    Ok(())
}

/// Reads an order; the end of input is an error.
fn read_order() -> io::Result<HostMessage> {
    let order = HostMessage::read(&mut io::stdin().lock(), &MessageBounds::trusted())?;
    order.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Confines this process if its first order says so, and returns the next order. Runs on the main
/// thread before there are others: the confinement covers threads that start later.
fn confine(line: &ServiceLine) -> io::Result<HostMessage> {
    match read_order()? {
        HostMessage::Confine(confinement) => {
            line.send(EngineMessage::Confined(sandbox::lock_in(&confinement)));
            read_order()
        }
        order => Ok(order),
    }
}

/// Input for the main thread.
enum EngineInput {
    Open(Box<OpenRequest>),
    Job(Box<JobHead>, JobControl),
    Material(Vec<u8>),
}

/// Reads orders until there are none, on a separate thread, so a cancel arrives while the engine
/// works. `first` has already been read.
fn read_orders(
    first: HostMessage,
    from: &mut impl Read,
    jobs: &Sender<EngineInput>,
    answers: &Sender<FrameAnswer>,
) {
    let (mut current, bounds) = (JobControl::default(), MessageBounds::trusted());
    let mut first = Some(first);
    loop {
        let order = match first.take() {
            Some(order) => Ok(Some(order)),
            None => HostMessage::read(from, &bounds),
        };
        let taken = match order {
            Ok(Some(HostMessage::Open(settings))) => jobs.send(EngineInput::Open(settings)).is_ok(),
            Ok(Some(HostMessage::Job(head))) => {
                current = JobControl::default();
                jobs.send(EngineInput::Job(head, current.clone())).is_ok()
            }
            Ok(Some(HostMessage::Material(bytes))) => {
                jobs.send(EngineInput::Material(bytes)).is_ok()
            }
            Ok(Some(HostMessage::Frame(rgb))) => answers.send(FrameAnswer::Frame(rgb)).is_ok(),
            Ok(Some(HostMessage::NoFrame)) => answers.send(FrameAnswer::End).is_ok(),
            Ok(Some(HostMessage::Unreadable)) => answers.send(FrameAnswer::Unreadable).is_ok(),
            Ok(Some(HostMessage::Cancel)) => {
                current.cancel.cancel();
                true
            }
            Ok(Some(HostMessage::Unknown)) => true,
            // It is already confined, or was started without confinement.
            Ok(Some(HostMessage::Confine(_)) | None) | Err(_) => false,
        };
        // End of input, an invalid order, or a main thread that has returned: exit now, whatever
        // the engine is doing.
        if !taken {
            die();
        }
    }
}

fn run(
    engine: &dyn Engine,
    head: &JobHead,
    control: &JobControl,
    line: &ServiceLine,
    arrived: &Receiver<EngineInput>,
    answers: &FrameAnswers,
) -> Result<(), EngineError> {
    let source = head.source.map(|source| -> Arc<dyn SourceVideo> {
        Arc::new(RemoteFootage::new(source, line.clone(), answers.clone()))
    });
    let Some(own) = &head.own else {
        return Err(EngineError::Failed("the job has no spec".to_owned()));
    };
    let materials = assemble(head, source, || match arrived.recv() {
        Ok(EngineInput::Material(bytes)) => Ok(bytes),
        _ => Err(EngineError::Failed("material is missing".to_owned())),
    })?;
    kinora_system::crash::point("host.job");
    tracing::info!(frames = head.clip.frames_limit(), "engine took a job");
    let job = FrameJob {
        spec: &own.spec,
        materials: &materials,
        clip: head.clip.into(),
        preset: head.preset.as_ref(),
    };
    thread::scope(|scope| {
        // The pulse ends when this sender is dropped: at the end of this closure, even on a panic. Without
        // that, the scope would wait for the pulse forever.
        let (_at_work, left) = mpsc::channel();
        scope.spawn(move || pulse(control, line, &left));
        engine.generate(&job, &mut LineSink(line), control)
    })
}

/// Forwards the engine's reports until it returns.
fn pulse(control: &JobControl, line: &ServiceLine, left: &Receiver<()>) {
    let mut told = 0;
    while left.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if let Some(picture) = control.preview.take() {
            line.send(EngineMessage::Preview(picture));
        }
        // An engine may report thousands of times a second. Only a change since the last pulse
        // is sent; its silence means that the engine is stuck.
        let reports = control.progress.reports();
        if reports != told {
            told = reports;
            line.send(EngineMessage::Progress(control.progress.fraction()));
        }
    }
}

struct LineSink<'a>(&'a ServiceLine);

impl ClipSink for LineSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.0
            .send(EngineMessage::Decided(LengthDecision { frames }));
        Ok(())
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        kinora_system::crash::point("host.frame");
        self.0.send(EngineMessage::Frame(rgb.to_vec()));
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        kinora_system::crash::point("host.audio");
        self.0.send(EngineMessage::Audio(samples_to_bytes(pcm)));
        Ok(())
    }
}

/// The connection to the service, shared by all threads.
#[derive(Clone, Debug)]
struct ServiceLine(Arc<Mutex<File>>);

impl ServiceLine {
    /// A connection that writes to `output`.
    fn new(output: File) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    /// Writes a message. Kills this process if the service no longer reads.
    fn send(&self, told: EngineMessage) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock keeps messages of the engine's thread and of the pulse whole.
        if told.write(&mut *output).is_err() {
            die();
        }
    }
}

/// Kills this process immediately. The engine may be in the middle of native code, whose cleanup on
/// a normal exit can hang or crash.
fn die() -> ! {
    let own = getpid();
    // A server that the engine has started.
    family::kill_descendants(std::process::id());
    let _ = kill_process(own, Signal::KILL);
    // Unreachable on systems that have the signal.
    std::process::abort()
}

/// The service's answer to a request for a frame.
enum FrameAnswer {
    Frame(Vec<u8>),
    End,
    Unreadable,
}

/// Receives answers. A reader holds the lock until its answer arrives.
type FrameAnswers = Arc<Mutex<Receiver<FrameAnswer>>>;

/// A video whose frames are in the service.
struct RemoteFootage {
    head: SourceHead,
    line: ServiceLine,
    answers: FrameAnswers,
    numbers: AtomicU32,
}

impl RemoteFootage {
    fn new(head: SourceHead, line: ServiceLine, answers: FrameAnswers) -> Self {
        Self {
            head,
            line,
            answers,
            numbers: AtomicU32::new(0),
        }
    }
}

impl fmt::Debug for RemoteFootage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteFootage({:?})", self.head)
    }
}

impl SourceVideo for RemoteFootage {
    fn size(&self) -> Size {
        self.head.size.into()
    }

    fn fps(&self) -> u32 {
        self.head.fps
    }

    fn frames(&self) -> u32 {
        self.head.frames
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.line.send(EngineMessage::Play(number));
        Ok(Box::new(RemotePlayback {
            number,
            line: self.line.clone(),
            answers: self.answers.clone(),
        }))
    }
}

struct RemotePlayback {
    number: u32,
    line: ServiceLine,
    answers: FrameAnswers,
}

impl VideoPlayback for RemotePlayback {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        // Answers carry no number. Holding the lock from the request to its answer pairs them
        // when several threads of the engine play the source.
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.send(EngineMessage::Next(self.number));
        match answers.recv() {
            Ok(FrameAnswer::Frame(rgb)) => Ok(Some(rgb)),
            Ok(FrameAnswer::End) => Ok(None),
            Ok(FrameAnswer::Unreadable) | Err(_) => {
                Err(EngineError::Failed("the source cannot be read".to_owned()))
            }
        }
    }
}

impl Drop for RemotePlayback {
    fn drop(&mut self) {
        self.line.send(EngineMessage::Close(self.number));
    }
}
