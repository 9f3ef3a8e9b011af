//! Whether a process ends with its standard input, as it must when the service dies. Only `kinora engine check` asks; the
//! service kills its processes itself.

use std::thread;
use std::time::Duration;

use kinora_contract::Stopwatch;
use kinora_engine::{Control, EngineError, Job};

use crate::family;
use crate::hosted::HostedEngine;
use crate::message::{Order, Told};
use crate::process::{EngineProcess, Heard};
use crate::run::Playing;
use crate::seats::Ready;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl HostedEngine {
    /// Closes the standard input of a process in the middle of `job`: at its first progress. Returns whether the process
    /// and all of its group ended within `limit`; they are killed otherwise.
    ///
    /// # Errors
    /// If no process starts, it exits before, or `control` cancels.
    pub fn ends_with_input(
        &self,
        job: &Job<'_>,
        control: &Control,
        limit: Duration,
    ) -> Result<bool, EngineError> {
        let (seat, waiting) = self.seats().take(control)?;
        let ready = match waiting {
            Some(ready) => ready,
            None => self.start(seat.device(), control)?,
        };
        self.assignment(job).order_from(&ready.process);
        let Ready { mut process, .. } = ready;
        if !reaches_progress(&process, job, control)? {
            return Err(process.post_mortem());
        }
        process.close_input();
        let start = Stopwatch::start(self.clock());
        while start.elapsed() < limit {
            // This wait has a limit of its own: it is no silence.
            let _ = control.pass_on(control.progress.fraction());
            if is_gone(&process) {
                return Ok(true);
            }
            // Its output is read on, so that only its input can stop it.
            if matches!(process.listen(POLL_INTERVAL), Heard::Gone) {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(false)
    }
}

/// Serves the job until its first sign of progress, or its end; `false` if the process exits before.
fn reaches_progress(
    process: &EngineProcess,
    job: &Job<'_>,
    control: &Control,
) -> Result<bool, EngineError> {
    let mut playing = Playing::default();
    while !control.cancel.is_cancelled() {
        match process.listen(POLL_INTERVAL) {
            Heard::Gone => return Ok(false),
            Heard::Told(
                Told::Progress(_)
                | Told::Frame(_)
                | Told::Audio(_)
                | Told::Preview(_)
                | Told::Ended(_),
            ) => return Ok(true),
            Heard::Told(Told::Play(number)) => playing.begin(number, job)?,
            Heard::Told(Told::Next(number)) => process.order(playing.next(number)),
            Heard::Told(Told::Close(number)) => playing.end(number),
            Heard::Told(_) | Heard::Nothing => {}
        }
    }
    process.order(Order::Cancel);
    Err(EngineError::Cancelled)
}

fn is_gone(process: &EngineProcess) -> bool {
    !process.is_alive() && !family::is_left(process.id())
}
