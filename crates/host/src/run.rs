//! One job in an engine's process, from the service's side: what comes is passed on, what is asked
//! for is given, and a process that does not yield to a cancel, or takes too much, is given up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kinora_contract::FailureCode;
use kinora_engine::{Control, EngineError, Job, Playback, Sink};

use crate::materials::{self, bytes_to_samples};
use crate::message::{Order, Told};
use crate::process::{Heard, Process};

/// How often a cancel is looked for while nothing is heard.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the process's memory is looked at.
const WEIGH_EVERY: Duration = Duration::from_millis(250);
/// Engines obey a cancel within two seconds; one in a process that can be killed has less.
const YIELD_LIMIT: Duration = Duration::from_millis(1_500);

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
    pub(crate) process: &'a Process,
    pub(crate) job: &'a Job<'a>,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) control: &'a Control,
    pub(crate) memory_bytes_max: Option<u64>,
}

impl Run<'_> {
    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Ended {
        let head = materials::head(self.job);
        self.process.order(Order::Job(Box::new(head)));
        for bytes in materials::bytes(self.job.materials) {
            self.process.order(Order::Material(bytes));
        }
        let mut playing = Playing::default();
        let mut weighed = Instant::now();
        loop {
            if self.control.cancel.is_cancelled() {
                return self.stop(EngineError::Cancelled);
            }
            if weighed.elapsed() >= WEIGH_EVERY {
                weighed = Instant::now();
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
                        return self.stop(error);
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
            Told::Play(number) => playing.begin(number, self.job),
            Told::Next(number) => self.process.order(playing.next(number)),
            Told::Close(number) => playing.end(number),
            Told::Opened | Told::Ended(_) => {}
        }
        Ok(())
    }

    /// Asks for a stop, and waits a little for it.
    fn stop(&self, because: EngineError) -> Ended {
        self.process.order(Order::Cancel);
        let start = Instant::now();
        while start.elapsed() < YIELD_LIMIT {
            match self.process.listen(LOOK_EVERY) {
                Heard::Told(Told::Ended(_)) => return Ended::Fit(Err(because)),
                Heard::Told(Told::Next(_)) => self.process.order(Order::Unreadable),
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

/// The playing sources of a job, by the numbers that the engine's process gave them.
#[derive(Default)]
struct Playing(BTreeMap<u32, Box<dyn Playback>>);

impl Playing {
    fn begin(&mut self, number: u32, job: &Job<'_>) {
        let source = job.materials.source.as_ref();
        if let Some(Ok(playback)) = source.map(|source| source.play()) {
            self.0.insert(number, playback);
        }
    }

    fn next(&mut self, number: u32) -> Order {
        match self
            .0
            .get_mut(&number)
            .map(|playback| playback.next_frame())
        {
            Some(Ok(Some(rgb))) => Order::Frame(rgb),
            Some(Ok(None)) => Order::NoFrame,
            Some(Err(_)) | None => Order::Unreadable,
        }
    }

    fn end(&mut self, number: u32) {
        self.0.remove(&number);
    }
}
