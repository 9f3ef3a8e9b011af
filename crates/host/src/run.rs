//! One job in an engine's process, from the service's side: what comes is passed on, what is asked
//! for is given, and a process that does not yield to a cancel, or takes too much, is given up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, FailureCode, Stopwatch};
use kinora_engine::{Control, EngineError, Job, Playback, Sink};

use crate::hosted::EngineProcess;
use crate::materials::{self, bytes_to_samples};
use crate::message::{Order, Told};
use crate::process::Heard;

/// How often a cancel is looked for while nothing is heard.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the process's memory is looked at.
const WEIGH_EVERY: Duration = Duration::from_millis(250);
/// Engines obey a cancel within two seconds; one in a process that can be killed has less.
const YIELD_LIMIT: Duration = Duration::from_millis(1_500);

/// How often a source may be playing at a time, and be played in one job.
const PLAYING_MAX: usize = 4;
const PLAYS_MAX: u32 = 16;
/// Frames that may wait to be taken: one is on its way while the next is asked for.
const UNTAKEN_MAX: usize = 2;

/// How a job ended, and what is to become of its process.
pub(crate) enum Ended {
    /// The process is fit for another job.
    Fit(Result<(), EngineError>),
    /// The process must go: it did not yield, or holds what it should not.
    Unfit(Result<(), EngineError>),
    /// It died.
    Gone,
}

pub(crate) struct Run<'a> {
    pub(crate) process: &'a EngineProcess,
    pub(crate) job: &'a Job<'a>,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) control: &'a Control,
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl Run<'_> {
    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Ended {
        let head = materials::head(self.job);
        self.process.bounds().set_clip(head.clip);
        self.process.order(Order::Job(Box::new(head)));
        for bytes in materials::bytes(self.job.materials) {
            self.process.order(Order::Material(bytes));
        }
        let mut playing = Playing::default();
        let mut weighed = Stopwatch::start(self.clock);
        loop {
            if self.control.cancel.is_cancelled() {
                return self.stop(EngineError::Cancelled);
            }
            if weighed.elapsed() >= WEIGH_EVERY {
                weighed.restart();
                if let Some(error) = self.too_heavy() {
                    return Ended::Unfit(Err(error));
                }
            }
            match self.process.listen(LOOK_EVERY) {
                Heard::Nothing => {}
                Heard::Gone => return Ended::Gone,
                Heard::Told(Told::Ended(ending)) => {
                    let ended = ending.into_result();
                    // What was taken must be given back before another tries.
                    return match ended {
                        Err(EngineError::OutOfMemory(_)) => Ended::Unfit(ended),
                        ended => Ended::Fit(ended),
                    };
                }
                Heard::Told(told) => {
                    if let Err(error) = self.pass_on(told, &mut playing) {
                        return match error {
                            EngineError::Crashed { .. } => Ended::Unfit(Err(error)),
                            error => self.stop(error),
                        };
                    }
                }
            }
        }
    }

    fn pass_on(&mut self, told: Told, playing: &mut Playing) -> Result<(), EngineError> {
        match told {
            Told::Progress(fraction) => self.control.pass_on(fraction)?,
            Told::Preview(picture) => self.control.preview.show(picture),
            Told::Frame(rgb) => {
                self.sink.frame(&rgb)?;
                // Each is a sign of life.
                self.control.pass_on(self.control.progress.fraction())?;
            }
            Told::Audio(pcm) => self.sink.audio(&bytes_to_samples(&pcm))?,
            Told::Play(number) => playing.begin(number, self.job)?,
            Told::Next(number) => {
                // An engine asks when it has what it asked for before. Frames wait here until they are
                // taken, and one that only asks would fill the service's memory.
                if self.process.untaken() > UNTAKEN_MAX {
                    return Err(hostile("it asks for frames and takes none"));
                }
                self.process.order(playing.next(number));
            }
            Told::Close(number) => playing.end(number),
            Told::Confined(_) | Told::Opened | Told::Ended(_) => {}
        }
        Ok(())
    }

    /// Asks for a stop, and waits a little for it.
    fn stop(&self, because: EngineError) -> Ended {
        self.process.order(Order::Cancel);
        let start = Stopwatch::start(self.clock);
        while start.elapsed() < YIELD_LIMIT {
            match self.process.listen(LOOK_EVERY) {
                Heard::Told(Told::Ended(_)) => return Ended::Fit(Err(because)),
                Heard::Told(Told::Next(_)) if self.process.untaken() <= UNTAKEN_MAX => {
                    self.process.order(Order::Unreadable);
                }
                Heard::Told(_) | Heard::Nothing => {}
                Heard::Gone => break,
            }
        }
        Ended::Unfit(Err(because))
    }

    fn too_heavy(&self) -> Option<EngineError> {
        let (most, held) = (self.memory_bytes_max?, self.process.resident_bytes()?);
        (held > most).then(|| EngineError::Crashed {
            code: FailureCode::OutOfMemory,
            cause: format!("killed at {held} bytes of memory, of {most} allowed"),
        })
    }
}

/// What an engine's process did that no engine does: it is ended.
fn hostile(what: &str) -> EngineError {
    EngineError::Crashed {
        code: FailureCode::GenerationFailed,
        cause: format!("the engine's process was ended: {what}"),
    }
}

/// The playing sources of a job, by the numbers that the engine's process gave them.
#[derive(Default)]
struct Playing {
    by_number: BTreeMap<u32, Box<dyn Playback>>,
    begun: u32,
}

impl Playing {
    /// Starts one more. Each has a decoder of its own, and engines play a source once or twice.
    fn begin(&mut self, number: u32, job: &Job<'_>) -> Result<(), EngineError> {
        self.begun += 1;
        if self.by_number.len() >= PLAYING_MAX || self.begun > PLAYS_MAX {
            return Err(hostile("it plays its source too many times"));
        }
        let source = job.materials.source.as_ref();
        if let Some(Ok(playback)) = source.map(|source| source.play()) {
            self.by_number.insert(number, playback);
        }
        Ok(())
    }

    fn next(&mut self, number: u32) -> Order {
        let playing = self.by_number.get_mut(&number);
        match playing.map(|playback| playback.next_frame()) {
            Some(Ok(Some(rgb))) => Order::Frame(rgb),
            Some(Ok(None)) => Order::NoFrame,
            Some(Err(_)) | None => Order::Unreadable,
        }
    }

    fn end(&mut self, number: u32) {
        self.by_number.remove(&number);
    }
}
