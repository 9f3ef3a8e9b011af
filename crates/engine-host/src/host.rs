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
use kinora_engine::{Control, Engine, EngineError, Footage, Job, Playback, Sink};
use rustix::process::{Signal, getpid, kill_process};

use crate::materials::{assemble, samples_to_bytes};
use crate::message::{Order, Told};
use crate::protocol::{Decision, Ending, Hello, JobHead, Open, SourceHead};
use crate::wire::{Bounds, Message};
use crate::{family, sandbox};

/// Time between progress messages.
const PULSE: Duration = Duration::from_millis(100);

/// Runs the engine that `open` creates from the service's settings. Takes over standard input and
/// output: anything else written to standard output goes to standard error. Returns if the engine
/// cannot be opened; otherwise the process ends with the service.
///
/// # Errors
/// If standard input and output cannot be redirected.
pub fn serve(open: impl FnOnce(Open) -> Result<Box<dyn Engine>, EngineError>) -> io::Result<()> {
    let output = rustix::io::dup(rustix::stdio::stdout())?;
    // Native code prints to standard output, which would corrupt the messages: keep the real one for
    // ourselves, and let descriptor 1 lead to standard error.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    family::prefer_oom_kill();
    let line = Line::to(File::from(output));
    let first = confine(&line)?;
    // Orders are read on another thread, so that a cancel, an answer or the end of input arrives
    // while the engine works on this one.
    let (jobs, arrived) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || listen(first, &mut io::stdin().lock(), &jobs, &answers))?;
    let Ok(Arrived::Open(settings)) = arrived.recv() else {
        die();
    };
    line.tell(Told::Hello(Box::new(Hello::of_this_executable())));
    kinora_system::crash::point("host.opening");
    let engine = match open(*settings) {
        Ok(engine) => engine,
        Err(error) => {
            line.tell(Told::Ended(Ending::of(Err(error))));
            return Ok(());
        }
    };
    kinora_system::crash::point("host.opened");
    line.tell(Told::Opened);
    let answers = Arc::new(Mutex::new(answered));
    while let Ok(Arrived::Job(head, control)) = arrived.recv() {
        let ended = run(&*engine, &head, &control, &line, &arrived, &answers);
        kinora_system::crash::point("host.done");
        line.tell(Told::Progress(control.progress.fraction()));
        line.tell(Told::Ended(Ending::of(ended)));
    }
    Ok(())
}

