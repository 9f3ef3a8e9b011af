//! The engine's process: locks itself in, opens one engine, and runs one job after another until its
//! standard input ends. It does not outlive the service, whatever the engine is doing: then it kills
//! itself.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kinora_engine::{Control, Engine, EngineError, Footage, Job, Sink};
use rustix::process::{Signal, getpid, kill_process};

use crate::footage::{Answer, Answers, Distant};
use crate::materials::{assemble, samples_to_bytes};
use crate::memory;
use crate::message::{Ending, JobHead, Order, Told};
use crate::sandbox;
use crate::wire::{Bounds, Message};

/// How often the engine's reports are passed on.
const PULSE: Duration = Duration::from_millis(100);

/// Runs the engine that `open` makes of the service's settings. Takes standard input and output for
/// itself: what else is written to standard output goes to standard error. Returns when the engine
/// could not be opened; else the process ends with the service.
///
/// # Errors
/// When standard input and output cannot be had.
pub fn serve(open: impl FnOnce(&[u8]) -> Result<Box<dyn Engine>, EngineError>) -> io::Result<()> {
    let output = rustix::io::dup(rustix::stdio::stdout())?;
    // Native code prints what it likes.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    memory::volunteer();
    let line = Line(Arc::new(Mutex::new(File::from(output))));
    let first = confine(&line)?;
    let (jobs, arrived) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || listen(first, &mut io::stdin().lock(), &jobs, &answers))?;
    let Ok(Arrived::Open(settings)) = arrived.recv() else {
        die();
    };
    kinora_crash::point("host.opening");
    let engine = match open(&settings) {
        Ok(engine) => engine,
        Err(error) => {
            line.tell(Told::Ended(Ending::of(Err(error))));
            return Ok(());
        }
    };
    kinora_crash::point("host.opened");
    line.tell(Told::Opened);
    let answers = Arc::new(Mutex::new(answered));
    while let Ok(Arrived::Job(head, control)) = arrived.recv() {
        let ended = run(&*engine, &head, &control, &line, &arrived, &answers);
        kinora_crash::point("host.done");
        line.tell(Told::Progress(control.progress.fraction()));
        line.tell(Told::Ended(Ending::of(ended)));
    }
    Ok(())
}

/// Locks this process in when its first order says so. Returns the order that comes next. It is read
/// on the main thread, while there is no other: the lock-in holds for threads that start later.
fn confine(line: &Line) -> io::Result<Order> {
    let next = || Order::read(&mut io::stdin().lock(), &Bounds::trusted());
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    match next()?.ok_or_else(ended)? {
        Order::Confine(confinement) => {
            line.tell(Told::Confined(sandbox::lock_in(&confinement)));
            next()?.ok_or_else(ended)
        }
        order => Ok(order),
    }
}

/// What concerns the main thread.
enum Arrived {
    Open(Vec<u8>),
    Job(Box<JobHead>, Control),
    Material(Vec<u8>),
}

/// Where the service is told.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Mutex<File>>);

impl Line {
    pub(crate) fn tell(&self, told: Told) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.write(&mut *output).is_err() {
            die();
        }
    }
}

/// Takes orders until there are none, on a thread of its own: a cancel must be heard while the
/// engine works. The `first` was read before.
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
            // It is locked in already, or was told not to be.
            Ok(Some(Order::Confine(_)) | None) | Err(_) => false,
        };
        if !taken {
            die();
        }
    }
}

/// Ends this process at once. The engine may be in the middle of native code, whose tidying up at an
/// orderly exit can hang or break.
fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    // Not reached on any system that has the signal.
    std::process::abort()
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
        Arc::new(Distant::new(source, line.clone(), answers.clone()))
    });
    let materials = assemble(head, source, || match arrived.recv() {
        Ok(Arrived::Material(bytes)) => Ok(bytes),
        _ => Err(EngineError::Failed("material is missing".to_owned())),
    })?;
    kinora_crash::point("host.job");
    let job = Job {
        spec: &head.spec,
        materials: &materials,
        clip: head.clip.into(),
    };
    thread::scope(|scope| {
        // Its end is dropped with this scope, also by a panic.
        let (_at_work, left) = mpsc::channel();
        scope.spawn(move || pulse(control, line, &left));
        engine.generate(&job, &mut LineSink(line), control)
    })
}

/// Passes on what the engine reports, until it has left.
fn pulse(control: &Control, line: &Line, left: &Receiver<()>) {
    let mut told = 0;
    while left.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
        if let Some(picture) = control.preview.take() {
            line.tell(Told::Preview(picture));
        }
        let reports = control.progress.reports();
        if reports != told {
            told = reports;
            line.tell(Told::Progress(control.progress.fraction()));
        }
    }
}

struct LineSink<'a>(&'a Line);

impl Sink for LineSink<'_> {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        kinora_crash::point("host.frame");
        self.0.tell(Told::Frame(rgb.to_vec()));
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        kinora_crash::point("host.audio");
        self.0.tell(Told::Audio(samples_to_bytes(pcm)));
        Ok(())
    }
}