/// Reads an order; the end of input is an error.
fn read_order() -> io::Result<Order> {
    let order = Order::read(&mut io::stdin().lock(), &Bounds::trusted())?;
    order.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Confines this process if its first order says so, and returns the next order. Runs on the main
/// thread before there are others: the confinement covers threads that start later.
fn confine(line: &Line) -> io::Result<Order> {
    match read_order()? {
        Order::Confine(confinement) => {
            line.tell(Told::Confined(sandbox::lock_in(&confinement)));
            read_order()
        }
        order => Ok(order),
    }
}

/// Input for the main thread.
enum Arrived {
    Open(Box<Open>),
    Job(Box<JobHead>, Control),
    Material(Vec<u8>),
}

/// Reads orders until there are none, on a separate thread, so a cancel arrives while the engine
/// works. `first` has already been read.
fn listen(first: Order, from: &mut impl Read, jobs: &Sender<Arrived>, answers: &Sender<Answer>) {
    let (mut current, bounds) = (Control::default(), Bounds::trusted());
    let mut first = Some(first);
    loop {
        let order = match first.take() {
            Some(order) => Ok(Some(order)),
            None => Order::read(from, &bounds),
        };
        let taken = match order {
            Ok(Some(Order::Open(settings))) => jobs.send(Arrived::Open(settings)).is_ok(),
            Ok(Some(Order::Job(head))) => {
                current = Control::default();
                jobs.send(Arrived::Job(head, current.clone())).is_ok()
            }
            Ok(Some(Order::Material(bytes))) => jobs.send(Arrived::Material(bytes)).is_ok(),
            Ok(Some(Order::Frame(rgb))) => answers.send(Answer::Frame(rgb)).is_ok(),
            Ok(Some(Order::NoFrame)) => answers.send(Answer::End).is_ok(),
            Ok(Some(Order::Unreadable)) => answers.send(Answer::Unreadable).is_ok(),
            Ok(Some(Order::Cancel)) => {
                current.cancel.cancel();
                true
            }
            Ok(Some(Order::Unknown)) => true,
            // It is already confined, or was started without confinement.
            Ok(Some(Order::Confine(_)) | None) | Err(_) => false,
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
    control: &Control,
    line: &Line,
    arrived: &Receiver<Arrived>,
    answers: &Answers,
) -> Result<(), EngineError> {
    let source = head.source.map(|source| -> Arc<dyn Footage> {
        Arc::new(RemoteFootage::new(source, line.clone(), answers.clone()))
    });
    let Some(own) = &head.own else {
        return Err(EngineError::Failed("the job has no spec".to_owned()));
    };
    let materials = assemble(head, source, || match arrived.recv() {
        Ok(Arrived::Material(bytes)) => Ok(bytes),
        _ => Err(EngineError::Failed("material is missing".to_owned())),
    })?;
    kinora_system::crash::point("host.job");
    tracing::info!(frames = head.clip.longest(), "engine took a job");
    let job = Job {
        spec: &own.spec,
        materials: &materials,
        clip: head.clip.into(),
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
fn pulse(control: &Control, line: &Line, left: &Receiver<()>) {
    let mut told = 0;
    while left.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
        if let Some(picture) = control.preview.take() {
            line.tell(Told::Preview(picture));
        }
        // An engine may report thousands of times a second. Only a change since the last pulse
        // is sent; its silence means that the engine is stuck.
        let reports = control.progress.reports();
        if reports != told {
            told = reports;
            line.tell(Told::Progress(control.progress.fraction()));
        }
    }
}

struct LineSink<'a>(&'a Line);

impl Sink for LineSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.0.tell(Told::Decided(Decision { frames }));
        Ok(())
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        kinora_system::crash::point("host.frame");
        self.0.tell(Told::Frame(rgb.to_vec()));
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        kinora_system::crash::point("host.audio");
        self.0.tell(Told::Audio(samples_to_bytes(pcm)));
        Ok(())
    }
}

/// The connection to the service, shared by all threads.
#[derive(Clone, Debug)]
struct Line(Arc<Mutex<File>>);

impl Line {
    /// A connection that writes to `output`.
    fn to(output: File) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    /// Writes a message. Kills this process if the service no longer reads.
    fn tell(&self, told: Told) {
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
    let _ = kill_process(getpid(), Signal::KILL);
    // Unreachable on systems that have the signal.
    std::process::abort()
}

/// The service's answer to a request for a frame.
enum Answer {
    Frame(Vec<u8>),
    End,
    Unreadable,
}

/// Receives answers. A reader holds the lock until its answer arrives.
type Answers = Arc<Mutex<Receiver<Answer>>>;

/// A video whose frames are in the service.
struct RemoteFootage {
    head: SourceHead,
    line: Line,
    answers: Answers,
    numbers: AtomicU32,
}

impl RemoteFootage {
    fn new(head: SourceHead, line: Line, answers: Answers) -> Self {
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

impl Footage for RemoteFootage {
    fn size(&self) -> Size {
        self.head.size.into()
    }

    fn fps(&self) -> u32 {
        self.head.fps
    }

    fn frames(&self) -> u32 {
        self.head.frames
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.line.tell(Told::Play(number));
        Ok(Box::new(Playing {
            number,
            line: self.line.clone(),
            answers: self.answers.clone(),
        }))
    }
}

struct Playing {
    number: u32,
    line: Line,
    answers: Answers,
}

impl Playback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        // Answers carry no number. Holding the lock from the request to its answer pairs them
        // when several threads of the engine play the source.
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.tell(Told::Next(self.number));
        match answers.recv() {
            Ok(Answer::Frame(rgb)) => Ok(Some(rgb)),
            Ok(Answer::End) => Ok(None),
            Ok(Answer::Unreadable) | Err(_) => {
                Err(EngineError::Failed("the source cannot be read".to_owned()))
            }
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.line.tell(Told::Close(self.number));
    }
}
